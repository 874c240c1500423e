"""How far every vehicle has driven, and whether it has line of sight: now, and in the slots before that the MAC knows.

Fading that is correlated in space needs the distance along the path. Between two scenes a vehicle drives straight at a
constant speed, so the distance is interpolated, and a vehicle that waits stays where it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Bools, Floats, Ints
from vefl_sim.core.state import State, from_state, state_of
from vefl_sim.mobility.scene import Scene


@dataclass
class _Step:
    """The vehicles between one scene and the next, one entry each."""

    start_ns: int
    end_ns: int  # start_ns until the next scene is known
    vehicle: Ints
    start_m: Floats  # distance driven up to the first scene, from where the vehicle appeared
    end_m: Floats
    sight: Bools  # line of sight, which is constant between two scenes


def _rows(vehicle: Ints, wanted: Ints) -> Ints:
    """Row of each wanted vehicle among these, in ascending order; −1 if it is not there."""
    if not len(vehicle):
        return np.full(len(wanted), -1)
    rows = np.minimum(np.searchsorted(vehicle, wanted), len(vehicle) - 1)
    return np.where(vehicle[rows] == wanted, rows, -1)


def first_known(entries: Iterable[tuple[Ints, NDArray[Any]]], cvs: Ints, values: NDArray[Any]) -> NDArray[Any]:
    """Fill `values` with that of each CV in the first entry (vehicles and their values) that contains it."""
    found = np.zeros(len(cvs), np.bool_)
    for vehicle, given in entries:
        rows = _rows(vehicle, cvs)
        new = (rows >= 0) & ~found
        values[new], found[new] = given[rows[new]], True
        if found.all():
            break
    return values


@dataclass
class Route:
    """The distance driven by every vehicle; slots up to `past_slots` before the present one can be asked for."""

    slot_ns: int
    past_slots: int = 0
    _steps: list[_Step] = field(default_factory=list)  # in the order of time
    _scene: Scene | None = None  # start of the current step, until the next scene is known

    def move(self, scene: Scene, sight: Bools) -> None:
        """Begin the step that starts with this scene; `sight` has one entry per vehicle of the scene."""
        driven = np.zeros(len(scene.vehicle))
        if self._steps:
            before = self._steps[-1]
            rows = _rows(before.vehicle, scene.vehicle)
            driven[rows >= 0] = before.end_m[rows[rows >= 0]]
        oldest_ns = scene.time_ns - self.past_slots * self.slot_ns
        self._steps = [step for step in self._steps if step.end_ns > oldest_ns]
        self._steps.append(_Step(scene.time_ns, scene.time_ns, scene.vehicle, driven, driven, sight))
        self._scene = scene

    def approach(self, scene: Scene) -> None:
        """Complete the current step with the scene at its end; vehicles that it lacks stay where they were."""
        step, start = self._steps[-1], self._scene
        assert start is not None
        _, here, there = np.intersect1d(start.vehicle, scene.vehicle, assume_unique=True, return_indices=True)
        step.end_ns, step.end_m = scene.time_ns, step.start_m.copy()
        step.end_m[here] += np.hypot(scene.x_m[there] - start.x_m[here], scene.y_m[there] - start.y_m[here])

    def change_sight(self, time_ns: int, line_of_sight: Callable[[NDArray[np.int64]], Bools]) -> None:
        """From this time on, within the current step, whose end is known, vehicles have another line of sight."""
        step = self._steps[-1]
        sight = line_of_sight(step.vehicle)
        if time_ns <= step.start_ns:
            step.sight = sight
            return
        share = (time_ns - step.start_ns) / (step.end_ns - step.start_ns)
        here_m = step.start_m + share * (step.end_m - step.start_m)
        self._steps[-1:] = [
            _Step(step.start_ns, time_ns, step.vehicle, step.start_m, here_m, step.sight),
            _Step(time_ns, step.end_ns, step.vehicle, here_m, step.end_m, sight),
        ]

    def driven_m(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Distance driven at the start of each slot, shape (slots, CVs); before it appeared, a vehicle had driven 0."""
        times_ns = (slot + np.arange(slots)) * self.slot_ns
        driven = np.empty((slots, len(cvs)))
        for step, first, last in self._spans(times_ns):
            if not len(step.start_m):
                driven[first:last] = 0.0  # nobody had appeared yet
                continue
            rows = _rows(step.vehicle, cvs)
            known = rows >= 0
            span_ns = max(step.end_ns - step.start_ns, 1)
            share = np.clip((times_ns[first:last] - step.start_ns) / span_ns, 0.0, 1.0)[:, None]
            start_m = np.where(known, step.start_m[rows], 0.0)
            driven[first:last] = start_m + share * np.where(known, step.end_m[rows] - step.start_m[rows], 0.0)
        return driven

    def sight(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Bools:
        """Whether each CV has line of sight in each slot, shape (slots, CVs); before it appeared, as at its start."""
        times_ns = (slot + np.arange(slots)) * self.slot_ns
        sights = np.empty((slots, len(cvs)), np.bool_)
        for step, first, last in self._spans(times_ns):
            later = self._steps[self._steps.index(step) :]
            found = first_known(((each.vehicle, each.sight) for each in later), cvs, np.zeros(len(cvs), np.bool_))
            sights[first:last] = found
        return sights

    def _spans(self, times_ns: Ints) -> list[tuple[_Step, int, int]]:
        """The steps that hold these ascending times, each with the range of times; earlier times are in the first."""
        if times_ns[0] >= self._steps[-1].start_ns:
            return [(self._steps[-1], 0, len(times_ns))]
        starts = np.array([step.start_ns for step in self._steps])
        numbers = np.maximum(np.searchsorted(starts, times_ns, side="right") - 1, 0)
        spans = []
        for number in np.unique(numbers).tolist():
            first, last = np.searchsorted(numbers, [number, number + 1]).tolist()
            spans.append((self._steps[number], first, last))
        return spans

    def state(self) -> State:
        """The steps, for a checkpoint; the current one is complete then."""
        return {"steps": state_of(self._steps)}

    def restore(self, state: State) -> None:
        """Restore the steps from a checkpoint."""
        self._steps = from_state(list[_Step], state["steps"])
