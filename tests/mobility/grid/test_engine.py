import numpy as np
import pytest

from tests.mobility.grid.makers import empty_streets
from vefl_sim.mobility.grid.roads import NONE, StreetGrid
from vefl_sim.mobility.idm import IdmParams, follow

GRID = StreetGrid.rectangle(4, 4, 400.0)
DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 15.0, 5.0)
INNER = int(np.flatnonzero(~GRID.leads_out & ~GRID.leads_out[GRID.turns].any(axis=1))[0])


def streets_with(position, dt=0.1, edge=INNER):
    streets = empty_streets(400.0, dt=dt)
    streets.populate(np.full(len(position), edge), np.array(position))
    return streets


def test_in_a_lane_the_motion_is_that_of_follow():
    """Away from junctions the motion is that of IDM alone: the first vehicle leads, the others follow."""
    streets = streets_with([20.0, 50.0, 65.0, 100.0])
    fleet = streets.fleet
    fleet.speed_mps[:] = 9.0, 8.0, 9.0, 3.0
    states = [(fleet.position_m.copy(), fleet.speed_mps.copy())]
    for _ in range(1, 120):
        streets.drive()
        states.append((fleet.position_m.copy(), fleet.speed_mps.copy()))
    position, speed = np.array(states).transpose(1, 0, 2)
    assert position.max() < 330
    start = position[0, 2::-1], speed[0, 2::-1]
    expected = follow((position[:, 3], speed[:, 3]), start, DRIVER, 0.1)
    np.testing.assert_allclose(position[:, 2::-1], expected[0], atol=1e-9)
    np.testing.assert_allclose(speed[:, 2::-1], expected[1], atol=1e-9)


def test_populating_leaves_no_speed_that_is_not_safe():
    streets = streets_with([30.0, 37.1, 44.2, 200.0, 380.0])
    lanes_gap = np.diff(streets.fleet.position_m) - DRIVER.length_m
    speed = streets.fleet.speed_mps
    # As the equation of `easy_speed` says: u·t_dst + (u² − u_ahead²)/2ū₂ ≤ gap − s_saf.
    assert (speed[:-1] * 1.2 + (speed[:-1] ** 2 - speed[1:] ** 2) / 4 <= lanes_gap - 2 + 1e-6).all()
    assert speed[3] == 15.0
    assert speed[1] < 3


def test_an_entry_is_open_when_the_last_one_in_is_far_enough():
    entry = GRID.entries[:1]
    streets = streets_with([])
    assert streets.is_open(entry).all()
    streets.enter(entry)
    assert streets.fleet.speed_mps.tolist() == [15.0]
    streets.fleet.position_m[:] = 5 + 2 + 1.2 * 15 - 0.01
    assert not streets.is_open(entry).any()
    streets.fleet.position_m[:] += 0.02
    assert streets.is_open(entry).all()
    streets.enter(entry)
    assert streets.fleet.vehicle.tolist() == [1, 2]
    assert streets.fleet.position_m[1] == 0
    assert streets.fleet.speed_mps[1] == pytest.approx(15.0, abs=0.01)


def test_nobody_enters_too_fast_to_stop_before_the_first_junction():
    streets = empty_streets(20.0, dt=0.5)
    streets.enter(streets.grid.entries[:1])
    # From u with 4.5 m/s²: u²/9 + 4.5·0.5²/8 = 15 m to the stop line.
    assert streets.fleet.speed_mps[0] == pytest.approx(np.sqrt(9 * (15 - 4.5 * 0.25 / 8)))


def test_crossing_takes_the_chosen_turn_and_chooses_the_next():
    streets = streets_with([390.0])
    fleet = streets.fleet
    target = fleet.next_edge[0]
    for _ in range(1, 60):
        streets.drive()
    assert fleet.edge[0] == target
    assert fleet.came_from[0] == INNER
    assert fleet.next_edge[0] in GRID.turns[target]
    assert not fleet.cleared[0]
    assert fleet.asked_step[0] == NONE
    assert fleet.limit_m[0] == GRID.stop_line_m


def test_over_a_stub_that_leads_out_vehicles_leave():
    streets = streets_with([300.0, 350.0], edge=int(np.flatnonzero(GRID.leads_out)[0]))
    numbers = []
    for _ in range(1, 100):
        streets.drive()
        numbers.append(streets.fleet.vehicle.tolist())
    assert [1, 2] in numbers
    assert [1] in numbers
    assert numbers[-1] == []
