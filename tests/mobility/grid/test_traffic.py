import itertools
import pickle

import numpy as np
import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.coverage import in_coverage
from vefl_sim.mobility.grid.junctions import PATHS_MEET
from vefl_sim.mobility.grid.roads import NONE
from vefl_sim.mobility.grid.traffic import IdmTraffic

LENGTH = 5.0


def experiment_with(speed=20.12, step=0.1, spread=0.0, signals="fixed", **traffic):
    return Experiment(
        run=RunTable(name="x"),
        roads=RoadsTable(signals=signals),
        mobility=MobilityTable(max_speed_mps=speed, step_s=step, driver_spread=spread),
        traffic=TrafficTable(**traffic),
    )


def traffic_with(seed=1, **keys):
    return IdmTraffic(experiment_with(**keys), Streams(seed))


def scenes(traffic, seconds):
    """The current scene and those of the next seconds."""
    return [traffic.scene()] + [traffic.advance() for _ in range(round(seconds * 1e9 / traffic.step_ns))]


class Watch:
    """Checks lanes, junctions and lights from the positions alone, with its own memory of earlier positions."""

    def __init__(self, traffic):
        self.streets, self.grid = traffic.streets, traffic.streets.grid
        self._was, self._before = {}, {}
        self.over_red = self.stopped_at_red = 0

    def look(self):
        """The smallest gap between bumpers in a lane, and the number of pairs of vehicles on paths that meet."""
        lanes, paths = {}, {}
        for vehicle, edge, next_edge, position, cleared in self._now():
            self._remember(vehicle, edge, position)
            lanes.setdefault(edge, []).append(position)
            if next_edge != NONE and position > self.grid.stop_line_m + 1e-9:
                assert cleared
                paths.setdefault(self.grid.junction[edge], []).append(self._path(edge, next_edge))
            before = self._before.get(vehicle)
            if before is not None and position < LENGTH:
                lanes.setdefault(before, []).append(position + self.grid.block_m)
            if before is not None and position < LENGTH + self.grid.junction_m:
                paths.setdefault(self.grid.junction[before], []).append(self._path(before, edge))
        return self._smallest_gap(lanes), self._meetings(paths)

    def _remember(self, vehicle, edge, position):
        old_edge, old_position = self._was.get(vehicle, (edge, position))
        if old_edge != edge:
            self._before[vehicle] = old_edge
            position_there = position + self.grid.block_m
        else:
            position_there = position
        crossed = old_position <= self.grid.stop_line_m + 1e-9 < position_there - 1e-9
        if crossed and not self.grid.leads_out[old_edge]:
            self.over_red += self._is_red(old_edge)
        self.stopped_at_red += position == old_position and old_edge == edge and self._is_red(edge)
        self._was[vehicle] = edge, position

    def _is_red(self, edge):
        """Whether the light at the end of an edge is red: even headings have green and amber first, then odd ones."""
        if self.grid.leads_out[edge] or not self.streets.signals.green_ns:
            return False
        signals = self.streets.signals
        phase_ns = signals.green_ns + signals.amber_ns
        turn = (self.streets.time_ns + signals.offset_ns[self.grid.junction[edge]]) // phase_ns % 2
        return bool(turn != self.grid.heading[edge] % 2)

    def _now(self):
        fleet = self.streets.fleet
        arrays = (fleet.vehicle, fleet.edge, fleet.next_edge, fleet.position_m, fleet.cleared)
        return zip(*(array.tolist() for array in arrays), strict=True)

    def _path(self, edge, next_edge):
        return 4 * self.grid.heading[edge] + self.grid.heading[next_edge]

    @staticmethod
    def _smallest_gap(lanes):
        pairs = (pair for lane in lanes.values() for pair in itertools.pairwise(sorted(lane)))
        return min((ahead - LENGTH - behind for behind, ahead in pairs), default=np.inf)

    @staticmethod
    def _meetings(paths):
        pairs = (pair for inside in paths.values() for pair in itertools.combinations(inside, 2))
        return sum(bool(PATHS_MEET[one, other]) for one, other in pairs)


