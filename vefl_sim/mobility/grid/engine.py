"""The vehicles on the street grid, moved one step at a time; the arrival process is in `traffic.py`."""

import numpy as np

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.progress import report
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.grid.car_following import Rules, ease, safe_start_speed, start_speed
from vefl_sim.mobility.grid.fleet import DRAWS, Drivers, Fleet, typical_driver
from vefl_sim.mobility.grid.junctions import clear, make_signals
from vefl_sim.mobility.grid.roads import NONE
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.grid.step import Lanes, line_up, step

SETTLED_S = 100.0  # or two cycles of the traffic lights, if that is longer
MOST_STEPS = 10_000  # of the settling phase, however short the steps are


class TrafficEngine:
    """A fleet on a street grid, and the rules by which it moves.

    In each step junctions are assigned to vehicles, every vehicle chooses a speed from the state at the beginning
    of the step, and all move at once. Every vehicle draws its decisions from its own random stream, in the order in
    which it needs them.
    """

    def __init__(self, experiment: Experiment, routes: GridRoutes, dt_s: float, streams: Streams) -> None:
        mobility, grid = experiment.mobility, routes.grid
        self.grid, self._ways, self._routes, self._streams = grid, grid.ways, routes, streams
        self._typical, self._spread = typical_driver(mobility), mobility.driver_spread
        self._cv_share = experiment.traffic.cv_share
        self.rules = Rules.of(grid, self._typical, self._spread, dt_s)
        stop_s = mobility.max_speed_mps / self.rules.stop_decel_mps2 + 2 * dt_s
        self.signals = make_signals(experiment.roads, self._ways.junctions, stop_s, streams.generator("signals"))
        self._step, self._step_ns = 0, to_ns(dt_s)
        self._generators: dict[int, np.random.Generator] = {}
        self._created, self._stream_name = 0, "population"
        self.fleet = self._newcomers(np.zeros(0, np.int64), np.zeros(0))

    def populate(self, edge: Ints, position_m: Floats) -> None:
        """Create vehicles all at once, clear junctions for them, and set safe speeds."""
        self.fleet = self.fleet.join(self._newcomers(edge, position_m))
        fleet, lanes = self.fleet, self._lanes()
        fleet.speed_mps[:] = fleet.driver.desired_speed_mps
        while clear(fleet, lanes, self._ways, self.signals, self.rules, self._now):
            pass
        fleet.speed_mps[:] = np.minimum(fleet.speed_mps, self._approach_speed(fleet.limit_m - fleet.position_m))
        while ease(fleet, lanes, self._ways, self.rules):
            pass

    def settle(self, rng: np.random.Generator) -> None:
        """Drive until the traffic no longer depends on its initial positions, then set the clock to 0.

        Each vehicle that leaves is replaced by a new one. The vehicles present at the end are numbered from 1.
        """
        vehicles, cycle_s = self.fleet.size, to_s(self.signals.cycle_ns)
        steps = min(round(max(SETTLED_S, 2 * cycle_s) / self.rules.dt_s), MOST_STEPS)
        for _ in range(steps):
            self.drive()
            self.refill(vehicles, rng)
            report("the traffic settles", to_s(self.time_ns), steps * self.rules.dt_s)
        self._restart_clock()

    def refill(self, vehicles: int, rng: np.random.Generator) -> None:
        """Create the vehicles missing from a total of `vehicles`, at random entries that are open."""
        if missing := vehicles - self.fleet.size:
            entries = rng.choice(self.grid.entries, min(missing, self.grid.entries.size), replace=False)
            self.enter(entries[self.is_open(entries)])

    def _restart_clock(self) -> None:
        """Set the time to 0 and number the vehicles from 1; the traffic lights continue without a break."""
        fleet = self.fleet
        self.signals = self.signals._replace(offset_ns=self.signals.offset_ns + self.time_ns)
        self._generators = dict(enumerate((self._generators[number] for number in fleet.vehicle.tolist()), 1))
        fleet.vehicle[:] = np.arange(1, fleet.size + 1)
        fleet.asked_step[fleet.asked_step != NONE] = 0
        # Another stream, so that newcomers do not repeat earlier draws.
        self._step, self._created, self._stream_name = 0, fleet.size, "traffic"

    def drive(self) -> None:
        """Move all vehicles by one step."""
        over = step(self.fleet, self._ways, self.signals, self.rules, self._now)
        self._step += 1
        if over:
            self._cross((self.fleet.position_m >= self.grid.block_m).nonzero()[0])

    @property
    def time_ns(self) -> int:
        """Current time."""
        return self._step * self._step_ns

    @property
    def _now(self) -> tuple[int, int]:
        return self._step, self.time_ns

    def is_open(self, entry: Ints) -> Bools:
        """Whether a vehicle could enter here and follow the previous one comfortably."""
        gap_m, leader_mps = self._last_vehicle(entry)
        typical = self._typical
        return gap_m >= (typical.min_gap_m + typical.headway_s * leader_mps) * (1 + self._spread)

    def enter(self, entry: Ints) -> None:
        """Create one vehicle at the start of each of these edges, which must be open and distinct."""
        gap_m, leader_mps = self._last_vehicle(entry)
        self.fleet = self.fleet.join(self._newcomers(entry, np.zeros(entry.size)))
        driver, speed_mps = self.fleet.driver, self.fleet.speed_mps
        first = speed_mps.size - entry.size
        for i in range(entry.size):
            speed_mps[first + i] = start_speed(driver, first + i, gap_m[i], leader_mps[i], self.rules)
        speed_mps[first:] = np.minimum(speed_mps[first:], self._approach_speed(self.grid.limit_m[entry]))

    def _newcomers(self, edge: Ints, position_m: Floats) -> Fleet:
        """New vehicles at standstill, numbered in this order."""
        vehicle = np.arange(self._created + 1, self._created + 1 + edge.size)
        self._created += edge.size
        self._generators |= {number: self._streams.generator(self._stream_name, number) for number in vehicle.tolist()}
        connected = self._draw(vehicle) < self._cv_share
        uniform = np.array([self._draw(vehicle) for _ in range(DRAWS)]).T
        goal = self._routes.goal(edge, self._draw(vehicle))
        return Fleet(
            vehicle=vehicle,
            connected=connected,
            driver=Drivers.drawn(self._typical, self._spread, uniform),
            edge=edge,
            position_m=position_m,
            speed_mps=np.zeros(edge.size),
            next_edge=self._routes.next_edge(edge, goal, self._draw(vehicle)),
            came_from=np.full(edge.size, NONE),
            goal=goal,
            limit_m=self.grid.limit_m[edge],
            cleared=np.zeros(edge.size, np.bool_),
            asked_step=np.full(edge.size, NONE),
        )

    def _last_vehicle(self, edge: Ints) -> tuple[Floats, Floats]:
        """Free distance from the start of each edge to the last vehicle that entered it, and its speed."""
        lanes = self._lanes()
        return lanes.back_m[edge], np.append(self.fleet.speed_mps, 0.0)[lanes.last[edge]]

    def _approach_speed(self, way_m: Floats) -> Floats:
        """Highest speeds at which vehicles may be placed at these distances from their stop lines."""
        rules = self.rules
        return np.array([safe_start_speed(way, 0.0, rules.stop_decel_mps2, rules.dt_s) for way in way_m.tolist()])

    def _cross(self, over: Ints) -> None:
        """Move vehicles that passed the end of their edge to the next edge, or remove them if there is none.

        No vehicle passes two ends in one step: its clear way ends at the stop line of the next edge at the latest.
        """
        fleet, leads_out = self.fleet, self.fleet.next_edge[over] == NONE
        crossing, leaving = over[~leads_out], over[leads_out]
        edge = fleet.next_edge[crossing]
        fleet.came_from[crossing] = fleet.edge[crossing]
        fleet.edge[crossing] = edge
        fleet.position_m[crossing] -= self.grid.block_m
        fleet.limit_m[crossing] -= self.grid.block_m
        uniform = self._draw(fleet.vehicle[crossing])
        fleet.next_edge[crossing] = self._routes.next_edge(edge, fleet.goal[crossing], uniform)
        fleet.cleared[crossing] = False
        fleet.asked_step[crossing] = NONE
        if leaving.size:
            for number in fleet.vehicle[leaving].tolist():
                del self._generators[number]
            self.fleet = fleet.keep(~np.isin(np.arange(fleet.size), leaving))

    def _lanes(self) -> Lanes:
        return line_up(self.fleet, self._ways, self.rules.length_m)  # type: ignore[no-any-return]

    def _draw(self, vehicle: Ints) -> Floats:
        """The next uniform random number of each of these vehicles."""
        return np.array([self._generators[number].random() for number in vehicle.tolist()])
