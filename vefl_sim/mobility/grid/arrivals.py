"""Arrivals of vehicles at the border: a Poisson process, and a queue outside while an entry is blocked."""

from collections.abc import Iterable

import numpy as np

from vefl_sim.core.arrays import Ints


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
