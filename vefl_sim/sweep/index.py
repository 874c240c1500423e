"""The index of a sweep: a table of points with their parameters, their runs and how far they are.

It is a view: runs are found by their configuration, so losing it loses nothing but how points failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from vefl_sim.core.errors import BadInput
from vefl_sim.core.files import write_text, writing
from vefl_sim.records.identity import package_digest
from vefl_sim.sweep.points import Point, Sweep

_FIGURES = ("run", "status", "rounds", "accuracy", "content", "wall_s", "peak_mb", "error")
_KEY, _VERSION = "digest", "version"


@dataclass
class IndexEntry:
    """What is known of a point."""

    status: str = "waiting"  # then running, done, failed or stopped
    run: str = ""
    rounds: int | None = None
    accuracy: float | None = None
    content: str = ""  # digest of the results
    wall_s: float | None = None
    peak_mb: float | None = None
    error: str = ""

    def message(self) -> dict[str, Any]:
        """By column."""
        return {name: getattr(self, name) for name in _FIGURES}


def made_with() -> str:
    """The version, and the state of its sources."""
    return f"{version('vefl_sim')} {package_digest()}"


@dataclass
class Index:
    """The table of one sweep on disk. Points of earlier settings of the same file stay in it."""

    file: Path
    sweep: Sweep
    settings: str = ""
    _before: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def of(cls, sweep: Sweep, out: Path, settings: Sequence[str] = (), *, restart: bool = False) -> "Index":
        """The index in out/sweeps; one of another version is refused, or kept under another name."""
        file = out / "sweeps" / sweep.name / "index.csv"
        before = _read(file)
        other = [message for message in before.get(_VERSION, pd.Series(dtype=str)).unique() if message != made_with()]
        if other and not restart:
            done = int((before["status"] == "done").sum())
            raise BadInput(
                f"{file} is of another version of vefl_sim ({other[0]}, this is {made_with()}), which would run its "
                f"{done} finished points again: go on with that version, choose another --out, or begin anew with "
                "--restart, which keeps the old index and its runs."
            )
        if other:
            _keep(file, str(other[0]))
            before = pd.DataFrame()
        return cls(file, sweep, "; ".join(settings), before)

    def known(self, digest: str) -> Mapping[str, Any]:
        """What was written about a point before."""
        if self._before.empty:
            return {}
        rows = self._before[self._before[_KEY] == digest]
        return (
            {}
            if rows.empty
            else {str(name): message for name, message in rows.iloc[-1].items() if not pd.isna(message)}
        )

    def write(self, entries: Mapping[str, IndexEntry]) -> None:
        """All points as they are now; rows of other points stay, also those that another sweep has written."""
        table = pd.DataFrame([self._row(point, entries[point.digest]) for point in self.sweep.points])
        with writing(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_name(".lock")):
                before = _read(self.file)
                if not before.empty and len(others := before[~before[_KEY].isin(table[_KEY])]):
                    table = pd.concat([table, others.astype(object)], ignore_index=True)
                write_text(self.file, str(table.to_csv(index=False)))

    def _row(self, point: Point, entry: IndexEntry) -> dict[str, Any]:
        parameters = ({} if point.label is None else {"variant": point.label}) | dict(point.values)
        message = {_KEY: point.digest, "set": self.settings, _VERSION: made_with()}
        return parameters | {"seed": point.seed} | entry.message() | message


def _read(file: Path) -> pd.DataFrame:
    if not file.exists():
        return pd.DataFrame()
    try:
        table = pd.read_csv(file, dtype={_VERSION: str, _KEY: str})
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read ({_first(error)}): move it away, it is written anew.") from None
    if not {_KEY, _VERSION, "status"} <= set(table.columns):
        raise BadInput(f"{file} is not the index of a sweep: move it away, it is written anew.")
    return table


def _keep(file: Path, version: str) -> None:
    """Give an old index a name of its own."""
    for number in count(1):
        kept = file.with_name(f"index-{version.replace(' ', '-')}{f'-{number}' if number > 1 else ''}.csv")
        if not kept.exists():
            file.replace(kept)
            return


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
