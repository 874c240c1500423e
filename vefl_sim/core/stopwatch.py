"""Wall-clock time by activity. Kept apart from the simulation: it is the one thing that cannot repeat."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Adds rows to the `timings` table."""

    def __init__(self, append: Callable[[dict[str, Any]], None]) -> None:
        self._append = append
        self.round = 0

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Time a block."""
        started = time.perf_counter()
        yield
        self._append({"round": self.round, "what": what, "wall_s": time.perf_counter() - started})
