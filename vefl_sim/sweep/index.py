"""The index of a sweep: a CSV table of its points with their parameters, runs and progress.

It only summarizes the run directories, which are found by configuration; if it is lost, only the errors of points are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from vefl_sim.core.errors import BadInput, first_line
from vefl_sim.core.files import explain_write_errors, first_free, read_file, write_text
from vefl_sim.records.identity import package_digest
from vefl_sim.sweep.points import Point, Sweep

INDEX = "index.csv"
_KEY, _VERSION = "digest", "version"
_TEXTS = (_KEY, _VERSION, "run", "error", "set")


@dataclass
class IndexEntry:
    """Run, status and results of one point: columns of the index."""

    run: str = ""
    status: str = "waiting"  # or running, done, failed, stopped
    rounds: int | None = None
    accuracy: float | None = None
    loss: float | None = None
    content: str = ""  # digest of all result tables
    wall_s: float | None = None
    peak_mb: float | None = None
    error: str = ""


def current_version() -> str:
    """Version of vefl_sim, and the digest of its sources."""
    return f"{version('vefl_sim')} {package_digest()}"


@dataclass
class Index:
    """The table of one sweep on disk; it keeps the points of earlier settings of the same file."""

    file: Path
    sweep: Sweep
    settings: str = ""
    _replaces: str | None = None  # version of the index in the file that the next write renames
    _previous: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # rows when it was opened, by digest

    @classmethod
    def of(cls, sweep: Sweep, out: Path, settings: Sequence[str] = (), *, restart: bool = False) -> "Index":
        """Open the index in out/sweeps; one of another version is refused or, with `restart`, renamed when written."""
        file = out / "sweeps" / sweep.name / INDEX
        previous = _read(file)
        other = _other_version(previous)
        if other and not restart:
            done = int((previous["status"] == "done").sum())
            raise BadInput(
                f"{file} was made by another version of vefl_sim ({other}; this is {current_version()}), and this one "
                f"would run its {done} finished points again: continue with that version, choose another --out, or "
                "start again with --restart, which keeps the old index and its runs."
            )
        rows: dict[str, Any] = {} if other else {row[_KEY]: row for row in previous.to_dict("records")}
        return cls(file, sweep, "; ".join(settings), other, rows)

    def previous_row(self, digest: str) -> Mapping[str, Any]:
        """What the index contained about a point when it was opened, without empty cells; {} for a new point."""
        row = self._previous.get(digest, {})
        return {str(name): cell for name, cell in row.items() if not pd.isna(cell)}

    def write(self, entries: Mapping[str, IndexEntry]) -> None:
        """Write all points as they are now; rows of other points, which another sweep may have added, are kept.

        An index of another version is renamed before.
        """
        table = pd.DataFrame([self._row(point, entries[point.digest]) for point in self.sweep.points])
        with explain_write_errors(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_name(".lock")):
                written = _read(self.file)
                if self._replaces and _other_version(written) == self._replaces:
                    _rename(self.file, self._replaces)
                elif not written.empty and len(others := written[~written[_KEY].isin(table[_KEY])]):
                    table = pd.concat([table, others.astype(object)], ignore_index=True)
                write_text(self.file, str(table.to_csv(index=False)))
                self._replaces = None  # an older version that still runs may write again; its rows are kept then

    def _row(self, point: Point, entry: IndexEntry) -> dict[str, Any]:
        parameters = ({} if point.label is None else {"variant": point.label}) | dict(point.values)
        origin = {_KEY: point.digest, "set": self.settings, _VERSION: current_version()}
        state = {column.name: getattr(entry, column.name) for column in fields(IndexEntry)}
        return parameters | {"seed": point.seed} | state | origin


def _read(file: Path) -> pd.DataFrame:
    columns = {_KEY, _VERSION, "status"}
    return read_table(file, columns, "move it away; a new one is written") if file.exists() else pd.DataFrame()


def read_table(file: Path, columns: set[str], advice: str) -> pd.DataFrame:
    """Read the table of a sweep or comparison, which must have these columns."""
    try:
        table = pd.read_csv(BytesIO(read_file(file)), dtype=dict.fromkeys(_TEXTS, str))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read ({first_line(error)}): {advice}.") from None
    if not columns <= set(table.columns):
        raise BadInput(f"{file} is not the table of a sweep or comparison: {advice}.")
    return table


def _other_version(table: pd.DataFrame) -> str | None:
    """Another version of vefl_sim that made rows of this index; None if this one made all of them."""
    versions = table.get(_VERSION, pd.Series(dtype=str)).unique()
    return next((str(made_by) for made_by in versions if made_by != current_version()), None)


def _rename(file: Path, version: str) -> None:
    """Rename an old index after its version."""
    name = f"index-{version.replace(' ', '-')}"
    file.replace(first_free(file.with_name(f"{name}{f'-{n}' if n > 1 else ''}.csv") for n in count(1)))
