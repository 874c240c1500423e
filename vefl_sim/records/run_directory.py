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
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from vefl_sim.core.errors import BadInput, CannotWrite, NotResumable, RunNotFound, VeflError, first_line, printable
from vefl_sim.core.files import read_file, read_json, write_text
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import content_digest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings
from vefl_sim.experiment.toml import as_toml, load_resolved
from vefl_sim.learning.metric import metric_of_summary
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.identity import Identity, recorded_versions
from vefl_sim.records.lock import LOCK_FILES, is_locked
from vefl_sim.records.models import ConfusionMatrix, kept_rounds, read_confusion, saved_model
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import MainTables, PartFile, content_files, read_rows, table_fault
from vefl_sim.records.totals import TABLE_DIGESTS, are_figures, energy_text

if TYPE_CHECKING:
    import pandas as pd

    from vefl_sim.learning.trained_model import TrainedModel

RunState = Literal["done", "failed", "running", "unfinished"]
MAIN_TABLES = ("rounds", "vehicles", "events")  # tables that every run has
FOLDERS = ("tables", "parts", "checkpoints")
_ALL_FOLDERS = (*FOLDERS, "models", "traffic", "tensorboard")
_INITIAL = ("experiment.toml", "resolved.toml", "versions.json")  # files that a run has from its beginning
_RESULTS = ("summary.json", "confusion.json", "model.npz", "model.json", "DONE", "FAILED")
_FILES = (*_INITIAL, *_RESULTS, *LOCK_FILES)
_MAX_CHARACTERS = 200  # of a cell in a notebook
_FIX = "restore it, or run the experiment again with --fresh"


class Run(MainTables):
    """A run directory and its results; tables are read as pandas data frames."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "resolved.toml").is_file():
            raise RunNotFound(f"{self.path} is not a run directory: it has no resolved.toml.")
        if fault := _fault_of_entries(self.path):
            raise RunNotFound(f"{fault}: {_FIX}.")

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
        return {path.name for path in self.path.iterdir()} <= {*_INITIAL, *LOCK_FILES, "traffic"}

    @property
    def loss(self) -> str | None:
        """What is lost of a run that has no readable checkpoint but once had one; None if nothing is."""
        if self.is_done or self._last:
            return None
        checkpoints = self.path / "checkpoints"
        losses = {
            "summary.json": f"{self.path / 'DONE'} is missing, although the run has its summary: restore it",
            "checkpoints/*.npz": f"all files in {checkpoints} are damaged: restore them",
            "parts/rounds-000002.parquet": f"the files in {checkpoints} are missing: restore them",
        }
        return next((loss for files, loss in losses.items() if any(self.path.glob(files))), None)

    @property
    def _last(self) -> Checkpoint | None:
        """The last readable checkpoint."""
        return Checkpoints(self.path).last_readable()

    @property
    def experiment(self) -> Experiment:
        """The experiment with every default, from resolved.toml; reading it imports no user-defined part."""
        return load_resolved(self.path / "resolved.toml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.state})"

    def _repr_html_(self) -> str:
        """The key figures as a table, in a notebook; of a run that cannot be read, the reason."""
        import pandas as pd  # slow to import, and not needed to list runs

        cells = {"run": self.path.resolve().name, "state": self.state}
        try:
            cells |= _cells(self.experiment, self.summary)
        except (VeflError, OSError, OverflowError) as error:
            cells["problem"] = first_line(error)
        shown = {name: printable(text[:_MAX_CHARACTERS]) for name, text in cells.items()}
        with pd.option_context("display.max_colwidth", None):
            return pd.DataFrame([shown]).to_html(index=False)  # it escapes what comes from the run directory

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the whole run or, if it is not done, up to its last checkpoint; empty before the first one."""
        file = self.path / "summary.json"
        if not self.is_done:
            return last.figures if (last := self._last) else {}
        with suppress(OSError, ValueError):
            if are_figures(figures := read_json(file)):
                return dict(figures)
        raise RunNotFound(f"{file} is missing or damaged: run the experiment again with --fresh.")

    def require_complete(self) -> dict[str, Any]:
        """The summary; RunNotFound if a finished run lacks it or a main table. `verify` also checks their content."""
        summary = self.summary
        try:
            for name in MAIN_TABLES:
                for file in self.files(name):
                    ParquetFile(file)
        except BadInput as error:
            raise RunNotFound(error.problems) from None
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
        unrecorded = "the run does not record this table or has no checkpoint yet"
        raise RunNotFound(f"{file} is missing: {_FIX if name in MAIN_TABLES and self.is_done else unrecorded}.")

    def _parts(self, name: str) -> list[PartFile]:
        """The part files of a table up to the last checkpoint."""
        return last.tables.get(name, []) if (last := self._last) else []

    def _rows(self, name: str) -> "pd.DataFrame":
        files = self.files(name)
        faults = [part.fault(file.parent) for part in self._parts(name) for file in files if file.name == part.file]
        if self.is_done:
            faults.append(table_fault(files[0], self.summary.get(TABLE_DIGESTS, {})))
        if fault := next(filter(None, faults), None):
            raise RunNotFound(f"{fault}: {_FIX}.")
        return read_rows(files)

    @property
    def is_checked(self) -> bool:
        """Whether `table` compares what it reads with digests; a failed run, or one of an old version, has none."""
        return TABLE_DIGESTS in self.summary if self.is_done else not any(self.path.glob("tables/*.parquet"))

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

    def branch(self, settings: Settings, **options: Any) -> "Run":
        """The run with other values of keys from a round, or a time, on: see vefl_sim.branch for `options`."""
        branches = import_module("vefl_sim.sweep.branch")  # it knows run directories, not they it
        made: Run = branches.branch(self, settings, **options)
        return made

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
        for folder in () if self.experiment.run.keep_checkpoints else ("parts", "checkpoints"):
            rmtree(self.path / folder, ignore_errors=True)

    def mark(self, state: Literal["DONE", "FAILED"], text: str) -> None:
        """Write the marker file that shows how the run ended."""
        write_text(self.path / state, text + "\n")


