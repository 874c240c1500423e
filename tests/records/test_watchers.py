"""The trackers that come with the program, with the real packages: what they write is what the tables hold."""

import signal
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.resumable import STOPPED, Kill, Killer
from vefl_sim import Run, resume, simulate, with_settings
from vefl_sim.core.errors import RunInterrupted

TENSORBOARD, MLFLOW = (f"vefl_sim.records.watchers:{name}" for name in ("tensorboard", "mlflow"))
SHORT = with_settings(STOPPED, "run.rounds=4", "learning.evaluate_every=2", "run.checkpoint_every=2")
COLUMNS = {"accuracy", "loss", "in_coverage", "ordered", "delivered", "p_suc", "cost", "energy_j", "bits_per_joule"}

Points = dict[str, list[tuple[int, float, float]]]
"""Metric -> (step, simulated seconds, value) of each entry."""


def expected(run: Run) -> Points:
    """What a tracker should hold of a run."""
    rows = run.rounds.assign(budget=1000.0)
    points: Points = {}
    for name in (*COLUMNS, "budget"):
        known = rows[rows[name].notna()]
        points[name] = [*zip(known["round"].astype(int), known["end_ns"] / 1e9, known[name].astype(float), strict=True)]
    return points


def run_directory(out: Path) -> Run:
    [path] = (path for path in out.iterdir() if path.is_dir())
    return Run(path)


STOPPING = SimpleNamespace(round=lambda report: signal.raise_signal(signal.SIGINT))
"""Stops the run after its first round, as Ctrl-C does."""


def interrupted(out: Path, watcher: str, *, killed: bool) -> Run:
    """A run that was killed in round 4, with its last checkpoint after round 2, or was stopped after round 1."""
    experiment = with_settings(SHORT, f'run.watch=["{watcher}"]')
    with pytest.raises(Kill if killed else RunInterrupted):
        simulate(experiment, out=out, watcher=Killer(4) if killed else STOPPING)
    return run_directory(out)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round is written at once."""
    monkeypatch.setattr("vefl_sim.records.watchers._FLUSH_S", 0.0)


# TensorBoard


def events_of(run: Run) -> list[Any]:
    """All entries of the event files of a run: a length, its checksum, an event and its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    events = []
    for file in (run.path / "tensorboard").iterdir():
        content, place = file.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            events.append(Event.FromString(content[place + 12 : place + 12 + length]))
            place += 12 + length + 4
    return events


def points_of(events: list[Any]) -> Points:
    points: Points = {}
    for event in events:
        for value in event.summary.value:
            if value.HasField("simple_value"):
                points.setdefault(value.tag, []).append((event.step, event.wall_time, value.simple_value))
    return points


def same(one: Points, other: Points) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == [pytest.approx(point, rel=1e-6) for point in other[name]], name


def test_tensorboard_holds_every_round_once(tmp_path: Path) -> None:
    run = simulate(with_settings(SHORT, f'run.watch=["{TENSORBOARD}"]'), out=tmp_path)
    events = events_of(run)
    same(points_of(events), expected(run))
    assert [point[0] for point in points_of(events)["accuracy"]] == [2, 4]  # rounds that are evaluated
    [text] = (value for event in events for value in event.summary.value if value.HasField("tensor"))
    words = text.tensor.string_val[0].decode()
    for line in ("scheme = pdpc", "seed = 1", "radio.prbs = 4", "data.image_px = 16", "name = stopped"):
        assert f"    {line}" in words.splitlines()
    assert "run.watch" not in words
    assert "radio.carrier_ghz" not in words  # has its default


def test_tensorboard_continues_without_doubled_rounds(tmp_path: Path, at_once: None) -> None:
    run = interrupted(tmp_path, TENSORBOARD, killed=True)
    before = points_of(events_of(run))["delivered"]
    assert [point[0] for point in before] == [1, 2, 3]
    resume(run)
    same(points_of(events_of(run)), expected(run))
    assert len([*(run.path / "tensorboard").iterdir()]) == 1


# MLflow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of run directories, in which the first run creates MLflow's database, which takes seconds."""
    return tmp_path_factory.mktemp("store")


def mlflow_client(out: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{out / 'mlflow.db'}")


def tracked(client: Any, run: Run) -> Any:
    """The only MLflow run of a run directory."""
    experiment = client.get_experiment_by_name("vefl_sim").experiment_id
    [found] = client.search_runs([experiment], f"tags.directory = '{run.path}'")
    return found


def history(client: Any, run: Run) -> Points:
    found = tracked(client, run)
    entries = {name: client.get_metric_history(found.info.run_id, name) for name in found.data.metrics}
    return {name: [(e.step, e.timestamp / 1000, e.value) for e in entries[name]] for name in entries}


@pytest.fixture(scope="module")
def logged(store: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        return simulate(with_settings(SHORT, f'run.watch=["{MLFLOW}"]'), out=store)


@pytest.mark.slow
def test_mlflow_holds_every_round_once(logged: Run, store: Path) -> None:
    found = tracked(mlflow_client(store), logged)
    same(history(mlflow_client(store), logged), expected(logged))
    assert found.info.status == "FINISHED"
    assert found.info.run_name == logged.path.name
    assert found.data.params["radio.prbs"] == "4"
    assert found.data.params["model.factory"] == "tests.scripted:thousand_weights"
    assert not {"run.watch", "run.name", "run.checkpoint_every", "radio.carrier_ghz"} & found.data.params.keys()
    tags = {"name": "stopped", "seed": "1", "scheme": "pdpc", "directory": str(logged.path)}
    assert found.data.tags.items() >= tags.items()
    assert logged.path.name.endswith(found.data.tags["digest"][:8])


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_mlflow_continues_the_same_run(killed: bool, logged: Run, store: Path, tmp_path: Path, at_once: None) -> None:
    """Also if the store has a run of the same configuration in another directory."""
    (tmp_path / "mlflow.db").write_bytes((store / "mlflow.db").read_bytes())
    run, client = interrupted(tmp_path, MLFLOW, killed=killed), mlflow_client(tmp_path)
    before = tracked(client, run)
    assert before.info.status == ("RUNNING" if killed else "KILLED")
    assert [point[0] for point in history(client, run)["delivered"]] == ([1, 2, 3] if killed else [1])
    resume(run)
    after = tracked(client, run)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    same(history(client, run), expected(run))
    same(history(client, logged), expected(logged))
