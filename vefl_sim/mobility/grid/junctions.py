"""Which vehicles may cross a junction: traffic lights, and reservations by those that have a green light.

Traffic lights have fixed cycles: green and amber for one street, then the same for the street across. At amber,
vehicles that can stop at the usual deceleration for stop lines do so; the others continue. Amber lasts so long that
none of these is still before the stop line at red: a vehicle that cannot stop from speed u at deceleration b is over
the line within u/b, however it is slowed on its way. No all-red time is needed, because paths through the junction are
reserved, first come, first served.

A vehicle that would otherwise have to brake for its stop line requests the junction. It is cleared when its light
is green, the vehicles ahead in its lane are cleared, there is room for it after the junction, no vehicle holds a path
that meets its own, and no vehicle with an earlier request that could go otherwise waits for such a path. It holds its
path until its rear has left the junction, or until the light turns amber while it can still stop. Which paths are held
follows from the state of the vehicles, so there is no reservation table that could become outdated.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Bools, Ints
from vefl_sim.core.clock import to_ns
from vefl_sim.core.kernel import kernel
from vefl_sim.experiment.experiment import RoadsTable
from vefl_sim.mobility.grid.car_following import stopping_distance, stopping_speed

GREEN, AMBER, RED = range(3)
SHORTEST_AMBER_S = 3.0


class Signals(NamedTuple):
    """Signal plan of all junctions: green, amber for east and west, then green, amber for north and south."""

    offset_ns: Ints
    """By junction: elapsed time of its cycle at time 0; the cycle starts with green for even headings (EAST, WEST)."""
    green_ns: int
    """Duration of green; 0 without traffic lights, when all directions always have green."""
    amber_ns: int

    @property
    def cycle_ns(self) -> int:
        """Duration of a whole cycle."""
        return 2 * (self.green_ns + self.amber_ns)


def make_signals(roads: RoadsTable, junctions: int, stop_s: float, rng: np.random.Generator) -> Signals:
    """The traffic lights of an experiment, each junction at a random point of its cycle at time 0.

    stop_s: u/b for the highest speed, plus a margin for the time step.
    """
    if roads.signals == "none":
        return Signals(np.zeros(junctions, np.int64), 0, 0)
    green_ns, amber_ns = to_ns(roads.green_s), to_ns(max(SHORTEST_AMBER_S, stop_s))
    return Signals(rng.integers(2 * (green_ns + amber_ns), size=junctions), green_ns, amber_ns)


@kernel
def light(signals, junction, heading, time_ns):
    """Colour of the light (GREEN, AMBER or RED) for vehicles that approach this junction with this heading."""
    if signals.green_ns == 0:
        return GREEN
    phase_ns = signals.green_ns + signals.amber_ns
    elapsed_ns = (time_ns + signals.offset_ns[junction] + (heading % 2) * phase_ns) % (2 * phase_ns)
    if elapsed_ns >= phase_ns:
        return RED
    return GREEN if elapsed_ns < signals.green_ns else AMBER


def _paths_meet() -> Bools:
    """(16, 16): whether two paths through a junction merge or cross; path 4·(heading in) + (heading out).

    With right-hand traffic, and points numbered counter-clockwise around a junction, vehicles leave over the arm in
    direction d at point 2d and enter from it at point 2d + 1. Paths are chords between these points. Paths with the
    same start are in the same lane, where vehicles follow each other.
    """
    heading_in, heading_out = np.divmod(np.arange(16), 4)
    start, end = 2 * ((heading_in + 2) % 4) + 1, 2 * heading_out
    span = (end - start) % 8

    def within(point: Ints) -> Bools:
        """Whether a point (column) is strictly between start and end of a path (row), counter-clockwise."""
        offset: Ints = (point - start[:, None]) % 8
        between: Bools = (offset > 0) & (offset < span[:, None])
        return between

    crosses: Bools = within(start) != within(end)
    merges: Bools = end[:, None] == end
    other_lane: Bools = start[:, None] != start
    return (crosses | merges) & other_lane


PATHS_MEET = _paths_meet()
_OPPONENTS = PATHS_MEET @ (1 << np.arange(16))  # by path: the set of paths it meets, as bits


@kernel
def path(ways, edge, next_edge):
    """Index into PATHS_MEET of the path from one edge to the next."""
    return 4 * ways.heading[edge] + ways.heading[next_edge]


@kernel
def light_ahead(fleet, ways, signals, time_ns, i):
    """Colour of the traffic light at the end of the edge of vehicle i."""
    edge = fleet.edge[i]
    return light(signals, ways.junction[edge], ways.heading[edge], time_ns)


@kernel
def give_back(fleet, ways, signals, rules, time_ns):
    """Cancel the clearance of vehicles whose light is no longer green and which can still stop."""
    for i in range(fleet.edge.size):
        if not fleet.cleared[i] or light_ahead(fleet, ways, signals, time_ns, i) == GREEN:
            continue
        braking_m = stopping_distance(fleet.speed_mps[i], rules.stop_decel_mps2, rules.dt_s)
        if fleet.position_m[i] + braking_m <= ways.stop_line_m:
            fleet.cleared[i] = False
            fleet.limit_m[i] = ways.limit_m[fleet.edge[i]]


@kernel
def held_paths(fleet, ways, rules):
    """By junction: the paths, as bits, of vehicles that are cleared or whose rear has not left it."""
    held = np.zeros(ways.junctions, np.int64)
    for i in range(fleet.edge.size):
        edge, before = fleet.edge[i], fleet.came_from[i]
        if fleet.cleared[i]:
            held[ways.junction[edge]] |= 1 << path(ways, edge, fleet.next_edge[i])
        if before >= 0 and fleet.position_m[i] < rules.inside_m:
            held[ways.junction[before]] |= 1 << path(ways, before, edge)
    return held


@kernel
def must_ask(fleet, rules, i):
    """Whether vehicle i must request the junction, because the stop line ahead would limit its speed in this step."""
    if fleet.cleared[i]:
        return False
    fastest = fleet.speed_mps[i] + fleet.driver.max_accel_mps2[i] * rules.dt_s
    return stopping_speed(fleet, i, rules) < min(fastest, fleet.driver.desired_speed_mps[i])


@kernel
def in_turn(fleet, rules, step):
    """Vehicles that request a junction, in the order of their first request; records the step of new requests."""
    asking, count = np.empty(fleet.edge.size, np.int64), 0
    for i in range(fleet.edge.size):
        if not must_ask(fleet, rules, i):
            continue
        if fleet.asked_step[i] < 0:
            fleet.asked_step[i] = step
        place = count
        while place > 0 and fleet.asked_step[asking[place - 1]] > fleet.asked_step[i]:
            asking[place] = asking[place - 1]
            place -= 1
        asking[place] = i
        count += 1
    return asking[:count]


@kernel
def has_room(fleet, lanes, ways, rules, coming, target):
    """Whether there will be room after the junction even if all vehicles ahead stop now."""
    last, end_m = lanes.last[target], ways.limit_m[target]
    if last >= 0:
        roll_m = fleet.speed_mps[last] ** 2 / (2 * rules.emergency_decel_mps2)
        end_m = min(end_m, lanes.back_m[target] + roll_m)
    return end_m - coming[target] * rules.place_m >= rules.room_m


@kernel
def waits_behind(fleet, lanes, i):
    """Whether the vehicle ahead on the same edge is not cleared."""
    leader = lanes.leader[i]
    return leader >= 0 and fleet.edge[leader] == fleet.edge[i] and not fleet.cleared[leader]


@kernel
def clear(fleet, lanes, ways, signals, rules, now):
    """Record requests for the junctions, clear the vehicles that may go, and return how many were cleared.

    now: the number of the step and its time in ns.
    """
    step, time_ns = now
    asking = in_turn(fleet, rules, step)
    wanted = held_paths(fleet, ways, rules)  # and, in the loop below, the paths of vehicles with earlier requests
    coming = np.zeros(ways.heading.size, np.int64)
    for i in range(fleet.edge.size):
        if fleet.cleared[i]:
            coming[fleet.next_edge[i]] += 1
    cleared = 0
    for i in asking:
        target, way = fleet.next_edge[i], path(ways, fleet.edge[i], fleet.next_edge[i])
        junction = ways.junction[fleet.edge[i]]
        if (
            light_ahead(fleet, ways, signals, time_ns, i) != GREEN
            or waits_behind(fleet, lanes, i)
            or not has_room(fleet, lanes, ways, rules, coming, target)
        ):
            continue
        if wanted[junction] & _OPPONENTS[way] == 0:
            fleet.cleared[i] = True
            fleet.limit_m[i] = ways.block_m + ways.limit_m[target]
            coming[target] += 1
            cleared += 1
        wanted[junction] |= 1 << way
    return cleared
