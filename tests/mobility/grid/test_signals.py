import numpy as np
import pytest

from tests.mobility.grid.makers import empty_streets
from vefl_sim.experiment.experiment import RoadsTable
from vefl_sim.mobility.grid.roads import EAST, NORTH, SOUTH, WEST
from vefl_sim.mobility.grid.signals import AMBER, GREEN, RED, light, make_signals

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


def test_an_offset_is_how_far_the_cycle_has_gone():
    assert light(plan(offset_s=21.0), 2, EAST, 0) == AMBER


def test_amber_lasts_three_seconds_or_as_long_as_it_takes_to_stop():
    assert plan(stop_s=0.1).amber_ns == 3 * SECOND
    assert plan(stop_s=5.96).amber_ns == round(5.96 * SECOND)


def test_junctions_are_spread_over_the_cycle():
    offsets = make_signals(RoadsTable(), 2000, 4.0, np.random.default_rng(1)).offset_ns / (48 * SECOND)
    assert np.histogram(offsets, 4, (0, 1))[0] == pytest.approx(500, rel=0.15)


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


def test_at_amber_who_can_stop_stops():
    # From 12 m/s at 4.5 m/s²: 16 m; the stop line is at 121 m.
    inner, streets = at_amber(121 - 16.5, 12.0)
    assert streets.fleet.edge[0] == inner
    assert streets.fleet.position_m[0] <= 121
    assert streets.fleet.speed_mps[0] < 0.5


def test_at_amber_who_cannot_stop_goes_on():
    inner, streets = at_amber(121 - 15.5, 12.0)
    assert streets.fleet.came_from[0] == inner
