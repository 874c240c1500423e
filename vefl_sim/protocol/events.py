"""Points in time with a declared order among those that fall on the same nanosecond.

SimPy's own events (a process starting, an interrupt, something that has succeeded) have priority 0 or 1, so
the consequences of one instant are over before the next of the same nanosecond begins.
"""

from enum import IntEnum

from simpy import Environment, Event


class NanosecondEnvironment(Environment):
    """Every delay is a whole number of nanoseconds, so `now` is one, too."""

    def __init__(self, start_ns: int = 0) -> None:
        super().__init__(initial_time=start_ns)

    @property
    def now(self) -> int:
        """Nanoseconds since the start."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; nobody here uses them


class Order(IntEnum):
    """What happens first when several things happen at once."""

    SLOT_END = 2  # bits of the slot that ends have arrived: an upload ending exactly at a deadline counts
    COVERAGE = 3  # vehicles move, enter and leave
    TRAINING = 4  # local training ends, updates are offered
    ROUND = 5  # the server closes a round and opens the next; orders expire
    PULL = 6  # CVs without rounds ask for their next order, when all that has come by then is in
    SLOT_START = 7  # the MAC decides, last, when everything it could know is known


class Instant(Event):
    """Fires at a given time, like a Timeout, but in its declared order."""

    def __init__(self, env: NanosecondEnvironment, time_ns: int, order: Order) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, order, time_ns - env.now)  # type: ignore[arg-type]  # any integer will do
