"""The run directory: written by one process at a time, never overwritten, readable at any time.

runs/<name>-<configuration digest>/
    experiment.toml  as the user wrote it        resolved.toml  with every default
    versions.json    versions and digests        summary.json   figures and the content digest
    tables/*.parquet                             confusion.json of the last model
    model.npz, model.json  the last model        models/*.npz   models of other rounds, if asked for
    DONE, or FAILED with the error
    sessions.jsonl   processes that worked on it LOCK           held by the process at work
    checkpoints/ and parts/*.parquet             removed when the run is done
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from vefl_sim.core.errors import BadInput, CannotWrite, NotResumable, RunNotFound
from vefl_sim.core.files import read_file, read_json, write_text
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import content_digest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import as_toml, load_resolved
from vefl_sim.records.checkpoint import Checkpoints
from vefl_sim.records.confusion import ConfusionMatrix, read_confusion
from vefl_sim.records.entries import INITIAL, fault_of_entries
from vefl_sim.records.identity import Identity, recorded_versions
from vefl_sim.records.lock import LOCK_FILES, is_locked
from vefl_sim.records.models import kept_rounds, saved_model
from vefl_sim.records.run_html import run_html
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import PartFile, content_files, fault_of_files, read_rows
from vefl_sim.records.totals import TABLE_DIGESTS, are_figures

if TYPE_CHECKING:
    import pandas as pd

    from vefl_sim.learning.trained_model import TrainedModel

RunState = Literal["done", "failed", "running", "unfinished"]
MAIN_TABLES = ("rounds", "vehicles", "events")  # tables that every run has


class Run:
    """A run directory and its results; tables are read as pandas data frames."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "resolved.toml").is_file():
            raise RunNotFound(f"{self.path} is not a run directory: it has no resolved.toml.")
        if fault := fault_of_entries(self.path):
            raise RunNotFound(f"{fault}: restore it, or run the experiment again with --fresh.")

    @property
    def is_done(self) -> bool:
        """Whether the run has finished and all its files are written."""
        return (self.path / "DONE").exists()

    @property
    def state(self) -> RunState:
        """Whether the run is done, failed, running in some process now, or unfinished (stopped before its end)."""
        if self.is_done:
            return "done"
        if is_locked(self.path):
            return "running"
        return "failed" if (self.path / "FAILED").exists() else "unfinished"

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has been simulated yet; SUMO may have written into `traffic`."""
        return {path.name for path in self.path.iterdir()} <= {*INITIAL, *LOCK_FILES, "traffic"}

    @property
    def loss(self) -> str | None:
        """What is lost of a run that has no readable checkpoint but once had one; None if nothing is."""
        if self.is_done or Checkpoints(self.path).last_readable():
            return None
        if (self.path / "summary.json").exists():
            return f"{self.path / 'DONE'} is missing, although the run has its summary: restore it"
        if any(self.path.glob("checkpoints/*.npz")):
            return f"all files in {self.path / 'checkpoints'} are damaged: restore them"
        if any(self.path.glob("parts/*-000002.parquet")):
            return f"the files in {self.path / 'checkpoints'} are missing: restore them"
        return None

    @property
    def experiment(self) -> Experiment:
        """The experiment with every default, from resolved.toml; reading it imports no user-defined part."""
        return load_resolved(self.path / "resolved.toml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.state})"

    def _repr_html_(self) -> str:
        """The key figures, in a notebook."""
        return run_html(self)

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the whole run or, if it is not done, up to its last checkpoint; empty before the first one."""
        file = self.path / "summary.json"
        if not self.is_done:
            last = Checkpoints(self.path).last_readable()
            return last.figures if last else {}
        with suppress(OSError, ValueError):
            if are_figures(figures := read_json(file)):
                return dict(figures)
        raise RunNotFound(f"{file} is missing or damaged: run the experiment again with --fresh.")

    def require_complete(self) -> dict[str, Any]:
        """The summary; RunNotFound if a finished run lacks it or a main table. `verify` also checks their content."""
        summary = self.summary
        for name in MAIN_TABLES:
            for file in self.files(name):
                try:
                    ParquetFile(file)
                except BadInput as error:
                    raise RunNotFound(str(error)) from None
        return summary

    def table(self, name: str) -> "pd.DataFrame":
        """One table by name: events, rounds, vehicles, mobility, …; RunNotFound if it is missing or has changed."""
        if name not in SCHEMAS:
            raise RunNotFound(f"There is no table {name!r}; the tables are {', '.join(SCHEMAS)}.")
        try:
            return self._rows(name)
        except RunNotFound:
            if self.is_done:  # it may have finished just now, so that one file has replaced the part files
                return self._rows(name)
            raise

    def files(self, name: str) -> list[Path]:
        """Files with the rows of a table: one file if the run has ended, else the part files of the last checkpoint."""
        file = self.path / "tables" / f"{name}.parquet"
        if file.exists():
            return [file]
        if parts := self._parts(name):
            return [self.path / "parts" / part.file for part in parts]
        if name in MAIN_TABLES and self.is_done:
            raise RunNotFound(f"{file} is missing: restore it, or run the experiment again with --fresh.")
        raise RunNotFound(f"{file} is missing: the run does not record this table or has no checkpoint yet.")

    def _parts(self, name: str) -> list[PartFile]:
        """The part files of a table up to the last checkpoint."""
        last = Checkpoints(self.path).last_readable()
        return [PartFile(**part) for part in last.tables.get(name, ())] if last else []

    def _rows(self, name: str) -> "pd.DataFrame":
        files = self.files(name)
        digests = self.summary.get(TABLE_DIGESTS, {}) if self.is_done else {}
        if fault := fault_of_files(files, self._parts(name), digests):
            raise RunNotFound(f"{fault}: restore it, or run the experiment again with --fresh.")
        return read_rows(files)

    @property
    def is_checked(self) -> bool:
        """Whether `table` compares what it reads with digests; a failed run, or one of an old version, has none."""
        return TABLE_DIGESTS in self.summary if self.is_done else not any(self.path.glob("tables/*.parquet"))

    @property
    def events(self) -> "pd.DataFrame":
        """The trace."""
        return self.table("events")

    @property
    def rounds(self) -> "pd.DataFrame":
        """One row per round."""
        return self.table("rounds")

    @property
    def vehicles(self) -> "pd.DataFrame":
        """One row per round and CV in coverage at its start."""
        return self.table("vehicles")

    @property
    def confusion(self) -> ConfusionMatrix | None:
        """The confusion matrix of the last model on the test set; None if the run has none."""
        return read_confusion(self.path)

    @property
    def kept_models(self) -> list[int]:
        """The rounds whose model was kept (`learning.keep_models`), for `model(round)`."""
        return kept_rounds(self.path)

    def model(self, round: int | None = None) -> "TrainedModel":
        """The trained model: that of the last round, or of a `round` that was kept.

        Its parameters are read without importing anything. Its network, which `apply` needs, is imported when it is
        used first, never from a run directory, and only if its source is the one that the run was started with.
        """
        if self.experiment.learning.kind == "none":
            raise RunNotFound(f'{self.path} has no model, because learning.kind = "none" learns nothing.')
        if round is None and not self.is_done:
            raise RunNotFound(f"{self.path} has no model yet: python -m vefl_sim resume {self.path} completes the run.")
        return saved_model(self.path, round)

    def content_digest(self) -> str:
        """Digest of all tables that a repeated run must reproduce exactly (all but `timings`)."""
        return content_digest(content_files(self.path))

    @property
    def content_fault(self) -> str | None:
        """Why the tables of a finished run are not those that it wrote; None if they are."""
        digest, marked = self.content_digest(), read_file(self.path / "DONE").decode(errors="replace").strip()
        recorded = self.summary.get("content_digest", "nothing")
        same = digest == recorded == marked
        return None if same else f"the digest of the tables is {digest[:16]}, but the summary has {recorded[:16]}"

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, then the DONE marker; delete checkpoints and part files, which are not needed any more."""
        write_text(self.path / "summary.json", json.dumps({"state": "done", **summary}, indent=2) + "\n")
        self.mark("DONE", summary["content_digest"])
        for folder in ("parts", "checkpoints"):
            rmtree(self.path / folder, ignore_errors=True)

    def mark(self, state: Literal["DONE", "FAILED"], text: str) -> None:
        """Write the marker file that shows how the run ended."""
        write_text(self.path / state, text + "\n")


def existing_run(identity: Identity, out: Path) -> Run | None:
    """The run of this configuration that is done or, if none is, the most advanced one; None if there is no run."""
    runs = [Run(path) for path in _same_configuration(identity, out)]
    return max(runs, key=_progress, default=None)


def _progress(run: Run) -> tuple[bool, int, float]:
    last = Checkpoints(run.path).last_readable()
    return run.is_done, last.round if last else 0, run.path.stat().st_mtime


def create_run(identity: Identity, out: Path, toml: str | None = None, settings: Sequence[str] = ()) -> Run:
    """Create a run directory with its files; a number is added if the name is taken. It appears only when complete."""
    return _created(identity, out, toml, settings, lambda path: False)


def find_or_create_run(identity: Identity, out: Path, toml: str | None = None, settings: Sequence[str] = ()) -> Run:
    """The run of this configuration, created if there is none; of processes that do this at once one creates it."""
    return existing_run(identity, out) or _created(
        identity, out, toml, settings, lambda path: _is_run_of(path, identity.configuration)
    )


def _created(
    identity: Identity, out: Path, toml: str | None, settings: Sequence[str], is_shared: Callable[[Path], bool]
) -> Run:
    """Create a run directory, or return the one that another process has created meanwhile if it `is_shared`."""
    experiment = identity.experiment
    partial = out / f".{experiment.run.name}-{uuid4().hex}"
    try:
        partial.mkdir(parents=True)
        write_text(partial / "experiment.toml", toml or as_toml(experiment))
        origin = identity.versions | {"set": list(settings)}
        write_text(partial / "versions.json", json.dumps(origin, indent=2) + "\n")
        write_text(partial / "resolved.toml", as_toml(experiment))
        return Run(_renamed(partial, out / identity.directory, is_shared))
    except (OSError, CannotWrite) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason, where = getattr(cause, "strerror", cause), getattr(cause, "filename", None) or out
        raise BadInput(f"{where} cannot be written ({reason}): choose another --out.") from None
    finally:
        rmtree(partial, ignore_errors=True)


def _renamed(partial: Path, base: Path, is_shared: Callable[[Path], bool]) -> Path:
    """Rename a directory to `base`, or to `base` with the first free number, unless a shared one is found before.

    Renaming is atomic and fails if the name is taken, so of processes that start at once one gets the first free name,
    and the others find its directory.
    """
    for number in count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not path.exists():
            try:
                return partial.rename(path)
            except OSError:
                if not path.exists():
                    raise
        if is_shared(path):
            return path
    raise AssertionError("unreachable: count() does not end")


def _same_configuration(identity: Identity, out: Path) -> list[Path]:
    name = identity.directory
    return [path for path in (out / name, *out.glob(f"{name}-*")) if _is_run_of(path, identity.configuration)]


def _is_run_of(path: Path, digest: str) -> bool:
    """Compare the full digest, because the name has only its beginning; true if versions.json is unreadable."""
    if not (path / "resolved.toml").is_file():
        return False
    try:
        return bool(recorded_versions(path).get("configuration", digest) == digest)
    except NotResumable:
        return True
