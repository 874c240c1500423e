"""SimPy's environment on an integer clock."""

from simpy import Environment


class NanosecondEnvironment(Environment):
    """Every delay is a whole number of nanoseconds, so `now` is one, too."""

    def __init__(self, start_ns: int = 0) -> None:
        super().__init__(initial_time=start_ns)

    @property
    def now(self) -> int:
        """Nanoseconds since the start."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; nobody here uses them