CASES = [
    # speed, step, vehicles in coverage, seconds, other keys
    (20.12, 0.1, 35, 1000, {}),
    (0.45, 1.0, 60, 600, {}),
    (11.18, 0.5, 60, 300, {"through_share": 0.5}),
    (20.12, 0.5, 35, 600, {"signals": "none"}),
    (20.12, 0.05, 35, 30, {"spread": 0.4}),
    (26.82, 1.0, 35, 2000, {"spread": 0.2}),
    (26.82, 1.0, 400, 120, {}),
    (26.82, 1.0, 400, 120, {"signals": "none", "spread": 0.5}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("speed", "step", "vehicles", "seconds", "keys"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_nobody_overlaps_meets_jumps_speeds_runs_a_red_light_or_brakes_impossibly(
    speed, step, vehicles, seconds, keys, seed
):
    traffic = traffic_with(seed, speed=speed, step=step, mean_in_coverage=float(vehicles), **keys)
    watch, before = Watch(traffic), traffic.scene()
    watch.look()
    for _ in range(round(seconds / step)):
        after = traffic.advance()
        gap, meetings = watch.look()
        assert gap > 0.3
        assert meetings == 0
        assert watch.over_red == 0
        assert after.speed_mps.min(initial=0) >= 0
        assert after.speed_mps.max(initial=0) <= speed
        _, old, new = np.intersect1d(before.vehicle, after.vehicle, assume_unique=True, return_indices=True)
        driven = np.hypot(after.x_m[new] - before.x_m[old], after.y_m[new] - before.y_m[old])
        # Not farther than at the mean of both speeds; shorter only if it turned a corner.
        mean = (after.speed_mps[new] + before.speed_mps[old]) / 2
        assert (driven <= mean * step + 1e-9).all()
        assert (before.speed_mps[old] - after.speed_mps[new] <= 9.0 * step + 1e-9).all()
        before = after
    assert watch.stopped_at_red or traffic.streets.signals.green_ns == 0 or speed < 1


def test_vehicles_appear_and_vanish_only_at_the_border_with_ascending_numbers_that_are_never_used_again():
    seen = scenes(traffic_with(arrivals_per_s=1.0, step=0.5), 120)
    first = highest = seen[0].vehicle[-1]
    vanished = 0
    assert seen[0].vehicle.tolist() == list(range(1, highest + 1))
    for before, after in itertools.pairwise(seen):
        is_new, is_gone = ~np.isin(after.vehicle, before.vehicle), ~np.isin(before.vehicle, after.vehicle)
        outermost = np.maximum(np.abs(after.x_m), np.abs(after.y_m))
        assert (outermost[is_new] == 640).all()
        assert (np.maximum(np.abs(before.x_m), np.abs(before.y_m))[is_gone] > 640 - 20.12 * 0.5).all()
        assert (np.diff(after.vehicle) > 0).all()
        assert after.vehicle[is_new].tolist() == list(range(highest + 1, highest + 1 + is_new.sum()))
        highest, vanished = highest + is_new.sum(), vanished + is_gone.sum()
    assert highest - first > 90
    assert vanished > 20


def test_the_same_seed_gives_the_same_traffic_bit_for_bit_and_scenes_do_not_change_afterwards():
    one, two, other = (traffic_with(seed) for seed in (7, 7, 8))
    first = one.scene()
    kept = pickle.loads(pickle.dumps(first))
    assert all(a.same_as(b) for a, b in zip(scenes(one, 30), scenes(two, 30), strict=True))
    assert first.same_as(kept)
    assert not first.same_as(other.scene())


def vehicles_in_coverage(seconds, **keys):
    return [s.vehicle[np.hypot(s.x_m, s.y_m) <= 500] for s in scenes(traffic_with(**keys), seconds)]


def test_35_in_coverage_and_about_290_unique_vehicles_in_2000_s():
    run = vehicles_in_coverage(2000, step=1.0)
    assert 30 < np.mean([vehicles.size for vehicles in run]) < 40
    assert 260 < np.unique(np.concatenate(run)).size < 320


def test_a_populated_start_is_like_what_follows():
    counts, speeds = [], []
    for seed in range(12):
        start, *_, end = scenes(traffic_with(seed, step=0.5), 60)
        counts.append((start.vehicle.size, end.vehicle.size))
        speeds.append((start.speed_mps.mean(), end.speed_mps.mean()))
    first, last = np.mean(counts, axis=0)
    assert first == pytest.approx(last, rel=0.1)
    assert np.mean(speeds, axis=0)[0] == pytest.approx(np.mean(speeds, axis=0)[1], rel=0.1)


def test_share_of_connected_vehicles():
    keys = {"warm_start": False, "arrivals_per_s": 3.0, "step": 1.0}
    part, more, all_of_them = (scenes(traffic_with(cv_share=share, **keys), 120)[-1] for share in (0.3, 0.6, 1.0))
    assert part.connected.mean() == pytest.approx(0.3, abs=0.08)
    assert more.connected.mean() == pytest.approx(0.6, abs=0.08)
    assert (more.connected >= part.connected).all()  # a larger share connects more of the same vehicles
    assert all_of_them.connected.all()


@pytest.mark.parametrize(
    ("roads", "mobility", "traffic"),
    [
        ({}, {"step_s": 1.0, "headway_s": 0.05, "min_gap_m": 0.05, "max_accel_mps2": 4.0}, {"mean_in_coverage": 200.0}),
        ({"block_m": 20.0, "blocks": 50}, {"step_s": 0.5}, {"mean_in_coverage": 100.0}),
        ({}, {"step_s": 0.5}, {"mean_in_coverage": 300.0}),
        ({}, {"step_s": 0.5}, {"warm_start": False, "arrivals_per_s": 29.0}),
    ],
    ids=["headway and gap far below what IDM alone could maintain", "short blocks", "dense", "more than can enter"],
)
def test_nobody_collides_in_extreme_traffic_either(roads, mobility, traffic):
    traffic = IdmTraffic(
        Experiment(
            run=RunTable(name="x"),
            roads=RoadsTable(**roads),
            mobility=MobilityTable(**mobility),
            traffic=TrafficTable(**traffic),
        ),
        Streams(1),
    )
    watch = Watch(traffic)
    for _ in range(100):
        gap, meetings = watch.look()
        assert gap > 0
        assert meetings == 0
        traffic.advance()
    assert traffic.scene().speed_mps.mean() > 1.0


def test_vehicles_longer_than_a_block_are_refused():
    experiment = Experiment(
        run=RunTable(name="x"), roads=RoadsTable(block_m=20.0, blocks=50), mobility=MobilityTable(length_m=12.0)
    )
    with pytest.raises(ExperimentError, match=r"mobility\.length_m"):
        IdmTraffic(experiment, Streams(1))


def test_after_settling_everything_begins_anew():
    """The time is 0, vehicles are numbered from 1, and newcomers draw from their own streams."""
    streets = IdmTraffic(experiment_with(warm_start=False, arrivals_per_s=0.001), Streams(5)).streets
    streets.enter(streets.grid.entries[:20])
    streets.settle(np.random.default_rng(1))
    assert streets.time_ns == 0
    assert streets.fleet.vehicle.tolist() == list(range(1, streets.fleet.size + 1))
    assert streets.fleet.asked_step.max() <= 0
    entry, newcomer = streets.grid.entries[20:21], streets.fleet.size + 1
    streets.enter(entry)
    draws = Streams(5).generator("traffic", newcomer).random(9)  # connected, five for the driver, goal, turn, next turn
    assert streets.fleet.next_edge[-1] == streets._routes.next_edge(entry, np.array([NONE]), draws[7:8])
    assert streets._generators[newcomer].random() == draws[8]


@pytest.mark.parametrize(("step", "gap"), [(1.0, 0.1), (0.1, 2.0)])
def test_who_is_cleared_gets_wholly_out_of_the_junction(step, gap):
    """Also if the gap that long steps cause is larger than the drivers' own gap."""
    traffic = TrafficTable(warm_start=False, arrivals_per_s=0.001)
    mobility = MobilityTable(step_s=step, min_gap_m=gap)
    streets = IdmTraffic(
        Experiment(run=RunTable(name="x"), roads=RoadsTable(signals="none"), mobility=mobility, traffic=traffic),
        Streams(1),
    ).streets
    grid = streets.grid
    behind = next(e for e in range(grid.edges) if not grid.leads_out[e] and not grid.leads_out[grid.turns[e]].any())
    ahead = int(grid.turns[behind, 1])
    streets.populate(np.array([behind, ahead]), np.array([60.0, streets.rules.room_m + LENGTH]))
    fleet = streets.fleet
    fleet.next_edge[0], fleet.speed_mps[1] = ahead, 0.0
    fleet.limit_m[1], fleet.cleared[1] = fleet.position_m[1], True  # stands exactly at the end of the required room
    fleet.cleared[0], fleet.limit_m[0] = True, grid.block_m + grid.stop_line_m
    fleet.speed_mps[0] = 1.0
    for _ in range(round(120 / step)):
        streets.drive()
    assert fleet.edge[0] == ahead
    assert fleet.position_m[0] - LENGTH >= grid.junction_m - 1e-6


def test_with_exits_outside_no_trip_begins_or_ends_in_coverage():
    """On a grid that is narrower than the coverage; with all exits open, some trips do."""
    appeared = {}
    for exits in ("all", "outside"):
        experiment = Experiment(
            run=RunTable(name="x"),
            roads=RoadsTable(blocks=(8, 4), exits=exits),
            mobility=MobilityTable(step_s=0.5),
            traffic=TrafficTable(through_share=0.5, mean_in_coverage=40.0),
        )
        seen = scenes(IdmTraffic(experiment, Streams(1)), 200)
        appeared[exits] = sum(
            len(np.setdiff1d(in_coverage(one, 500.0), other.vehicle))
            for before, after in itertools.pairwise(seen)
            for one, other in ((before, after), (after, before))
        )
    assert appeared["all"] > 0
    assert appeared["outside"] == 0
