"""Traffic lights with fixed cycles: green for the streets one way, amber, then the same for those across.

At amber whoever can stop as hard as for any stop line does; the others go on. Amber lasts long enough that none of
them is still before the stop line at red: who cannot stop from speed u at deceleration b, however it is slowed on
its way, is over the line within u/b. No time is needed to clear the junction, because paths through it are reserved.
"""

from typing import NamedTuple

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.core.clock import to_ns
from vefl_sim.core.kernel import kernel
from vefl_sim.experiment.traffic_tables import RoadsTable

GREEN, AMBER, RED = range(3)
SHORTEST_AMBER_S = 3.0


class Signals(NamedTuple):
    """The plan of all junctions. The cycle is green, amber one way, then green, amber the other."""

    offset_ns: Ints
    """By junction: how far its cycle has gone at time 0; even headings come first."""
    green_ns: int
    """0 where there are no signals: then everybody has green always."""
    amber_ns: int

    @property
    def cycle_ns(self) -> int:
        """After which everything repeats."""
        return 2 * (self.green_ns + self.amber_ns)


def make_signals(roads: RoadsTable, junctions: int, stop_s: float, rng: np.random.Generator) -> Signals:
    """The signals of an experiment, each junction somewhere in its cycle at time 0.

    stop_s: u/b for the highest speed, and a margin for the time step.
    """
    if roads.signals == "none":
        return Signals(np.zeros(junctions, np.int64), 0, 0)
    green_ns, amber_ns = to_ns(roads.green_s), to_ns(max(SHORTEST_AMBER_S, stop_s))
    return Signals(rng.integers(2 * (green_ns + amber_ns), size=junctions), green_ns, amber_ns)


@kernel
def light(signals, junction, heading, time_ns):
    """What those see who come to this junction with this heading."""
    if signals.green_ns == 0:
        return GREEN
    phase_ns = signals.green_ns + signals.amber_ns
    elapsed_ns = (time_ns + signals.offset_ns[junction] + (heading % 2) * phase_ns) % (2 * phase_ns)
    if elapsed_ns >= phase_ns:
        return RED
    return GREEN if elapsed_ns < signals.green_ns else AMBER
