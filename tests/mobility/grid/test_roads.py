import numpy as np
import pytest

from vefl_sim.experiment.experiment import RoadsTable
from vefl_sim.mobility.grid.roads import LEFT, NONE, RIGHT, STEP_X, STEP_Y, STRAIGHT, StreetGrid


@pytest.fixture(params=[(1, 1), (2, 2), (8, 8), (2, 5)])
def grid(request):
    return StreetGrid.rectangle(*request.param, 128.0)


def ends(grid):
    return np.array(grid.xy(np.arange(grid.edges), np.full(grid.edges, grid.block_m))).T


def starts(grid):
    return np.array(grid.xy(np.arange(grid.edges), np.zeros(grid.edges))).T


def test_every_edge_has_its_opposite(grid):
    lanes = {(*a, *b) for a, b in zip(starts(grid).tolist(), ends(grid).tolist(), strict=True)}
    assert len(lanes) == grid.edges
    assert {(c, d, a, b) for a, b, c, d in lanes} == lanes


def test_turns_start_where_the_edge_ends_and_point_the_right_way(grid):
    inner = np.flatnonzero(~grid.leads_out)
    assert (grid.turns[inner] != NONE).all()
    assert (grid.turns[grid.leads_out] == NONE).all()
    for edge in inner:
        heading = np.array([STEP_X[grid.heading[edge]], STEP_Y[grid.heading[edge]]])
        rotated = {LEFT: [-heading[1], heading[0]], STRAIGHT: heading, RIGHT: [heading[1], -heading[0]]}
        for turn, direction in rotated.items():
            target = grid.turns[edge, turn]
            np.testing.assert_allclose(starts(grid)[target], ends(grid)[edge], atol=1e-9)
            np.testing.assert_allclose(
                ends(grid)[target] - starts(grid)[target], np.multiply(direction, 128.0), atol=1e-9
            )


def test_junction_numbers_are_places(grid):
    inner = np.flatnonzero(~grid.leads_out)
    place = {}
    for edge in inner:
        place.setdefault(int(grid.junction[edge]), set()).add(tuple(ends(grid)[edge].tolist()))
    assert all(len(points) == 1 for points in place.values())
    assert len(set.union(*place.values())) == len(place)
    assert np.bincount(np.unique(grid.junction[inner], return_inverse=True)[1]).tolist() == [4] * len(place)


@pytest.mark.parametrize("radius", [10.0, 128.0, 200.0, 500.0, 5000.0])
def test_metres_within_by_counting_centimetres(radius):
    grid = StreetGrid.rectangle(4, 4, 128.0)
    sampled = np.zeros(grid.edges)
    for position in np.arange(0.05, 128, 0.1):
        x, y = grid.xy(np.arange(grid.edges), np.full(grid.edges, position))
        sampled += 0.1 * (x**2 + y**2 <= radius**2)
    np.testing.assert_allclose(grid.metres_within(radius), sampled, atol=0.11)


class TestRectangle:
    @pytest.mark.parametrize(("x", "y"), [(1, 1), (3, 3), (8, 4)])
    def test_sizes_and_reach(self, x, y):
        grid = StreetGrid.rectangle(x, y, 128.0)
        assert len(np.unique(grid.junction[grid.junction != NONE])) == (x + 1) * (y + 1)
        assert grid.entries.size == grid.exits.size == grid.leads_out.sum() == 2 * (x + 1) + 2 * (y + 1)
        assert grid.edges == 2 * (x * (y + 1) + y * (x + 1)) + 2 * grid.exits.size
        inner = ends(grid)[~grid.leads_out]
        assert np.abs(inner).max(axis=0).tolist() == [64 * x, 64 * y]

    def test_streets_that_end_in_coverage_can_be_closed(self):
        grid = StreetGrid.of(RoadsTable(blocks=(8, 4), exits="outside"), 500.0)
        assert 0 < grid.exits.size == grid.entries.size < 28
        assert np.hypot(*starts(grid)[grid.entries].T).min() >= 500
        assert np.hypot(*ends(grid)[grid.exits].T).min() >= 500
        open_everywhere = StreetGrid.of(RoadsTable(blocks=(8, 4)), 500.0)
        assert open_everywhere.exits.size == 28

    @pytest.mark.parametrize("blocks", [(8, 4), (5, 3), (4, 7), (6, 6)])
    def test_the_nearest_end_of_a_street(self, blocks):
        roads = RoadsTable(blocks=blocks)
        grid = StreetGrid.of(roads, 500.0)
        assert roads.nearest_end_m == pytest.approx(np.hypot(*ends(grid)[grid.exits].T).min())
