"""The recorded positions on a page; where cars are between them is tested in the browser."""

import numpy as np
import pandas as pd
import pytest

from vefl_sim.analysis.report.map import tracks_of
from vefl_sim.core.errors import RunNotFound


def mobility(*rows: tuple[float, int, float, float, float]) -> pd.DataFrame:
    """A table with these rows: time in s, vehicle, x, y, speed."""
    table = pd.DataFrame(rows, columns=["time_ns", "vehicle", "x_m", "y_m", "speed_mps"]).assign(connected=True)
    return table.assign(time_ns=(1e9 * table["time_ns"]).astype(np.int64))


def test_a_vehicle_that_was_missing_has_two_tracks() -> None:
    rows = mobility((0, 7, 0, 0, 10), (1, 7, 10, 0.52, 9), (5, 7, 50, 0, 10), (6, 7, 60, 0, 10))
    first, second = tracks_of(rows, 1.0)
    assert first == [7, 1, *(0, 1000), *(0, 100), *(0, 5), *(100, -10)]  # times, x, y, speeds
    assert second[:4] == [7, 1, 5000, 1000]
    assert tracks_of(mobility(), 1.0) == []


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30])
def test_an_impossible_position_is_refused(wrong: float) -> None:
    with pytest.raises(RunNotFound, match="impossible"):
        tracks_of(mobility((0, 1, wrong, 0, 10)), 1.0)
