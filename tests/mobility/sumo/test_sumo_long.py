"""Slow tests with SUMO: the calibration of the departure rate, and a run that is killed while SUMO runs."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w

from tests.mobility.sumo.towns import grid_net, town
from tests.resumable import contents, only
from vefl_sim import simulate, with_settings
from vefl_sim.mobility.sumo.demand import _pilot, calibrate, draw_routes
from vefl_sim.mobility.sumo.inputs import gnb_m
from vefl_sim.mobility.sumo.net import read_net
from vefl_sim.mobility.sumo.traffic import drive, driven_trajectory, prepare_sumo

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("wanted", [5.0, 20.0])
def test_as_many_are_in_coverage_as_were_asked_for(tmp_path: Path, wanted: float) -> None:
    experiment = town(
        grid_net(tmp_path),
        run={"rounds": 600},
        mobility={"start_s": None, "step_s": 0.5},
        traffic={"arrivals_per_s": None, "mean_in_coverage": wanted},
    )
    net = read_net(Path(experiment.mobility.file), "net")
    found = calibrate(experiment, draw_routes(net, 10.0), gnb_m(experiment, net))
    assert found.in_coverage == pytest.approx(wanted, rel=0.05)
    played, counts = driven_trajectory(drive(experiment, tmp_path / "traffic"), experiment), []
    for _ in range(1200):
        scene = played.advance()
        counts.append((scene.x_m**2 + scene.y_m**2 <= 150.0**2).sum())
    assert sum(counts) / len(counts) == pytest.approx(wanted, rel=0.25)  # another seed, and ten minutes are short


def test_the_rate_is_for_the_step_of_the_run(tmp_path: Path) -> None:
    """Long steps let too many vehicles pass junctions; a pilot run with the run's own step corrects the rate."""
    experiment = town(
        grid_net(tmp_path), mobility={"start_s": None}, traffic={"arrivals_per_s": None, "mean_in_coverage": 20.0}
    )
    prepared = prepare_sumo(experiment, tmp_path)
    found, routes = prepared.calibration, prepared.routes
    assert found
    assert routes
    assert found.confirming
    assert {pilot.step_s for pilot in found.pilots} == {0.5}
    assert found.confirming.step_s == 0.1
    pilot = with_settings(experiment, "run.seed=0")  # the seed of all pilot runs
    again = _pilot(pilot, routes, prepared.setup.gnb_m, found.rate_per_s, 0.1, 1)
    assert abs(again.in_coverage - 20) <= max(abs(found.confirming.in_coverage - 20), 1.0)


@pytest.mark.parametrize("client", ["libsumo", "traci"])
def test_sigkill_while_sumo_drives_and_later(tmp_path: Path, client: str) -> None:
    experiment = town(grid_net(tmp_path), run={"rounds": 20}, sumo={"client": client})
    straight = simulate(experiment, out=tmp_path / "straight")
    toml = tmp_path / "town.toml"
    toml.write_text(tomli_w.dumps(experiment.model_dump(exclude_defaults=True, exclude_none=True)))
    command = [sys.executable, "-m", "vefl_sim", str(toml), "--out", str(tmp_path / "runs"), "--quiet"]
    for sign in ("*/traffic/trajectory.parquet.partial", "*/checkpoints/0000003.npz", "*/checkpoints/0000009.npz"):
        with subprocess.Popen(command) as process:
            while process.poll() is None and not list((tmp_path / "runs").glob(sign)):
                time.sleep(0.002)
            process.kill()  # no effect if it has ended before, which the next line would detect
        assert only(tmp_path / "runs").state == "unfinished"
    subprocess.run(command, check=True)
    run = only(tmp_path / "runs")
    assert contents(run) == contents(straight)
    assert len((run.path / "sessions.jsonl").read_text().splitlines()) >= 4
