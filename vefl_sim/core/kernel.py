"""Decorators for functions that Numba compiles.

Numba's own cache checks only the file of a compiled function, not the files of the functions it calls, and would keep
using old versions of those. So there is one cache folder per digest of the sources of all kernels.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import event

from vefl_sim.core.files import cache_directory, ensure_writable
from vefl_sim.core.memory import slowdown
from vefl_sim.core.progress import report

_IDLE_S = 15.0  # to compile all kernels in two processes, on two idle cores
_BUSY_S = _IDLE_S * slowdown(2)
COMPILING = f"compiling (once, {'about' if _BUSY_S < 1.2 * _IDLE_S else f'{_IDLE_S:.0f} to'} {_BUSY_S:.0f} s)"
"""The step that is reported whenever a kernel is not in the cache; it takes longer if the machine is busy."""


def _sources_digest() -> str:
    sources = (file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py")))
    compiled = (text for text in sources if b"vefl_sim.core.kernel" in text or b"numba" in text)
    return hashlib.sha256(b"\0".join(compiled)).hexdigest()[:12]


_DIRECTORY = cache_directory(os.environ) / "numba" / _sources_digest()
_CACHED = ensure_writable(_DIRECTORY)


def cache_folder() -> Path | None:
    """The folder of the compiled kernels; None if it cannot be written, so that every process compiles them again."""
    return _DIRECTORY if _CACHED else None


class _Announcer(event.Listener):
    """Reports that a kernel of ours is compiled; Numba calls it only if the kernel is not in the cache."""

    def on_start(self, event: Any) -> None:
        """Report the beginning of a compilation."""
        kernel = getattr(event.data.get("dispatcher"), "py_func", None)
        if (getattr(kernel, "__module__", None) or "").startswith("vefl_sim."):
            report(COMPILING)

    def on_end(self, event: Any) -> None:
        """Do nothing: the next step reports itself."""


event.register("numba:compile", _Announcer())


class Kernel:
    """A function that Numba compiles at its first call, or loads from the cache.

    Kernels call each other without Python. Only what Python itself calls gets an entry point from Python: compiling
    that can take as long as compiling the function, if its arguments are named tuples of arrays.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self._options = options
        self._called_by_kernels = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
        self._called_by_python = _compiled(_renamed(function), **options)
        self._numba_type_ = self._called_by_kernels._numba_type_  # with it, Numba takes this object for the function

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from Python."""
        return self._called_by_python(*arguments)

    @property
    def inlined(self) -> Any:
        """The kernel for use in another one, of which it becomes a part: Numba does not optimise it twice."""
        return _compiled(self.__wrapped__, inline="always", **self._options)  # type: ignore[attr-defined]


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    with _kernel_cache():
        return numba.njit(cache=_CACHED, **options)(function)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with another name, so that it has other files in the cache."""
    assert isinstance(function, FunctionType)
    name = f"{function.__name__}_from_python"
    renamed = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    renamed.__module__, renamed.__qualname__ = function.__module__, f"{function.__qualname__}_from_python"
    return renamed


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function; it raises ZeroDivisionError as Python does."""
    return Kernel(function)


def float_kernel(function: Callable[..., Any]) -> Kernel:
    """Like `kernel`, but a division by zero gives ±inf or nan as in NumPy.

    Without the test for it, inner loops run up to 1.7 times faster.
    """
    return Kernel(function, error_model="numpy")


def c_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function immediately, or load it from the cache, so that C code can call it."""

    def compile_now(function: Callable[..., Any]) -> Any:
        with _kernel_cache():
            return numba.cfunc(signature, cache=_CACHED)(function)

    return compile_now


@contextmanager
def _kernel_cache() -> Iterator[None]:
    config: Any = numba.config  # without types: Numba sets its attributes at run time
    before = config.CACHE_DIR
    if _CACHED:
        config.CACHE_DIR = str(_DIRECTORY)
    try:
        yield
    finally:
        config.CACHE_DIR = before  # kernels of user-defined parts keep their own cache folder


# Sums and extremes of arrays as plain loops: the same numbers as NumPy's, but compiled in a tenth of the time. Numba's
# versions, also of `argsort` and of assignments of whole arrays, bring along code for all axes, types and messages.


@float_kernel
def total(values):
    """The sum of the values, in their order."""
    result = 0.0
    for value in values:
        result += value
    return result


@float_kernel
def dot(one, other):
    """The sum of the products of two arrays, in their order."""
    result = 0.0
    for i in range(len(one)):
        result += one[i] * other[i]
    return result


@float_kernel
def least(values):
    """The smallest value; infinite if there is none."""
    result = np.inf
    for value in values:
        result = min(result, value)
    return result


@float_kernel
def largest(values):
    """The largest value; −infinite if there is none."""
    result = -np.inf
    for value in values:
        result = max(result, value)
    return result
