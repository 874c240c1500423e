"""Stop signals (Ctrl-C, SIGTERM, closed terminal): the first asks for an orderly stop, the second stops at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class StopRequest:
    """Remembers whether a stop signal has arrived (`made`)."""

    def __init__(self, on_request: Callable[[], None]) -> None:
        """`on_request` is called at the first signal, from within the signal handler."""
        self.made = False
        self._on_request = on_request

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the stop signals while the block runs."""
        with _handling(self._on_signal):
            yield

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        self._on_request()


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Treat every stop signal as Ctrl-C (KeyboardInterrupt) while the block runs."""
    with _handling(signal.default_int_handler):
        yield


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only
        return
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]  # as SIGHUP under nohup
    previous = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old_handler in zip(numbers, previous, strict=True):
            signal.signal(number, old_handler)
