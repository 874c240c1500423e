"""Whether a public data set in a folder of the user's own is whole.

A stored result does not name `data.dir`, because a public data set is the same wherever it is. A part of one is not:
what was learnt from it is no result of the points that learn from all of it.
"""

from functools import cache
from pathlib import Path

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Data
from vefl_sim.learning.datasets.compact_gtsrb import compact_files, compact_state
from vefl_sim.learning.datasets.files.location import Place
from vefl_sim.learning.datasets.files.sources import SOURCES


def require_whole(data: Data) -> None:
    """Raise BadInput if `data.dir` holds a public data set that is not whole; every file is digested."""
    if data.dir and data.kind in SOURCES and not _is_whole(data.kind, Place.of(data).folder):
        raise BadInput(
            f'data.dir = "{data.dir}" does not hold all of {data.kind}, so that its results cannot be stored: '
            f"python -m vefl_sim data get {data.kind} gets it, and without data.dir it is found."
        )


@cache
def _is_whole(kind: str, folder: Path) -> bool:
    """As `data list` would say of this folder."""
    files = SOURCES[kind]
    if kind == "gtsrb" and compact_files(folder) and not any((folder / file.name).is_file() for file in files):
        return compact_state(folder).startswith("complete")
    return all(file.is_in(folder) for file in files)
