import itertools

import numpy as np
import pytest

from tests.mobility.grid.makers import empty_streets
from vefl_sim.experiment.experiment import RoadsTable
from vefl_sim.mobility.grid.junctions import AMBER, GREEN, PATHS_MEET, RED, clear, light, make_signals
from vefl_sim.mobility.grid.roads import EAST, NONE, NORTH, RIGHT, SOUTH, STRAIGHT, WEST, StreetGrid

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


def clear_in(streets, step):
    clear(streets.fleet, streets._lanes(), streets._ways, streets.signals, streets.rules, (step, 0))


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


def test_who_asks_first_goes_first_and_the_other_waits_until_the_junction_is_free():
    first, last = crossing_steps(streets_with((NORTH, 60.0), (EAST, 55.0)))
    assert 0 < first[0] < last[0] < first[1] < last[1]


@pytest.mark.parametrize("asked", [(5, 3), (3, 5)])
def test_of_two_who_wait_the_one_who_asked_before_is_cleared(asked):
    streets = streets_with((EAST, 120.0), (NORTH, 120.0))
    fleet = streets.fleet
    fleet.speed_mps[:], fleet.asked_step[:] = 3.0, asked
    clear_in(streets, 6)
    assert fleet.cleared.tolist() == [asked[0] == 3, asked[1] == 3]


def test_nobody_enters_the_junction_without_room_behind_it():
    streets = streets_with((NORTH, 60.0), (EAST, 20.0))
    fleet = streets.fleet
    # The second vehicle is placed right after the junction, on the edge that the first one will take.
    fleet.edge[1], fleet.position_m[1], fleet.speed_mps[1] = fleet.next_edge[0], 16.0, 0.0
    fleet.limit_m[1], fleet.cleared[1] = 16.0, True
    fleet.next_edge[1] = GRID.turns[fleet.edge[1], STRAIGHT]
    for _ in range(1, 300):
        streets.drive()
    assert fleet.speed_mps[0] < 0.01
    assert GRID.stop_line_m - 1.5 < fleet.position_m[0] <= GRID.stop_line_m
    assert fleet.edge[0] == lane_to_the_middle(NORTH)


@pytest.mark.parametrize(("ahead_is_cleared", "expected"), [(False, False), (True, True)])
def test_nobody_is_cleared_before_those_ahead_in_the_lane(ahead_is_cleared, expected):
    """One waits for a crossing vehicle; the next one waits too, although it turns right and blocks no other path."""
    streets = streets_with((WEST, 125.0), (NORTH, 120.0), (NORTH, 105.0))
    fleet = streets.fleet
    fleet.next_edge[2] = GRID.turns[fleet.edge[2], RIGHT]
    fleet.speed_mps[:] = 0.0, 0.0, 12.0
    fleet.cleared[:] = True, ahead_is_cleared, False
    clear_in(streets, 1)
    assert fleet.cleared.tolist() == [True, ahead_is_cleared, expected]
    assert fleet.asked_step[2] == 1


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


@pytest.mark.parametrize(
    ("time_s", "one_way", "across"),
    [
        (0, GREEN, RED),
        (19.9, GREEN, RED),
        (20, AMBER, RED),
        (23.9, AMBER, RED),
        (24, RED, GREEN),
        (44, RED, AMBER),
        (47.9, RED, AMBER),
        (48, GREEN, RED),
        (1000 * 48 + 30, RED, GREEN),
    ],
)
def test_the_cycle(time_s, one_way, across):
    colours = [light(plan(), 0, heading, round(time_s * SECOND)) for heading in (EAST, WEST, NORTH, SOUTH)]
    assert colours == [one_way, one_way, across, across]


def test_offsets_are_spread_over_the_cycle_and_say_how_far_it_has_gone():
    assert light(plan(offset_s=21.0), 2, EAST, 0) == AMBER
    offsets = make_signals(RoadsTable(), 2000, 4.0, np.random.default_rng(1)).offset_ns / (48 * SECOND)
    assert np.histogram(offsets, 4, (0, 1))[0] == pytest.approx(500, rel=0.15)


def test_amber_lasts_three_seconds_or_as_long_as_it_takes_to_stop():
    assert plan(stop_s=0.1).amber_ns == 3 * SECOND
    assert plan(stop_s=5.96).amber_ns == round(5.96 * SECOND)


def test_without_signals_everybody_has_green():
    never = make_signals(RoadsTable(signals="none"), 3, 4.0, np.random.default_rng(1))
    assert [light(never, 1, heading, 10**12) for heading in range(4)] == [GREEN] * 4


def at_amber(position_m, speed_mps):
    """Drive a single cleared vehicle through the amber phase; return its first edge and the streets at the end."""
    streets = empty_streets(signals="fixed", leaving_weight=1e-9)
    inner = int(np.flatnonzero(~streets.grid.leads_out & ~streets.grid.leads_out[streets.grid.turns].any(axis=1))[0])
    heading = streets.grid.heading[inner]
    signals = streets.signals
    streets.signals = signals._replace(offset_ns=np.full_like(signals.offset_ns, 0))
    phase_ns = signals.green_ns + signals.amber_ns
    streets.populate(np.array([inner]), np.array([position_m]))
    fleet = streets.fleet
    fleet.speed_mps[:], fleet.cleared[:], fleet.limit_m[:] = speed_mps, True, 128.0 + 121.0
    start_ns = signals.green_ns + (heading % 2) * phase_ns
    streets._step = start_ns // streets._step_ns
    for _ in range(signals.amber_ns // streets._step_ns):
        streets.drive()
    return inner, streets


def test_at_amber_who_can_stop_stops_and_who_cannot_goes_on():
    """From 12 m/s at 4.5 m/s²: 16 m; the stop line is at 121 m."""
    inner, streets = at_amber(121 - 16.5, 12.0)
    assert streets.fleet.edge[0] == inner
    assert streets.fleet.position_m[0] <= 121
    assert streets.fleet.speed_mps[0] < 0.5
    inner, streets = at_amber(121 - 15.5, 12.0)
    assert streets.fleet.came_from[0] == inner
