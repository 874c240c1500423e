"""SimPy's environment on an integer clock."""

from simpy import Environment


class NanosecondEnvironment(Environment):
    """Starts at 0; every delay is a whole number of nanoseconds, so `now` is one, too."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    @property
    def now(self) -> int:
        """Nanoseconds since the start."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; nobody here uses them
