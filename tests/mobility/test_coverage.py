from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vefl_sim.mobility.coverage import Crossing, at, crossings, in_coverage, sojourn_bound_s, visitors
from vefl_sim.mobility.scene import Played, Scene

R = 500.0
STEP_NS = 100_000_000


def scene(time_ns, places, connected=None):
    """A scene from {vehicle number: (x, y)}; all are connected unless `connected` lists the CVs."""
    number = sorted(places)
    points = np.array([places[n] for n in number], np.float64).reshape(-1, 2)
    return Scene(
        time_ns=time_ns,
        vehicle=np.array(number, np.int64),
        x_m=points[:, 0],
        y_m=points[:, 1],
        speed_mps=np.array(number, np.float64),
        connected=np.array([connected is None or n in connected for n in number], np.bool_),
    )


def bound(x, y, **keys):
    return float(sojourn_bound_s(np.array([x]), np.array([y]), radius_m=R, max_speed_mps=20.12, **keys)[0])


class TestSojournBound:
    @pytest.mark.parametrize("method", ["axis", "radial"])
    def test_on_an_axis_outside_and_on_the_circle(self, method):
        assert bound(300, 0, method=method) == pytest.approx(200 / 20.12)
        assert [bound(x, y, method=method) for x, y in ((500, 0), (300, 401), (0, -2000))] == [0, 0, 0]

    def test_off_the_axes_the_radial_distance_is_smaller(self):
        # At (300, 300): axis √(500² − 300²) − 300 = 100 m, radial 500 − 300·√2 = 75.7 m.
        assert bound(300, -300) == pytest.approx(100 / 20.12)
        assert bound(-300, 300, method="radial") == pytest.approx((500 - 300 * 2**0.5) / 20.12)

    def test_is_the_smallest_of_the_four_printed_distances(self):
        rng = np.random.default_rng(1)
        for x, y in rng.uniform(-353, 353, (200, 2)):
            half_x, half_y = np.sqrt(R**2 - y**2), np.sqrt(R**2 - x**2)
            four = abs(x - half_x), abs(x + half_x), abs(y - half_y), abs(y + half_y)
            assert bound(x, y) == pytest.approx(min(four) / 20.12)


class TestInCoverage:
    def test_the_circle_itself_is_inside_and_others_do_not_count(self):
        now = scene(0, {1: (0, 0), 2: (300, 400), 3: (300.001, 400), 4: (1, 1)}, connected={1, 2, 3})
        assert in_coverage(now, R).tolist() == [1, 2]


