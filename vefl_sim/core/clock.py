"""Simulated time in integer nanoseconds, the slots (TTIs) that divide it, and a stopwatch for wall-clock time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def to_ns(seconds: float) -> int:
    """Convert seconds to the nearest whole nanosecond."""
    return round(seconds * NS_PER_S)


def to_s(ns: int) -> float:
    """Convert nanoseconds to seconds, for formulas and display; never converted back to clock time."""
    return ns / NS_PER_S


@dataclass(frozen=True)
class SlotGrid:
    """Slots of κ = 1 ms / 2^n̄, numbered from time 0; slot i is [i·κ, (i+1)·κ)."""

    slot_ns: int

    @classmethod
    def of_numerology(cls, numerology: int) -> "SlotGrid":
        """The grid of 3GPP numerology n̄ = 0…4, for which κ is a whole number of nanoseconds."""
        return cls(NS_PER_MS >> numerology)

    @property
    def slot_s(self) -> float:
        """κ in seconds."""
        return to_s(self.slot_ns)

    def floor(self, time_ns: int) -> int:
        """The slot that contains this instant; for a duration, the number of whole slots that fit into it."""
        return time_ns // self.slot_ns

    def ceil(self, time_ns: int) -> int:
        """The first slot that starts at this instant or later."""
        return -(-time_ns // self.slot_ns)

    def start_ns(self, slot: int) -> int:
        """The instant at which a slot begins."""
        return slot * self.slot_ns


@dataclass(frozen=True)
class Timing:
    """Wall-clock time that some work took, in the round that it was done for."""

    round: int
    what: str
    wall_s: float


class Stopwatch:
    """Measures the wall-clock time of code blocks."""

    def __init__(self, tell: Callable[[Timing], None]) -> None:
        self._tell = tell
        self.round = 0

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Measure a block of code; `what` names its work."""
        started = time.perf_counter()
        yield
        self._tell(Timing(self.round, what, time.perf_counter() - started))
