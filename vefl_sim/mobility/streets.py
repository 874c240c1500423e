"""Vehicles in the streets, moved one step at a time. Where they come from is not known here."""

import numpy as np

from vefl_sim.mobility.arrays import BoolArray, FloatArray, IntArray
from vefl_sim.mobility.driving import Driving, easy_speed, safe_start_speed
from vefl_sim.mobility.fleet import Fleet
from vefl_sim.mobility.idm import ballistic
from vefl_sim.mobility.junctions import Junctions
from vefl_sim.mobility.lanes import Lanes
from vefl_sim.mobility.roads import NONE
from vefl_sim.mobility.wandering import Wandering
from vefl_sim.rng import Streams


class Streets:
    """A fleet on a grid.

    In each step junctions clear vehicles to cross, everybody chooses a speed from the state at the beginning
    of the step, and all move at once. Vehicle i draws its decisions from its own stream ("traffic", i), so
    that its route depends neither on the step nor on whom it meets.
    """

    def __init__(self, driving: Driving, routes: Wandering, streams: Streams, cv_share: float = 1.0) -> None:
        self.fleet = Fleet.empty()
        self._driving, self._routes, self._streams, self._cv_share = driving, routes, streams, cv_share
        self.grid = driving.grid
        self._junctions = Junctions(driving)
        self._random: dict[int, np.random.Generator] = {}
        self._created = 0

    def populate(self, edge: IntArray, position_m: FloatArray) -> None:
        """Create vehicles all at once, clear junctions for them, and give them speeds that are safe."""
        driving = self._driving
        self._add(edge, position_m, np.full(edge.size, driving.params.desired_speed_mps))
        fleet, lanes = self.fleet, self._lanes()
        while self._junctions.clear(fleet, lanes, step=0):
            pass
        fleet.speed_mps = np.minimum(fleet.speed_mps, self._approach(fleet.limit_m - fleet.position_m))
        while ((eased := self._eased(lanes)) < fleet.speed_mps - 1e-9).any():
            fleet.speed_mps = eased

    def drive(self, step: int) -> None:
        """Move everybody by one step."""
        fleet = self.fleet
        lanes = self._lanes()
        self._junctions.clear(fleet, lanes, step)
        speed_mps = self._driving.next_speeds(fleet, lanes)
        fleet.position_m = fleet.position_m + ballistic(fleet.speed_mps, speed_mps, self._driving.dt_s)
        fleet.speed_mps = speed_mps
        (over,) = (fleet.position_m >= self.grid.block_m).nonzero()
        if over.size:
            self._cross(over)

    def is_open(self, entry: IntArray) -> BoolArray:
        """Whether a vehicle could come in here and follow the last one comfortably."""
        params = self._driving.params
        gap_m, leader_mps = self._last_in(entry)
        return gap_m >= params.min_gap_m + params.headway_s * leader_mps

    def enter(self, entry: IntArray) -> None:
        """Create vehicles at the start of these edges, which are open and all different."""
        speed_mps = np.minimum(self._follow(*self._last_in(entry)), self._approach(self.grid.limit_m[entry]))
        self._add(entry, np.zeros(entry.size), speed_mps)

    def speeds_within(self, radius_m: float) -> FloatArray:
        """Speeds of the vehicles in the circle around the gNB."""
        x_m, y_m = self.grid.xy(self.fleet.edge, self.fleet.position_m)
        return self.fleet.speed_mps[x_m**2 + y_m**2 <= radius_m**2]

    def _add(self, edge: IntArray, position_m: FloatArray, speed_mps: FloatArray) -> None:
        """Create vehicles, with the next numbers in this order."""
        vehicle = np.arange(self._created + 1, self._created + 1 + edge.size)
        self._created += edge.size
        self._random |= {number: self._streams.generator("traffic", number) for number in vehicle.tolist()}
        newcomers = Fleet(
            vehicle=vehicle,
            connected=self._draw(vehicle) < self._cv_share,
            edge=edge,
            position_m=position_m,
            speed_mps=speed_mps,
            next_edge=self._routes.next_edge(edge, self._draw(vehicle)),
            came_from=np.full(edge.size, NONE),
            limit_m=self.grid.limit_m[edge],
            cleared=np.zeros(edge.size, np.bool_),
            asked_step=np.full(edge.size, NONE),
        )
        self.fleet.join(newcomers)

    def _last_in(self, edge: IntArray) -> tuple[FloatArray, FloatArray]:
        """Free distance from the start of each edge to the vehicle that entered last, and its speed."""
        last, back_m = self._lanes().last_on(edge)
        return back_m, np.append(self.fleet.speed_mps, 0.0)[last]

    def _follow(self, gap_m: FloatArray, leader_mps: FloatArray) -> FloatArray:
        """Speed at which a vehicle may be put on a street behind another: comfortable, and safe."""
        driving = self._driving
        safe = safe_start_speed(gap_m, leader_mps, driving.emergency_decel_mps2, driving.dt_s)
        return np.minimum(easy_speed(gap_m, leader_mps, driving.params), safe)

    def _approach(self, way_m: FloatArray) -> FloatArray:
        """Speed at which a vehicle may be put at this distance from its stop line."""
        return safe_start_speed(way_m, 0.0, self._driving.stop_decel_mps2, self._driving.dt_s)

    def _eased(self, lanes: Lanes) -> FloatArray:
        """Speeds lowered to what the vehicles ahead allow at their present speeds."""
        allowed = np.minimum(*self._follow(*self._driving.ahead(self.fleet, lanes)))
        return np.minimum(self.fleet.speed_mps, allowed)

    def _cross(self, over: IntArray) -> None:
        """Put those who drove over the end of their edge on the next, or take them out if there is none."""
        fleet, next_edge = self.fleet, self.fleet.next_edge[over]
        crossing = over[next_edge != NONE]
        edge = fleet.next_edge[crossing]
        fleet.came_from[crossing] = fleet.edge[crossing]
        fleet.edge[crossing] = edge
        fleet.position_m[crossing] -= self.grid.block_m
        fleet.limit_m[crossing] -= self.grid.block_m
        fleet.next_edge[crossing] = self._routes.next_edge(edge, self._draw(fleet.vehicle[crossing]))
        fleet.cleared[crossing] = False
        fleet.asked_step[crossing] = NONE
        if crossing.size < over.size:
            self._leave(over[next_edge == NONE])

    def _leave(self, leaving: IntArray) -> None:
        for number in self.fleet.vehicle[leaving].tolist():
            del self._random[number]
        staying = np.ones(len(self.fleet), np.bool_)
        staying[leaving] = False
        self.fleet.keep(staying)

    def _lanes(self) -> Lanes:
        return Lanes(self.fleet, self.grid.block_m, self._driving.params.length_m)

    def _draw(self, vehicle: IntArray) -> FloatArray:
        """The next uniform random number of each of these vehicles."""
        return np.array([self._random[number].random() for number in vehicle.tolist()])
