"""A trajectory that is written and played back has the same scenes, to the last bit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import ROWS_PER_GROUP
from vefl_sim.mobility.recorded.playback import own_scenes, record, trajectory
from vefl_sim.mobility.scene import Played, Scene

STEP_NS = 100_000_000
EMPTY = Scene(0, *(np.zeros(0) for _ in range(5)))


def scenes(count: int, most: int, seed: int = 1) -> list[Scene]:
    """Random scenes, some of them without vehicles."""
    rng = np.random.default_rng(seed)
    drawn = []
    for step in range(count):
        vehicle = np.sort(rng.choice(10**6, rng.integers(most) * int(rng.random() < 0.7), replace=False))
        x_m, y_m, speed_mps = rng.normal(size=(3, vehicle.size))
        drawn.append(Scene(step * STEP_NS, vehicle, x_m, y_m, speed_mps, rng.random(vehicle.size) < 0.5))
    return drawn


def write(path: Path, given: list[Scene]) -> None:
    record(Played(STEP_NS, iter(given)), path, given[-1].time_ns - STEP_NS)


@pytest.mark.parametrize(("count", "most"), [(300, 5), (60, 2 * ROWS_PER_GROUP // 30)])
def test_what_was_written_is_played(tmp_path: Path, count: int, most: int) -> None:
    given = scenes(count, most)
    write(tmp_path / "t.parquet", given)
    played = trajectory(tmp_path / "t.parquet", STEP_NS)
    assert played.scene().same_as(given[0])
    assert all(played.advance().same_as(scene) for scene in given[1:])
    assert played.advance().vehicle.size == 0


def test_it_lasts_until_the_last_recorded_scene(tmp_path: Path) -> None:
    """Also if its last scenes have no vehicles: in a recording, that is not the same as its end."""
    full = scenes(1, 99, seed=3)
    given = [full[0], *(replace(EMPTY, time_ns=step * STEP_NS) for step in range(1, 9))]
    write(tmp_path / "t.parquet", given)
    *_, last = own_scenes(ParquetFile(tmp_path / "t.parquet"))
    assert (last.time_ns, last.vehicle.size) == (8 * STEP_NS, 0)
    assert given[0].vehicle.size > 0


def test_it_is_recorded_up_to_a_step_after_the_end(tmp_path: Path) -> None:
    given = scenes(30, 5)
    record(Played(STEP_NS, iter(given)), tmp_path / "t.parquet", 10 * STEP_NS)
    played = trajectory(tmp_path / "t.parquet", STEP_NS)
    assert all(played.advance().same_as(scene) for scene in given[1:12])
    assert played.advance().vehicle.size == 0
