"""Ctrl-C, SIGTERM and a terminal that is closed: the first asks the run to stop when it can, the second at once."""

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
    def listening(self) -> Iterator[None]:
        """Listen for the time of a block."""
        with _handling(self._on_signal):
            yield

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        self._tell()


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Take all of them as Ctrl-C for the time of a block."""
    with _handling(_interrupt):
        yield


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [number for name in names if (number := getattr(signal, name, None)) and _is_heard(number)]
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


def _is_heard(number: int) -> bool:
    """Under nohup, for one, SIGHUP is not."""
    return signal.getsignal(number) is not signal.SIG_IGN