class TestCrossings:
    def test_exact_instants(self):
        # Along y = 300 the circle is at x = ±400; 10 m in 100 ms.
        before = scene(0, {1: (-403, 300), 2: (395, 300), 3: (0, 0), 4: (600, 600)})
        after = scene(STEP_NS, {1: (-393, 300), 2: (405, 300), 3: (10, 0), 4: (610, 600)})
        assert crossings(before, after, R) == [Crossing(30_000_000, 1, True), Crossing(50_000_000, 2, False)]

    def test_vehicles_that_are_not_connected_do_not_count(self):
        before = scene(0, {1: (-403, 300), 2: (-20, 499.9), 3: (1, 1)}, connected=set())
        after = scene(STEP_NS, {1: (-393, 300), 2: (20, 499.9), 4: (1, 1)}, connected=set())
        assert crossings(before, after, R) == []

    def test_who_appears_or_vanishes_inside_does_so_at_the_second_scene(self):
        before = scene(0, {1: (0, 0), 2: (600, 0), 5: (0, 505)})
        after = scene(STEP_NS, {3: (0, 0), 4: (600, 0), 5: (0, 495)})
        assert crossings(before, after, R) == [
            Crossing(STEP_NS // 2, 5, True),
            Crossing(STEP_NS, 1, False),
            Crossing(STEP_NS, 3, True),
        ]

    def test_an_instant_is_never_that_of_the_first_scene(self):
        # On the circle counts as inside; it moves out at once, so it leaves one nanosecond later.
        before, after = scene(5, {1: (500, 0)}), scene(5 + STEP_NS, {1: (501, 0)})
        assert crossings(before, after, R) == [Crossing(6, 1, False)]
        assert crossings(after, scene(5 + 2 * STEP_NS, {1: (500, 0)}), R) == [Crossing(5 + 2 * STEP_NS, 1, True)]


# Points around the circle at all distances, and some exactly on it.
PLACES = st.one_of(
    st.tuples(st.floats(-520, 520), st.floats(-520, 520)),
    st.tuples(st.floats(480, 520), st.floats(-150, 150)),
    st.tuples(st.floats(499.999, 500.001), st.floats(-1e-3, 1e-3)),
    st.sampled_from([(500.0, 0.0), (300.0, 400.0), (-500.0, 0.0), (0.0, 500.0), (400.0, -300.0)]),
)
WALKS = st.lists(
    st.dictionaries(st.integers(1, 3), PLACES, max_size=3), min_size=2, max_size=12
)  # a vehicle may be missing from some scenes


@settings(max_examples=50)
@given(WALKS, st.sampled_from([1, 2, 10, 1_000, STEP_NS]))
def test_crossings_alternate_and_agree_with_the_scenes(walk, step_ns):
    walk_scenes = [scene(i * step_ns, places) for i, places in enumerate(walk)]
    inside = set(in_coverage(walk_scenes[0], R).tolist())
    for before, after in pairwise(walk_scenes):
        found = crossings(before, after, R)
        assert found == sorted(found, key=lambda c: (c.time_ns, c.cv))
        for crossing in found:
            assert before.time_ns < crossing.time_ns <= after.time_ns
            assert crossing.entered == (crossing.cv not in inside)
            inside ^= {crossing.cv}
        assert inside == set(in_coverage(after, R).tolist())


@settings(max_examples=50)
@given(PLACES, PLACES)
def test_instants_are_right_to_the_nanosecond_in_exact_arithmetic(start, end):
    """One nanosecond before and after, the distance is below and above r, up to the rounding of c."""
    (x0, y0), (x1, y1) = (tuple(map(Fraction, place)) for place in (start, end))

    def excess(time_ns):
        s = Fraction(min(max(time_ns, 0), STEP_NS), STEP_NS)
        return float((x0 + s * (x1 - x0)) ** 2 + (y0 + s * (y1 - y0)) ** 2 - Fraction(R) ** 2)

    for crossing in crossings(scene(0, {1: start}), scene(STEP_NS, {1: end}), R):
        sign = -1 if crossing.entered else 1
        assert sign * excess(crossing.time_ns + 1) > -1e-9
        assert sign * excess(crossing.time_ns - 1) < 1e-9


@settings(max_examples=50)
@given(PLACES, PLACES)
def test_nothing_is_missed_between_two_scenes_outside(start, end):
    """Compare with fine samples of the way: a CV that is well inside at some point has entered and left."""
    share = np.linspace(0, 1, 401)
    way = np.hypot(*(a + share * (b - a) for a, b in zip(start, end, strict=True)))
    found = crossings(scene(0, {1: start}), scene(STEP_NS, {1: end}), R)
    if np.hypot(*start) > R and np.hypot(*end) > R:  # not way[-1], which is rounded
        assert len(found) in (0, 2)
        if way.min() < R - 1e-6:
            assert len(found) == 2
        if way.min() > R + 2:
            assert not found


class TestAt:
    BEFORE = scene(0, {1: (0, 0), 2: (10, 10), 3: (5, 5)})
    AFTER = scene(STEP_NS, {2: (20, 30), 3: (5, 5), 4: (7, 7)})

    def test_in_between(self):
        now = at(self.BEFORE, self.AFTER, 25_000_000)
        assert now.time_ns == 25_000_000
        assert now.vehicle.tolist() == [2, 3]
        np.testing.assert_allclose(now.x_m, [12.5, 5])
        np.testing.assert_allclose(now.y_m, [15, 5])
        np.testing.assert_allclose(now.speed_mps, [2, 3])
        assert now.connected.tolist() == [True, True]

    def test_at_the_scenes_everybody_is_there(self):
        assert at(self.BEFORE, self.AFTER, 0) is self.BEFORE
        assert at(self.BEFORE, self.AFTER, STEP_NS) is self.AFTER


def played(*places):
    return Played(STEP_NS, (scene(i * STEP_NS, p, connected={1, 2, 3, 4, 5}) for i, p in enumerate(places)))


class TestVisitors:
    PLACES_BY_STEP = (
        {1: (0, 0), 2: (-20, 499.9), 3: (520, 0), 5: (600, 0), 6: (0, 0)},
        {2: (20, 499.9), 3: (510, 0), 5: (600, 0)},
        {2: (60, 499.9), 3: (490, 0), 5: (600, 0)},
        {4: (0, 0), 5: (600, 0)},
    )

    @pytest.mark.parametrize(
        ("duration_ns", "expected"),
        [
            (0, [1]),
            (1, [1]),
            (STEP_NS, [1, 2]),  # 2 only crosses the circle between two scenes
            (3 * STEP_NS // 2 - 1, [1, 2]),
            (3 * STEP_NS // 2, [1, 2, 3]),  # 3 enters halfway through the second step
            (3 * STEP_NS, [1, 2, 3, 4]),  # 5 never enters, 6 is not connected
        ],
    )
    def test_all_who_are_inside_at_some_instant(self, duration_ns, expected):
        assert visitors(played(*self.PLACES_BY_STEP), R, duration_ns).tolist() == expected

    def test_they_are_in_the_order_of_their_first_entry(self):
        places = ({5: (0, 0), 4: (1, 0), 2: (505, 0), 1: (600, 0)}, {5: (0, 0), 4: (900, 0), 2: (495, 0), 1: (520, 0)})
        last = {5: (900, 0), 4: (0, 0), 2: (495, 0), 1: (0, 0)}
        assert visitors(played(*places, last), R, 2 * STEP_NS).tolist() == [4, 5, 2, 1]
