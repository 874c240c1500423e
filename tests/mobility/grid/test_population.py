import numpy as np
import pytest

from vefl_sim.mobility.grid.demand import start_positions
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.idm import IdmParams

GRID = StreetGrid.square(3, 128.0)
DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 20.0, 5.0)
FIRST, LAST = 12.0, 121.0  # rear out of the last junction; stop line ahead


def place(count):
    return start_positions(count, GRID, DRIVER, np.random.default_rng(1))


def test_the_numbers_asked_for_are_placed_between_junctions():
    count = np.arange(GRID.edges) % 4
    edge, position = place(count)
    np.testing.assert_array_equal(np.bincount(edge, minlength=GRID.edges), count)
    assert position.min() >= FIRST
    assert position.max() <= LAST


@pytest.mark.parametrize(("each", "spacing"), [(2, 31.0), (4, 109 / 4), (12, 109 / 12), (16, 7.0)])
def test_spacing_is_that_of_free_traffic_while_there_is_room(each, spacing):
    # Free: 5 m + 2 m + 1.2 s · 20 m/s = 31 m from front to front. Then an equal share of 109 m, at least 7 m.
    edge, position = place(np.full(GRID.edges, each))
    ahead = np.diff(position)[np.diff(edge) == 0]
    assert ahead.min() >= spacing - 1e-9
    assert ahead.min() < spacing + 1


def test_what_does_not_fit_is_left_out():
    edge, _ = place(np.full(GRID.edges, 100))
    assert np.bincount(edge).tolist() == [16] * GRID.edges  # 1 + ⌊109 / 7⌋


def test_a_single_vehicle_may_be_anywhere():
    position = np.concatenate(
        [start_positions(np.ones(GRID.edges, int), GRID, DRIVER, np.random.default_rng(s))[1] for s in range(30)]
    )
    assert np.histogram(position, 4, (FIRST, LAST))[0] == pytest.approx(position.size / 4, rel=0.1)


def test_nobody():
    edge, position = place(np.zeros(GRID.edges, int))
    assert edge.size == position.size == 0
