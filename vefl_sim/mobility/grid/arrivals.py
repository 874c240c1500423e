"""Vehicles that come to the border: a Poisson process, and a queue outside while the way in is blocked."""

from collections.abc import Iterable

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.core.state import State, generator_state, restore_generator


class Arrivals:
    """Arrivals over all entries together; each picks one of them uniformly."""

    def __init__(self, rate_per_s: float, entries: Ints, rng: np.random.Generator) -> None:
        self._rate_per_s, self._entries, self._rng = rate_per_s, entries, rng
        self._next_s = self._interval_s()
        self.waiting: list[int] = []
        """Entries at which vehicles wait outside, in the order of their arrival."""

    def come(self, now_s: float) -> None:
        """Let everybody join the queue who has arrived by now."""
        while self._next_s <= now_s:
            self.waiting.append(int(self._rng.choice(self._entries)))
            self._next_s += self._interval_s()

    def admit(self, open_entries: Iterable[int]) -> list[int]:
        """Take the first vehicle at each of these entries out of the queue; in order of arrival."""
        first = sorted(self.waiting.index(entry) for entry in open_entries)
        return [self.waiting.pop(place) for place in reversed(first)][::-1]

    def state(self) -> State:
        """Who waits, and when the next one comes."""
        return {"rng": generator_state(self._rng), "next_s": self._next_s, "waiting": list(self.waiting)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        restore_generator(self._rng, state["rng"])
        self._next_s, self.waiting = state["next_s"], state["waiting"]

    def _interval_s(self) -> float:
        return float(self._rng.exponential(1 / self._rate_per_s))