def _fault_of_entries(run: Path) -> str | None:
    """The first entry of a run directory that is not what a run writes there, as a phrase; None if all are.

    A link would lead what is written to a run, or deleted from it, out of its folder; a pipe in the place of a file
    would hold up whoever opens it.
    """
    try:
        for name in (*_FILES, *_ALL_FOLDERS):
            path, is_folder = run / name, name in _ALL_FOLDERS
            with suppress(FileNotFoundError):  # it has none, or the process that works on it has just removed it
                mode = path.lstat().st_mode
                if S_ISLNK(mode):
                    return f"{path} is a link, and a run is changed only within its folder"
                if not (S_ISDIR(mode) if is_folder else S_ISREG(mode)):
                    return f"{path} is not a {'folder' if is_folder else 'file'}"
                for entry in [*os.scandir(path)] if is_folder else ():
                    if not entry.is_file(follow_symlinks=False):
                        return f"{entry.path} is not a file"
    except OSError as error:
        return f"{error.filename or run} cannot be read: {error.strerror}"
    return None


def _cells(experiment: Experiment, summary: dict[str, Any]) -> dict[str, str]:
    """Name and text of the key figures of a run; unknown ones are a dash."""
    figure = {name: value for name, value in summary.items() if value is not None}
    metric = metric_of_summary(experiment.learning.loss, figure)
    last = metric.of_summary("last", figure)
    return {
        "scheme": experiment.scheme.kind,
        "rounds": f"{figure.get('rounds', 0)} of {experiment.rounds}",
        metric.name: "–" if last is None else metric.text(last),
        "delivered": f"{figure.get('updates_delivered', '–')} of {figure.get('updates_ordered', '–')}",
        "paid": format(figure["cost"], ",.1f") if "cost" in figure else "–",
        "energy": energy_text(figure["energy_j"]) if "energy_j" in figure else "–",
        "content digest": str(figure.get("content_digest", "–"))[:16],
    }


def existing_run(identity: Identity, out: Path) -> Run | None:
    """The run of this configuration that is done or, if none is, the most advanced one; None if there is no run."""
    paths = (out / identity.directory, *out.glob(f"{identity.directory}-*"))
    runs = [Run(path) for path in paths if _is_run_of(path, identity.configuration)]
    return max(runs, key=_progress, default=None)


def _progress(run: Run) -> tuple[bool, int, float]:
    return run.is_done, last.round if (last := run._last) else 0, run.path.stat().st_mtime


def find_or_create_run(identity: Identity, out: Path, toml: str | None = None, settings: Sequence[str] = ()) -> Run:
    """The run of this configuration, created if there is none; of processes that do this at once one creates it."""
    return existing_run(identity, out) or create_run(identity, out, toml, settings, may_share=True)


def create_run(
    identity: Identity, out: Path, toml: str | None = None, settings: Sequence[str] = (), *, may_share: bool = False
) -> Run:
    """Create a run directory with its files, which appears only when complete; a number is added if the name is taken.

    `may_share`: a run of this configuration that another process has created meanwhile is returned instead.
    """
    experiment, shared = identity.experiment, identity.configuration if may_share else None
    partial = out / f".{experiment.run.name}-{uuid4().hex}"
    try:
        partial.mkdir(parents=True)
        write_text(partial / "experiment.toml", toml or as_toml(experiment))
        origin = identity.versions | {"set": list(settings)}
        write_text(partial / "versions.json", json.dumps(origin, indent=2) + "\n")
        write_text(partial / "resolved.toml", as_toml(experiment))
        return Run(_renamed(partial, out / identity.directory, shared))
    except (OSError, CannotWrite) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason, where = getattr(cause, "strerror", cause), getattr(cause, "filename", None) or out
        raise BadInput(f"{where} cannot be written ({reason}): choose another --out.") from None
    finally:
        rmtree(partial, ignore_errors=True)


def _renamed(partial: Path, base: Path, shared: str | None) -> Path:
    """Rename a directory to `base`, or to `base` with the first free number; unless a run with digest `shared` is met.

    Renaming is atomic and fails if the name is taken, so of processes that start at once one gets the first free name,
    and the others find its directory.
    """
    path, number = base, 1
    while True:
        if not path.exists():
            try:
                return partial.rename(path)
            except OSError:
                if not path.exists():
                    raise
        if shared and _is_run_of(path, shared):
            return path
        number += 1
        path = base.with_name(f"{base.name}-{number}")


def _is_run_of(path: Path, digest: str) -> bool:
    """Compare the full digest, because the name has only its beginning; true if versions.json is unreadable."""
    if not (path / "resolved.toml").is_file():
        return False
    with suppress(NotResumable):
        return bool(recorded_versions(path).get("configuration", digest) == digest)
    return True
