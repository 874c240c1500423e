"""Traffic that is driven once: its scenes are kept when they are first driven, and played back afterwards.

The whole traffic of a run is needed twice: before the first round, to find all CVs that will come, and in the rounds.
"""

from collections.abc import Iterator
from copy import deepcopy
from itertools import count

from vefl_sim.mobility.scene import Mobility, Played, Scene

MAX_BYTES = 1 << 28  # of all scenes that are kept; the traffic after them is driven again
_BYTES_PER_SCENE, _BYTES_PER_VEHICLE = 600, 28  # measured; scenes share the arrays of numbers that do not change


class KeptTraffic:
    """Starts the same traffic each time it is called."""

    def __init__(self, source: Mobility) -> None:
        """`source`: at its start; it must be copyable, and leave the arrays of earlier scenes as they are."""
        self._source, self._scenes, self._bytes = source, [source.scene()], 0

    def __call__(self) -> Played:
        """The traffic from its start."""
        return Played(self._source.step_ns, self._play())

    def _play(self) -> Iterator[Scene]:
        """All scenes; the first that is missing is driven, and kept if there is room."""
        for step in count():
            if step == len(self._scenes):
                if self._bytes >= MAX_BYTES:
                    break
                scene = self._source.advance()
                self._scenes.append(scene)
                self._bytes += _BYTES_PER_SCENE + _BYTES_PER_VEHICLE * scene.vehicle.size
            yield self._scenes[step]
        rest = deepcopy(self._source)  # it stays at the last scene that is kept
        while True:
            yield rest.advance()
