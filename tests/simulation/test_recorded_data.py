"""Runs that learn from their own traffic: on the grid, from a recording and with SUMO; resumed and evaluated."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import ROOT, call
from tests.mobility.sumo.towns import grid_net, town
from vefl_sim import Run, from_tables, simulate
from vefl_sim.analysis.evaluation import evaluate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.simulation.scenario import build_scenario, data_of

POSITIONS: dict[str, dict[str, Any]] = {
    "data": {"kind": "positions", "partition": "own"},
    "model": {"factory": "vefl_models.gru:gru"},
    "learning": {"loss": "mse", "batch_size": 16},
}


def small(**tables: dict[str, Any]) -> Experiment:
    usual = {
        "run": {"name": "small", "duration_s": 40.0},
        "traffic": {"mean_in_coverage": 12.0},
        "scheme": {"kind": "fdpc"},
    } | POSITIONS
    return from_tables({name: usual.get(name, {}) | tables.get(name, {}) for name in {**usual, **tables}})


def positions_in_town(folder: Path, factory: str = "vefl_models.gru:gru") -> Experiment:
    """A run with SUMO; data and learning are those of `small`."""
    there = town(grid_net(folder), run={"rounds": 25})
    here = small(model={"factory": factory}, data={"min_samples": 5})
    return there.model_copy(update={name: getattr(here, name) for name in POSITIONS})


def score(run: Run) -> float:
    return evaluate(run, run.model())[0].evaluation.loss


def test_a_recording_of_the_run_gives_the_same_data(tmp_path: Path) -> None:
    """A recording at each step, which has the positions of the run to the last bit."""
    e = small(trace={"mobility_every_s": 0.1}, learning={"kind": "none"})
    run = simulate(e, out=tmp_path)
    mobility = e.mobility.model_copy(update={"kind": "playback", "file": str(run.path)})
    again = e.model_copy(update={"mobility": mobility})
    one, two = data_of(e, Streams(1)), data_of(again, Streams(1))
    assert np.array_equal(one.train_inputs, two.train_inputs)
    assert np.array_equal(one.test_targets, two.test_targets)
    assert one.train_vehicles is not None
    assert two.train_vehicles is not None
    assert np.array_equal(np.unique(one.train_vehicles), np.unique(two.train_vehicles))


@pytest.mark.slow
def test_with_sumo(tmp_path: Path) -> None:
    run = simulate(positions_in_town(tmp_path), out=tmp_path / "runs")
    assert score(run) == run.summary["last_loss"]
    with pytest.MonkeyPatch.context() as patched:  # the traffic of the run is read, not driven again
        patched.setattr("vefl_sim.mobility.sumo.traffic.prepare_sumo", None)
        assert score(run) == run.summary["last_loss"]


def test_the_network_is_checked_before_sumo_drives(tmp_path: Path) -> None:
    experiment = positions_in_town(tmp_path, factory="tests.scripted:no_such_model")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("vefl_sim.mobility.sumo.traffic.drive", None)
        with pytest.raises(ExperimentError, match="has no 'no_such_model'"):
            build_scenario(experiment, tmp_path / "traffic")


def test_each_cv_of_a_run_holds_its_own_samples() -> None:
    scenario = build_scenario(small(learning={"kind": "none"}))
    vehicles = scenario.dataset.train_vehicles
    assert vehicles is not None
    own = [(vehicles[samples] == cv).all() for cv, samples in scenario.shards.items()]
    assert np.mean(own) > 0.6  # the others have recorded too little for training, and got samples of another CV


def test_data_show_prints_the_error_of_constant_velocity(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="data show draws a picture")
    shown = call("data", "show", ROOT / "experiments/positions.toml", cwd=tmp_path)
    assert re.search(r"^constant velocity on the \d+ test samples: rmse 0\.\d{4} \(mse 0\.\d{4}\)$", shown.stdout, re.M)
    assert (tmp_path / "positions-data.png").is_file()
