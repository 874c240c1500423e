"""The run directory: written once, never overwritten, read by anybody.

runs/<name>-<configuration digest>/
    experiment.toml  as the user wrote it      resolved.toml  with every default
    versions.json    of what it ran on         summary.json   figures and the content digest
    tables/*.parquet                           DONE, or FAILED with the error
    sessions.jsonl   which process, when       LOCK           held while one runs
    checkpoints/ and parts/*.parquet           until it is done
"""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal
from uuid import uuid4

import pandas as pd

from vefl_sim.core.errors import BadInput, CannotWrite, NotResumable, RunNotFound
from vefl_sim.core.files import write_text
from vefl_sim.core.tables import content_digest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import load_resolved, to_toml
from vefl_sim.records.checkpoint import Checkpoints
from vefl_sim.records.identity import config_digest, recorded_versions, versions
from vefl_sim.records.lock import is_locked
from vefl_sim.records.schemas import SCHEMAS

RunState = Literal["done", "failed", "running", "unfinished"]
FOLDERS = ("tables", "parts", "checkpoints")
_NOT_CONTENT = {"timings"}  # wall-clock figures differ from run to run


class Run:
    """A run directory, for reading. Tables are pandas data frames."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "resolved.toml").is_file():
            raise RunNotFound(f"{self.path} is not a run directory: it has no resolved.toml.")

    @property
    def is_done(self) -> bool:
        """Whether the run came to its end, and everything is written."""
        return (self.path / "DONE").exists()

    @property
    def state(self) -> RunState:
        """Done, failed, at work this moment, or stopped before its end."""
        if self.is_done:
            return "done"
        if is_locked(self.path):
            return "running"
        return "failed" if (self.path / "FAILED").exists() else "unfinished"

    @property
    def experiment(self) -> Experiment:
        """The experiment, with every default."""
        return load_resolved(self.path / "resolved.toml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.state})"

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the whole run, or up to the last checkpoint; empty before the first."""
        file = self.path / "summary.json"
        if not self.is_done:
            last = Checkpoints(self.path).last_readable()
            return last.figures if last else {}
        try:
            return dict(json.loads(file.read_text()))
        except (OSError, ValueError):
            raise RunNotFound(f"{file} is missing or damaged: --fresh runs the experiment again.") from None

    def require_whole(self) -> None:
        """Of a run that is done: whether everything that others build on is there. Contents are for `verify`."""
        _ = self.summary
        for name in ("rounds", "vehicles", "events"):
            self.files(name)

    def table(self, name: str) -> pd.DataFrame:
        """One table by name: events, rounds, vehicles, mobility, timings, slots."""
        if name not in SCHEMAS:
            raise RunNotFound(f"There is no table {name!r}; the tables are {', '.join(SCHEMAS)}.")
        try:
            return self._rows(name)
        except RunNotFound:
            if self.is_done:  # it may have come to its end this moment, and its parts have become one file
                return self._rows(name)
            raise

    def files(self, name: str, *, checkpointed: bool = False) -> list[Path]:
        """Where the rows of a table are: in one file once it is over, in parts up to the last checkpoint before.

        `checkpointed`: in parts, even if an error has left more.
        """
        file = self.path / "tables" / f"{name}.parquet"
        if file.exists() and not checkpointed:
            return [file]
        last = Checkpoints(self.path).last_readable()
        if last and name in last.tables:
            return [self.path / "parts" / part["file"] for part in last.tables[name]]
        raise RunNotFound(f"{file} is not there: the run has not recorded it, or not reached a checkpoint yet.")

    def _rows(self, name: str) -> pd.DataFrame:
        return read_rows(self.files(name))

    @property
    def events(self) -> pd.DataFrame:
        """The trace."""
        return self.table("events")

    @property
    def rounds(self) -> pd.DataFrame:
        """One row per round."""
        return self.table("rounds")

    @property
    def vehicles(self) -> pd.DataFrame:
        """One row per round and CV in coverage at its start."""
        return self.table("vehicles")

    def content_digest(self) -> str:
        """Digest of everything that must repeat."""
        files = (self.path / "tables").glob("*.parquet")
        return content_digest([file for file in files if file.stem not in _NOT_CONTENT])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, then the marker; remove what only an unfinished run needs."""
        write_text(self.path / "summary.json", json.dumps({"state": "done", **summary}, indent=2) + "\n")
        self.mark("DONE", summary["content_digest"])
        for folder in ("parts", "checkpoints"):
            rmtree(self.path / folder, ignore_errors=True)

    def mark(self, state: Literal["DONE", "FAILED"], text: str) -> None:
        """Leave the marker that tells how it ended."""
        write_text(self.path / state, text + "\n")


def existing_run(experiment: Experiment, out: Path) -> Run | None:
    """A run of the very same configuration: one that is done, or else the one that has come furthest."""
    runs = [Run(path) for path in _siblings(experiment, out)]
    return max(runs, key=_progress, default=None)


def earliest_run(experiment: Experiment, out: Path) -> Run:
    """Of all runs of this configuration the one whose name was free."""
    return Run(_siblings(experiment, out)[0])


def _progress(run: Run) -> tuple[bool, int, float]:
    last = Checkpoints(run.path).last_readable()
    return run.is_done, last.round if last else 0, run.path.stat().st_mtime


def create_run(experiment: Experiment, out: Path, toml: str | None = None, settings: Sequence[str] = ()) -> Run:
    """A new directory for a run; a number is added when the name is taken. It appears with everything in it."""
    partial = out / f".{experiment.run.name}-{uuid4().hex}"
    try:
        partial.mkdir(parents=True)
        write_text(partial / "experiment.toml", toml or to_toml(experiment))
        with_what = versions(experiment) | {"set": list(settings)}
        write_text(partial / "versions.json", json.dumps(with_what, indent=2) + "\n")
        write_text(partial / "resolved.toml", to_toml(experiment))
        return Run(_renamed(partial, out / f"{experiment.run.name}-{config_digest(experiment)[:8]}"))
    except (OSError, CannotWrite) as error:
        rmtree(partial, ignore_errors=True)
        cause = error if isinstance(error, OSError) else error.__cause__
        reason, where = getattr(cause, "strerror", cause), getattr(cause, "filename", None) or out
        raise BadInput(f"{where} cannot be written ({reason}): choose another --out.") from None


def _renamed(partial: Path, base: Path) -> Path:
    """Give a directory this name, or with the first number that is free."""
    for number in count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if path.exists():
            continue
        try:
            return partial.rename(path)
        except OSError:
            if not path.exists():
                raise
    raise AssertionError("numbers do not end")


def read_rows(files: Sequence[Path]) -> pd.DataFrame:
    """The rows of these files, one after the other."""
    return pd.concat([_read(file) for file in files], ignore_index=True)


def _read(file: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(file, dtype_backend="numpy_nullable")
    except (OSError, ValueError) as error:
        raise RunNotFound(f"{file} cannot be read: {str(error).splitlines()[0]}.") from None


def _siblings(experiment: Experiment, out: Path) -> list[Path]:
    digest = config_digest(experiment)
    name = f"{experiment.run.name}-{digest[:8]}"
    found = sorted(path for path in (out / name, *out.glob(f"{name}-*")) if (path / "resolved.toml").is_file())
    return [path for path in found if _is_of(path, digest)]


def _is_of(path: Path, digest: str) -> bool:
    """Whether a run is of this configuration and not of one whose digest begins alike; if that is not known, it is."""
    try:
        return bool(recorded_versions(path).get("configuration", digest) == digest)
    except NotResumable:
        return True
