"""Traffic that is driven once: its scenes are kept when they are first driven, and played back afterwards.

The whole traffic of a run is needed twice: before the first round, to find all CVs that will come, and in the rounds.
"""

from copy import deepcopy

from vefl_sim.mobility.scene import Mobility, Scene

MAX_BYTES = 1 << 28  # of all scenes that are kept; the traffic after them is driven again
_BYTES_PER_SCENE, _BYTES_PER_VEHICLE = 600, 28  # measured; scenes share the arrays of numbers that do not change


class KeptTraffic:
    """Starts the same traffic each time it is called."""

    def __init__(self, source: Mobility) -> None:
        """`source`: at its start; it must be copyable, and leave the arrays of earlier scenes as they are."""
        self._source, self.first = source, source.scene()
        self._scenes, self._bytes = [self.first], 0

    def __call__(self) -> "KeptScenes":
        """The traffic from its start."""
        return KeptScenes(self)

    @property
    def step_ns(self) -> int:
        """Time between two scenes."""
        return self._source.step_ns

    def scene(self, step: int) -> Scene | None:
        """The scene after this number of steps, driven now if it is the first that is missing; None if none is kept."""
        if step == len(self._scenes) and self._bytes < MAX_BYTES:
            scene = self._source.advance()
            self._scenes.append(scene)
            self._bytes += _BYTES_PER_SCENE + _BYTES_PER_VEHICLE * scene.vehicle.size
        return self._scenes[step] if step < len(self._scenes) else None

    def rest(self) -> Mobility:
        """The traffic after the last scene that is kept."""
        return deepcopy(self._source)


class KeptScenes:
    """Plays traffic from its start; what is not kept is driven."""

    def __init__(self, traffic: KeptTraffic) -> None:
        self.step_ns = traffic.step_ns
        self._traffic, self._step = traffic, 0
        self._scene = traffic.first
        self._rest: Mobility | None = None

    def scene(self) -> Scene:
        """The current scene."""
        return self._scene

    def advance(self) -> Scene:
        """The scene one step later."""
        self._step += 1
        scene = self._traffic.scene(self._step)
        if scene is None:
            self._rest = self._rest or self._traffic.rest()
            scene = self._rest.advance()
        self._scene = scene
        return scene
