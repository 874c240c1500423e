"""Traffic lights with fixed cycles: green and amber for one street, then the same for the street across.

At amber, vehicles that can stop at the usual deceleration for stop lines do so; the others continue. Amber lasts so
long that none of these is still before the stop line at red: a vehicle that cannot stop from speed u at deceleration b
is over the line within u/b, however it is slowed on its way. No all-red time is needed, because paths through the
junction are reserved.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.core.clock import to_ns
from vefl_sim.core.kernel import kernel
from vefl_sim.experiment.experiment import RoadsTable

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
