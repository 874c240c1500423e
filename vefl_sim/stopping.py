"""Ctrl-C and SIGTERM: the first asks the run to stop when it can, the second stops it at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class StopRequest:
    """Whether somebody has asked."""

    def __init__(self, tell: Callable[[], None]) -> None:
        """`tell` is called at the first request, from within a signal handler."""
        self.made = False
        self._tell = tell

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen for the time of a block."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python delivers signals to the main thread only
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._on_signal) for number in numbers]
        try:
            yield
        finally:
            for number, old in zip(numbers, before, strict=True):
                signal.signal(number, old)

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        self._tell()
