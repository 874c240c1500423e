"""Watchers that pass the rounds of a run to an experiment tracker: TensorBoard and MLflow (docs/parts.md).

A step is a round, and times are simulated times. So a round that is simulated again after a crash is the same entry
again. A resumed run first repeats the rounds that its tables hold, also to a tracker that was not there before.
"""

import json
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from filelock import FileLock

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.metric import metric_of
from vefl_sim.records.identity import recorded_versions
from vefl_sim.records.run_directory import Run

if TYPE_CHECKING:
    from vefl_sim.protocol.messages import RoundReport

_COLUMNS = ("accuracy", "loss", "in_coverage", "ordered", "delivered", "p_suc", "cost", "energy_j", "bits_per_joule")
_FLUSH_S = 1.0  # shortest time between two writes, so that short rounds share one
_FLUSH_ROUNDS = 50  # rounds that wait at most; MLflow takes up to 1000 metrics at once
_PARAMETERS = 100  # that MLflow takes at once


class Tracker(ABC):
    """What both trackers share: the metrics of a round, and the parameters and tags of a run."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._resumes = experiment, False
        self._waiting, self._flushed_s = 0, 0.0

    def resuming(self, checkpoint: object, notes: list[str]) -> None:
        """Note that the run has rounds already."""
        self._resumes = True

    def started(self, run: Run, scenario: object) -> None:
        """Open the tracker, and log the rounds before the checkpoint."""
        self._open(run)
        for row in _rows(run) if self._resumes else ():
            self._log(row)

    def round(self, report: "RoundReport") -> None:
        """Log the metrics of a round that has ended."""
        from vefl_sim.records.recorder import round_row  # slow to import, and not needed to find this watcher

        self._log(round_row(report))

    def _log(self, row: Mapping[str, Any]) -> None:
        """Log a row of the rounds table; it is written at once, or with the rounds of the next second."""
        self._add(row, self._metrics(row))
        self._waiting += 1
        if self._waiting >= _FLUSH_ROUNDS or time.monotonic() - self._flushed_s >= _FLUSH_S:
            self._flush()
            self._waiting, self._flushed_s = 0, time.monotonic()

    @abstractmethod
    def _open(self, run: Run) -> None:
        """Begin to track a run, or continue."""

    @abstractmethod
    def _add(self, row: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        """Add the metrics of a round to those that are not written yet."""

    @abstractmethod
    def _flush(self) -> None:
        """Write the rounds that wait."""

    def _metrics(self, row: Mapping[str, Any]) -> dict[str, float]:
        """The metrics of a round, from its row in the rounds table; those without a finite value are left out."""
        metric = metric_of(self._experiment.learning.loss, has_accuracy=row["accuracy"] is not None)
        values = {metric.name: metric.value(row["accuracy"], row["loss"])}
        values |= {name: row[name] for name in _COLUMNS} | {"budget": self._experiment.vefl.budget}
        return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}

    def _parameters(self) -> dict[str, str]:
        """The keys that differ from their defaults, without those that change no result."""
        tables = self._experiment.model_dump(exclude_defaults=True, exclude_none=True)
        keys = {f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()}
        neutral = ("run.name", "run.watch", "run.checkpoint_every")
        return {key: _text(value) for key, value in keys.items() if key not in neutral}

    def _tags(self, run: Run) -> dict[str, str]:
        """Name, configuration digest, seed and scheme of the run."""
        experiment = self._experiment
        return {
            "name": experiment.run.name,
            "digest": str(recorded_versions(run.path).get("configuration", ""))[:16],
            "seed": str(experiment.run.seed),
            "scheme": experiment.scheme.kind,
        }


class TensorBoard(Tracker):
    """Writes an event file into the folder `tensorboard` of the run: tensorboard --logdir runs."""

    packages = ("tensorboardX",)

    def _open(self, run: Run) -> None:
        from tensorboardX.event_file_writer import EventsWriter  # of a SummaryWriter, a thread writes, and hides errors
        from tensorboardX.summary import text

        folder = run.path / "tensorboard"
        folder.mkdir(exist_ok=True)
        for old in folder.glob("events.out.tfevents.*"):  # its rounds are written again
            old.unlink()
        self._file = EventsWriter(str(folder / "events"))
        about = self._tags(run) | self._parameters()
        self._write(0, 0.0, text("experiment", "\n".join(f"    {key} = {value}" for key, value in about.items())))

    def _add(self, row: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        from tensorboardX.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._write(row["round"], row["end_ns"] / 1e9, Summary(value=values))

    def _write(self, step: int, time_s: float, summary: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._file.write_event(Event(step=step, wall_time=time_s, summary=summary))

    def _flush(self) -> None:
        self._file.flush()

    def ended(self, state: str) -> None:
        """Complete the event file."""
        self._file.close()


_STATUS = {"done": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class Mlflow(Tracker):
    """Logs to the MLflow store of $MLFLOW_TRACKING_URI, else to mlflow.db beside the run directories.

    Its MLflow experiment is $MLFLOW_EXPERIMENT_NAME, else vefl_sim; the tag `directory` finds the run again.
    """

    packages = ("mlflow", "sqlalchemy", "alembic")

    def _open(self, run: Run) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a simulation reports to nobody
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        from mlflow import MlflowClient
        from mlflow.entities import Param

        own = run.path.resolve().parent / "mlflow.db"
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        with nullcontext() if uri else _creating(own):  # points of a sweep may create it at once
            self._client = MlflowClient(uri or f"sqlite:///{own}")
            experiment = self._experiment_id(None if uri else own)
        self._pending: list[Any] = []  # metrics that are not written yet
        tags = self._tags(run) | {"directory": str(run.path.resolve())}
        if begun := self._unfinished(experiment, tags):
            self._id = begun
            self._client.update_run(begun, status="RUNNING")
            return
        self._id = str(self._client.create_run(experiment, run_name=run.path.name, tags=tags).info.run_id)
        parameters = [Param(key, value) for key, value in self._parameters().items()]
        for first in range(0, len(parameters), _PARAMETERS):
            self._client.log_batch(self._id, params=parameters[first : first + _PARAMETERS])

    def _experiment_id(self, own: Path | None) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "vefl_sim")
        if found := self._client.get_experiment_by_name(name):
            return str(found.experiment_id)
        return str(self._client.create_experiment(name, own.with_suffix(".artifacts").as_uri() if own else None))

    def _unfinished(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """The MLflow run of the same run directory that an earlier process has begun; None if there is none."""
        for run in self._client.search_runs([experiment], f"tags.digest = '{tags['digest']}'"):
            if run.info.status != "FINISHED" and run.data.tags.get("directory") == tags["directory"]:
                return str(run.info.run_id)
        return None

    def _add(self, row: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        time_ms = row["end_ns"] // 1_000_000
        self._pending += [Metric(name, value, time_ms, row["round"]) for name, value in metrics.items()]

    def _flush(self) -> None:
        self._client.log_batch(self._id, self._pending)
        self._pending = []

    def ended(self, state: str) -> None:
        """Log the last rounds, and how the run has ended."""
        self._flush()
        self._client.set_terminated(self._id, _STATUS[state])


tensorboard, mlflow = TensorBoard, Mlflow
"""The names for `run.watch`."""


def _creating(database: Path) -> AbstractContextManager[Any]:
    """A lock for the time in which a process may create the database."""
    return FileLock(database.with_name(f".{database.name}.lock"))


def _rows(run: Run) -> list[dict[str, Any]]:
    """The rows of the rounds table up to the last checkpoint; missing values are None."""
    rounds = run.rounds
    return cast(list[dict[str, Any]], rounds.astype(object).where(rounds.notna(), None).to_dict("records"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
