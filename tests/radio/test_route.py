"""The distance driven: straight between scenes, kept over checkpoints, and known for slots that are over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.radio.test_scattering import GRID, scene
from vefl_sim.radio.route import Route

STEP_S = 0.1
SLOTS = 200  # in a step


def driven(path_m: list[dict[int, float]], past_slots: int = 0) -> Route:
    """A route through scenes with these positions, one step apart; vehicles have line of sight while x < 0."""
    route = Route(GRID.slot_ns, past_slots)
    for number, positions in enumerate(path_m[:-1]):
        here = scene(number * STEP_S, positions)
        route.move(here, here.x_m < 0)
        route.approach(scene((number + 1) * STEP_S, path_m[number + 1]))
    return route


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=9), st.data())
def test_the_distance_is_the_length_of_the_path(path_m: list[float], data: st.DataObject) -> None:
    route = driven([{5: x_m} for x_m in path_m], past_slots=10_000)
    slot = data.draw(st.integers(0, SLOTS * (len(path_m) - 1) - 1))
    step, within = divmod(slot, SLOTS)
    lengths = np.abs(np.diff(path_m))
    expected = lengths[:step].sum() + within / SLOTS * lengths[step]
    assert route.driven_m(slot, 1, np.array([5]))[0, 0] == pytest.approx(expected, abs=1e-12)


def test_many_slots_are_the_single_ones_over_several_steps() -> None:
    route = driven([{1: 0.0, 3: 7.0}, {1: 2.0, 3: 7.0}, {1: 1.0, 3: 9.0, 4: 0.0}, {1: 5.0, 3: 8.0, 4: 1.0}], 10_000)
    cvs = np.array([1, 3, 4])
    whole, sights = route.driven_m(150, 400, cvs), route.sight(150, 400, cvs)
    for index in range(0, 400, 37):
        assert np.array_equal(route.driven_m(150 + index, 1, cvs)[0], whole[index])
        assert np.array_equal(route.sight(150 + index, 1, cvs)[0], sights[index])
    assert whole[:250, 2].tolist() == [0.0] * 250  # before it appeared


def test_a_vehicle_that_appears_or_ends_its_trip() -> None:
    route = driven([{1: 0.0}, {1: 2.0, 2: -5.0}, {2: -6.0}], 10_000)
    assert route.driven_m(SLOTS + 100, 1, np.array([1, 2])).tolist() == [[2.0, 0.5]]
    assert route.sight(0, 1, np.array([1, 2])).tolist() == [[False, True]]  # before it appeared, as at its start


def test_a_step_without_vehicles() -> None:
    route = driven([{}, {3: 1.0}, {3: 4.0}], 10_000)
    distances = route.driven_m(150, 100, np.array([3]))[:, 0]
    assert distances[:50].tolist() == [0.0] * 50
    assert distances[-1] == pytest.approx(3.0 * 49 / SLOTS)


def test_a_restored_route_goes_on() -> None:
    path = [{1: 0.0}, {1: 2.0}, {1: 1.0}, {1: 5.0}]
    whole, part, cvs = driven(path, 300), driven(path[:3], 300), np.array([1])
    restored = Route(GRID.slot_ns, 300)
    restored.restore(part.state())
    last = scene(2 * STEP_S, path[2])
    restored.move(last, last.x_m < 0)
    restored.approach(scene(3 * STEP_S, path[3]))
    assert np.array_equal(restored.driven_m(350, 240, cvs), whole.driven_m(350, 240, cvs))


def test_the_line_of_sight_can_change_within_a_step() -> None:
    route = driven([{1: -2.0, 3: 1.0}, {1: -1.0, 3: 2.0}], 10_000)
    cvs, before = np.array([1, 3]), driven([{1: -2.0, 3: 1.0}, {1: -1.0, 3: 2.0}], 10_000)
    route.change_sight(50 * GRID.slot_ns, lambda vehicles: vehicles == 3)
    assert route.sight(49, 2, cvs).tolist() == [[True, False], [False, True]]
    assert route.driven_m(0, SLOTS, cvs) == pytest.approx(before.driven_m(0, SLOTS, cvs), abs=1e-12)
    route.change_sight(50 * GRID.slot_ns, lambda vehicles: vehicles == 1)  # at the start of what is a step now
    assert route.sight(49, 2, cvs).tolist() == [[True, False], [True, False]]
