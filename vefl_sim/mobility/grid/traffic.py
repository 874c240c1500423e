"""Traffic on the street grid by the intelligent driver model (mobility.kind = "idm"): the default source of scenes."""

from collections.abc import Iterable

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.grid.car_following import Rules
from vefl_sim.mobility.grid.demand import demand, start_positions
from vefl_sim.mobility.grid.engine import TrafficEngine
from vefl_sim.mobility.grid.fleet import typical_driver
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.scene import Scene


class Arrivals:
    """Poisson arrivals at all entries together; each vehicle picks an entry uniformly at random."""

    def __init__(self, rate_per_s: float, entries: Ints, rng: np.random.Generator) -> None:
        self._rate_per_s, self._entries, self._rng = rate_per_s, entries, rng
        self._next_s = self._interval_s()
        self.waiting: list[int] = []
        """For each vehicle that waits outside, its entry; in order of arrival."""

    def queue_arrivals(self, now_s: float) -> None:
        """Add all vehicles that have arrived by now to the queue."""
        while self._next_s <= now_s:
            self.waiting.append(int(self._rng.choice(self._entries)))
            self._next_s += self._interval_s()

    def admit(self, open_entries: Iterable[int]) -> list[int]:
        """Remove the first vehicle at each of these entries from the queue; return the entries in order of arrival."""
        first = sorted(self.waiting.index(entry) for entry in open_entries)
        return [self.waiting.pop(place) for place in reversed(first)][::-1]

    def _interval_s(self) -> float:
        return float(self._rng.exponential(1 / self._rate_per_s))


class IdmTraffic:
    """Vehicles that arrive at the border, drive on the grid and leave again."""

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        grid = StreetGrid.of(experiment.roads, experiment.radio.coverage_radius_m)
        params = typical_driver(experiment.mobility)
        self.step_ns = to_ns(experiment.mobility.step_s)
        self.streets = TrafficEngine(experiment, GridRoutes(grid, experiment.traffic), to_s(self.step_ns), streams)
        _check_vehicle_fits(grid, self.streets.rules)
        traffic_demand = demand(experiment)
        rng = streams.generator("traffic")
        if experiment.traffic.warm_start:
            self.streets.populate(*start_positions(traffic_demand.draw(rng), grid, params, rng))
            self.streets.settle(rng)
        self._arrivals = Arrivals(traffic_demand.arrivals_per_s, grid.entries, streams.generator("arrivals"))
        self._scene = self._make_scene()

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """Move all vehicles by one step, and admit those that have arrived in the meantime."""
        self.streets.drive()
        self._arrivals.queue_arrivals(to_s(self.streets.time_ns))
        if self._arrivals.waiting:
            self._admit_waiting()
        self._scene = self._make_scene()
        return self._scene

    @property
    def waiting_outside(self) -> int:
        """Number of vehicles that wait outside because their entry is blocked."""
        return len(self._arrivals.waiting)

    def _admit_waiting(self) -> None:
        """Admit the first vehicle at each entry that is not blocked."""
        entries = np.unique(self._arrivals.waiting)
        admitted = self._arrivals.admit(entries[self.streets.is_open(entries)].tolist())
        if admitted:
            self.streets.enter(np.array(admitted))

    def _make_scene(self) -> Scene:
        fleet = self.streets.fleet
        x_m, y_m = self.streets.grid.xy(fleet.edge, fleet.position_m)
        return Scene(
            time_ns=self.streets.time_ns,
            vehicle=fleet.vehicle,
            x_m=x_m,
            y_m=y_m,
            speed_mps=fleet.speed_mps.copy(),  # a copy, because the array of the fleet changes in place
            connected=fleet.connected,
        )


def _check_vehicle_fits(grid: StreetGrid, rules: Rules) -> None:
    """Refuse vehicles that do not fit between two junctions, because they could never leave the first one."""
    place_m = rules.room_m - grid.junction_m
    if place_m > grid.block_m - 2 * grid.junction_m:
        raise ExperimentError(
            f"A vehicle of mobility.length_m with twice its gap (mobility.min_gap_m, mobility.driver_spread) takes "
            f"{place_m:g} m, which does not fit between two junctions of roads.block_m = {grid.block_m:g}: make the "
            "vehicle shorter or the blocks longer."
        )
