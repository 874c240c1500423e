"""Watchers that pass the rounds of a run to an experiment tracker: TensorBoard and MLflow (docs/parts.md).

A step is a round, and times are simulated times. So a round that is simulated again after a crash is the same entry
again. A resumed run first repeats the rounds that its tables hold, also to a tracker that was not there before.
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.metric import metric_of
from vefl_sim.records.identity import recorded_versions
from vefl_sim.records.run_directory import Run

if TYPE_CHECKING:
    from vefl_sim.protocol.messages import RoundReport

_COLUMNS = ("accuracy", "loss", "in_coverage", "ordered", "delivered", "p_suc", "cost", "energy_j", "bits_per_joule")
_NEUTRAL = {"run": {"name", "watch", "checkpoint_every", "keep_checkpoints"}}  # keys that change no result
_STATUS = {"done": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}  # of MLflow
_FLUSH_S = 1.0  # shortest time between two writes, so that short rounds share one

Entry = tuple[int, int, dict[str, float]]
"""Number, end in nanoseconds and metrics of a round."""


class Tracker:
    """What both trackers share: the metrics of a round, and when they are written.

    A tracker has `_open(run, tags, keys)`, which begins or continues to track a run, and `_write(rounds)`.
    """

    _open: Callable[[Run, dict[str, str], dict[str, str]], None]
    _write: Callable[[list[Entry]], None]

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._waiting, self._written_s = experiment, list[Entry](), 0.0

    def started(self, run: Run, scenario: object) -> None:
        """Open the tracker with tags and with the keys that differ from their defaults; log the rounds so far."""
        experiment, versions = self._experiment, recorded_versions(run.path)
        tags = {"name": experiment.run.name, "digest": str(versions.get("configuration", ""))[:16]}
        tags |= {"seed": str(experiment.run.seed), "scheme": experiment.scheme.kind}
        tables = experiment.model_dump(exclude=_NEUTRAL, exclude_defaults=True, exclude_none=True)
        keys = {f"{table}.{key}": value for table, keys in tables.items() for key, value in keys.items()}
        self._open(run, tags, {key: v if isinstance(v, str) else json.dumps(v) for key, v in keys.items()})
        if run.summary:  # it has a checkpoint
            rounds = run.rounds
            for row in rounds.astype(object).where(rounds.notna(), None).to_dict("records"):
                self._log(row)

    def round(self, report: "RoundReport") -> None:
        """Log the metrics of a round that has ended."""
        from vefl_sim.records.recorder import round_row  # slow to import, and not needed to find this watcher

        self._log(round_row(report))

    def _log(self, row: Mapping[Any, Any]) -> None:
        """Log a row of the rounds table; it is written at once, or with the rounds of the next second."""
        self._waiting.append((row["round"], row["end_ns"], metrics_of(self._experiment, row)))
        if time.monotonic() - self._written_s >= _FLUSH_S:
            self._write(self._waiting)
            self._waiting, self._written_s = [], time.monotonic()


def metrics_of(experiment: Experiment, row: Mapping[Any, Any]) -> dict[str, float]:
    """The metrics of a round, from its row in the rounds table; those without a finite value are left out."""
    metric = metric_of(experiment.learning.loss, has_accuracy=row["accuracy"] is not None)
    values = {metric.name: metric.value(row["accuracy"], row["loss"])}
    values |= {name: row[name] for name in _COLUMNS} | {"budget": experiment.vefl.budget}
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


class TensorBoard(Tracker):
    """Writes an event file into the folder `tensorboard` of the run: tensorboard --logdir runs."""

    packages = ("tensorboardX",)

    def _open(self, run: Run, tags: dict[str, str], keys: dict[str, str]) -> None:
        from tensorboardX.event_file_writer import EventsWriter  # of a SummaryWriter, a thread writes, and hides errors
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import text

        folder = run.path / "tensorboard"
        folder.mkdir(exist_ok=True)
        for old in folder.glob("events.out.tfevents.*"):  # its rounds are written again
            old.unlink()
        self._file = EventsWriter(str(folder / "events"))
        about = "\n".join(f"    {key} = {value}" for key, value in (tags | keys).items())
        self._file.write_event(Event(step=0, wall_time=0.0, summary=text("experiment", about)))

    def _write(self, rounds: list[Entry]) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        for round, end_ns, metrics in rounds:
            values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
            self._file.write_event(Event(step=round, wall_time=end_ns / 1e9, summary=Summary(value=values)))
        self._file.flush()

    def ended(self, state: str) -> None:
        """Complete the event file."""
        self._write(self._waiting)
        self._file.close()


class Mlflow(Tracker):
    """Logs to the MLflow store of $MLFLOW_TRACKING_URI, else to mlflow.db beside the run directories.

    Its MLflow experiment is $MLFLOW_EXPERIMENT_NAME, else vefl_sim; the tag `directory` finds the run again.
    """

    packages = ("mlflow", "sqlalchemy", "alembic")

    def _open(self, run: Run, tags: dict[str, str], keys: dict[str, str]) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a simulation reports to nobody
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        from mlflow import MlflowClient
        from mlflow.entities import Param

        own, uri = run.path.resolve().parent / "mlflow.db", os.environ.get("MLFLOW_TRACKING_URI")
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "vefl_sim")
        with nullcontext() if uri else FileLock(own.with_name(".mlflow.db.lock")):  # points of a sweep may create it
            self._client = MlflowClient(uri or f"sqlite:///{own}")
            found = self._client.get_experiment_by_name(name)
            artifacts = None if uri else own.with_suffix(".artifacts").as_uri()
            experiment = str(found.experiment_id if found else self._client.create_experiment(name, artifacts))
        directory = str(run.path.resolve())
        for earlier in self._client.search_runs([experiment], f"tags.digest = '{tags['digest']}'"):
            if earlier.info.status != "FINISHED" and earlier.data.tags.get("directory") == directory:
                self._id = str(earlier.info.run_id)
                self._client.update_run(self._id, status="RUNNING")
                return
        begun = self._client.create_run(experiment, run_name=run.path.name, tags=tags | {"directory": directory})
        self._id = str(begun.info.run_id)
        self._client.log_batch(self._id, params=[Param(key, value) for key, value in keys.items()])

    def _write(self, rounds: list[Entry]) -> None:
        from mlflow.entities import Metric

        entries = [
            Metric(name, value, end_ns // 1_000_000, round)
            for round, end_ns, metrics in rounds
            for name, value in metrics.items()
        ]
        self._client.log_batch(self._id, entries)

    def ended(self, state: str) -> None:
        """Log the last rounds, and how the run has ended."""
        self._write(self._waiting)
        self._client.set_terminated(self._id, _STATUS[state])


tensorboard, mlflow = TensorBoard, Mlflow
"""The names for `run.watch`."""
