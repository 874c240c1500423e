import itertools

import numpy as np
import pytest

from tests.mobility.grid.makers import empty_streets
from vefl_sim.experiment.experiment import RoadsTable
from vefl_sim.mobility.grid.junctions import AMBER, PATHS_MEET, light, make_signals
from vefl_sim.mobility.grid.roads import EAST, NONE, NORTH, SOUTH, STRAIGHT, WEST, StreetGrid

GRID = StreetGrid.rectangle(4, 4, 128.0)
LENGTH = 5.0


def path(into, out):
    return 4 * into + out


def meet(first, second):
    return bool(PATHS_MEET[path(*first), path(*second)])


def lane_to_the_middle(heading):
    """The edge that ends at (0, 0) with this heading."""
    x, y = GRID.xy(np.arange(GRID.edges), np.full(GRID.edges, 128.0))
    return int(np.flatnonzero((np.abs(x) + np.abs(y) < 1e-9) & (GRID.heading == heading))[0])


def streets_with(*vehicles):
    """Streets with vehicles (heading, position) that approach the middle junction and go straight."""
    streets = empty_streets(leaving_weight=1e-9)
    edge = np.array([lane_to_the_middle(heading) for heading, _ in vehicles])
    streets.populate(edge, np.array([position for _, position in vehicles]))
    fleet = streets.fleet
    fleet.next_edge[:] = GRID.turns[edge, STRAIGHT]
    fleet.cleared[:] = False
    fleet.limit_m[:] = GRID.limit_m[edge]
    fleet.asked_step[:] = NONE
    return streets


def crossing_steps(streets, steps=400):
    """First and last step in which a part of each vehicle is between the stop lines of the junction."""
    start = streets.fleet.edge.copy()
    first, last = np.full(start.size, -1), np.full(start.size, -1)
    for step in range(1, steps):
        streets.drive()
        fleet = streets.fleet
        before = (fleet.edge == start) & (fleet.position_m > GRID.stop_line_m)
        behind = (fleet.came_from == start) & (fleet.position_m - LENGTH < GRID.junction_m)
        first[(first < 0) & (before | behind)] = step
        last[before | behind] = step
    return first, last


def test_paths_that_meet():
    assert meet((NORTH, NORTH), (EAST, EAST))  # cross
    assert meet((NORTH, EAST), (EAST, EAST))  # merge
    assert meet((NORTH, WEST), (SOUTH, SOUTH))  # left turn across oncoming traffic
    assert meet((NORTH, WEST), (EAST, NORTH))  # left turns from neighbouring arms
    assert not meet((NORTH, NORTH), (SOUTH, SOUTH))  # oncoming
    assert not meet((NORTH, WEST), (SOUTH, EAST))  # oncoming left turns pass each other
    assert not meet((NORTH, EAST), (WEST, NORTH))  # right turns
    assert not meet((NORTH, NORTH), (NORTH, WEST))  # same lane


def test_the_32_conflict_points_of_a_four_way_junction():
    """The textbook count is 16 crossing, 8 merging and 8 diverging points; three paths merge in 3 pairs."""
    paths = [(i, o) for i in range(4) for o in range(4) if (o - i) % 4 != 2]
    pairs = [(p, q) for p, q in itertools.combinations(paths, 2) if meet(p, q)]
    assert len(pairs) == 16 + 4 * 3
    assert (PATHS_MEET == PATHS_MEET.T).all()


@pytest.mark.parametrize("headings", [(NORTH, EAST, SOUTH, WEST), (EAST, NORTH, WEST, SOUTH)])
def test_four_at_once_all_get_across(headings):
    first, last = crossing_steps(streets_with(*((heading, 70.0) for heading in headings)))
    assert (first > 0).all()
    for i, j in itertools.combinations(range(4), 2):
        if (headings[i] - headings[j]) % 4 != 2:
            assert last[i] < first[j] or last[j] < first[i]


SECOND = 1_000_000_000


def plan(offset_s=0.0, green_s=20.0, stop_s=4.0):
    signals = make_signals(RoadsTable(green_s=green_s), 3, stop_s, np.random.default_rng(1))
    return signals._replace(offset_ns=np.full(3, round(offset_s * SECOND)))


def test_offsets_are_spread_over_the_cycle_and_say_how_far_it_has_gone():
    assert light(plan(offset_s=21.0), 2, EAST, 0) == AMBER
    offsets = make_signals(RoadsTable(), 2000, 4.0, np.random.default_rng(1)).offset_ns / (48 * SECOND)
    assert np.histogram(offsets, 4, (0, 1))[0] == pytest.approx(500, rel=0.15)


def test_amber_lasts_three_seconds_or_as_long_as_it_takes_to_stop():
    assert plan(stop_s=0.1).amber_ns == 3 * SECOND
    assert plan(stop_s=5.96).amber_ns == round(5.96 * SECOND)
