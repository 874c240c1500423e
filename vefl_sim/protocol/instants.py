"""Points in time on an integer clock, with a declared order among those that fall on the same nanosecond.

SimPy's own events (a process starting, an interrupt, an event that has succeeded) have priority 0 or 1, so
all consequences of one `Instant` are processed before the next `Instant` of the same nanosecond.
"""

from collections.abc import Generator
from enum import IntEnum
from typing import Any, cast

from simpy import Environment, Event, Process


class NanosecondEnvironment(Environment):
    """A SimPy environment whose clock counts whole nanoseconds, because every delay is a whole number of them."""

    def __init__(self, start_ns: int = 0) -> None:
        super().__init__(initial_time=start_ns)

    def process(self, generator: Generator[Event, Any, Any]) -> Process:
        """Start a process. What it raises is raised as it is: SimPy would raise a copy, which fails for some types."""
        process = Process(self, generator)
        process.callbacks.append(_raise_failure)
        return process

    @property
    def now(self) -> int:
        """Simulated time since the start of the run, in nanoseconds."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; all delays here are integers


def _raise_failure(process: Event) -> None:
    if not process.ok:
        raise cast(BaseException, process.value)


class Precedence(IntEnum):
    """The order of instants that fall on the same nanosecond: the lowest number first."""

    SLOT_END = 2  # the bits of the slot arrive: an upload that ends exactly at its deadline counts
    COVERAGE = 3  # vehicles move; CVs enter and leave coverage
    TRAINING = 4  # local training ends; updates enter the uplink buffers
    ROUND = 5  # the server ends a round and starts the next; orders expire
    REQUEST = 6  # without rounds: CVs request their next order, after all updates of this instant were received
    SLOT_START = 7  # the MAC decides last, with everything that happened at this instant


class Instant(Event):
    """An event that fires at a given time, like a SimPy Timeout, but in its declared order."""

    def __init__(self, env: NanosecondEnvironment, time_ns: int, order: Precedence) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, order, time_ns - env.now)  # type: ignore[arg-type]  # SimPy accepts any integer


class Signal:
    """Wakes the processes that wait for something to happen, as often as it happens."""

    def __init__(self, env: NanosecondEnvironment) -> None:
        self._env, self._event = env, env.event()

    def send(self) -> None:
        """Wake every process that waits."""
        if not self._event.triggered:
            self._event.succeed()

    def next(self) -> Event:
        """An event that succeeds when the signal is sent the next time."""
        if self._event.triggered:
            self._event = self._env.event()
        return self._event
