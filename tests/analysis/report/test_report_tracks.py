"""The ways of vehicles on a page: near the recorded rows, near the true trajectory, and with few points."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.report.pages import RUSH, trajectory
from vefl_sim.analysis.report.map import TOLERANCE_M, UNIT_M, UNIT_S, Track, tracks_of
from vefl_sim.core.errors import RunNotFound


def mobility(*rows: tuple[float, int, float, float, float]) -> pd.DataFrame:
    """A table with these rows: time in s, vehicle, x, y, speed."""
    table = pd.DataFrame(rows, columns=["time_ns", "vehicle", "x_m", "y_m", "speed_mps"]).assign(connected=True)
    return table.assign(time_ns=(1e9 * table["time_ns"]).astype(np.int64))


def distances(tracks: list[Track], rows: pd.DataFrame) -> np.ndarray:
    """How far the tracks are from the rows, where they have the vehicle at that time."""
    found = []
    for track in tracks:
        times = track.points[:, 0] * UNIT_S
        own = rows[(rows["vehicle"] == track.vehicle) & (rows["time_ns"] / 1e9).between(times[0], times[-1])]
        x, y = (np.interp(own["time_ns"] / 1e9, times, track.points[:, axis] * UNIT_M) for axis in (1, 2))
        found.append(np.hypot(x - own["x_m"], y - own["y_m"]))
    return np.concatenate(found)


def test_a_way_between_the_rows_is_near_the_true_one() -> None:
    truth = trajectory(30)
    rows = truth[truth["time_ns"] % 10**9 == 0]
    tracks = tracks_of(rows, 1.0, roads=RUSH.roads)
    assert len(distances(tracks, rows)) == len(rows)
    assert distances(tracks, rows).max() < 1
    between = distances(tracks, truth)
    assert len(between) > 0.95 * len(truth)  # without what a vehicle drove before its first and after its last row
    assert between.max() < 1  # a straight line between rows cuts corners by up to 9 m
    assert sum(len(track.points) for track in tracks) < 0.8 * len(rows)


def test_a_vehicle_that_was_missing_has_two_tracks() -> None:
    rows = mobility((0, 7, 0, 0, 10), (1, 7, 10, 0, 10), (5, 7, 50, 0, 10), (6, 7, 60, 0, 10))
    tracks = tracks_of(rows, 1.0, roads=None)
    assert [track.points[:, 0].tolist() for track in tracks] == [[0, 1000], [5000, 6000]]
    assert tracks[0].embedded() == [7, 1, 0, 0, 0, 1000, 100, 0]


def test_no_rows_give_no_tracks() -> None:
    assert tracks_of(mobility(), 1.0, roads=None) == []


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30])
def test_an_impossible_position_is_refused(wrong: float) -> None:
    with pytest.raises(RunNotFound, match="impossible"):
        tracks_of(mobility((0, 1, wrong, 0, 10)), 1.0, roads=None)


@given(
    st.lists(
        st.tuples(st.floats(-500, 500), st.floats(-500, 500), st.floats(0, 40)),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_every_row_is_met(rows: list[tuple[float, float, float]]) -> None:
    table = mobility(*((second, 3, *row) for second, row in enumerate(rows)))
    tracks = tracks_of(table, 1.0, roads=None)
    assert distances(tracks, table).max() <= np.sqrt(2) * (TOLERANCE_M + UNIT_M)
