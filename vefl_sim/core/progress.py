"""Progress of long work: reported where the work is done, heard where it is shown.

Traffic settles and SUMO drives many calls below the display, and none of the functions in between needs to know.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

Listener = Callable[[str, str], None]
"""Is given the name of a step, and how far it is (empty if unknown); called often, so it should return soon."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener | None) -> Iterator[None]:
    """Within this block, all reports go to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(step: str, done: float | None = None, of: float = 0.0, unit: str = "s") -> None:
    """Report that a step has begun or, if given, how much of it is done."""
    if listener := _listener.get():
        listener(step, "" if done is None else f"{done:.0f} of {of:.0f} {unit}".rstrip())


def counted(values: Iterable[T], step: str, of: int) -> Iterator[T]:
    """The values as they come, with a report after every thousand."""
    for number, value in enumerate(values, 1):
        yield value
        if number % 1000 == 0:
            report(step, number, of, "")
