"""Decorators for functions that Numba compiles.

Numba's own cache checks only the file of a compiled function, not the files of the functions it calls, and would keep
using old versions of those. So there is one cache folder per digest of the sources of all kernels. Compiled code names
the module of every NamedTuple that is passed to it: who moves such a class must change the source of a kernel too.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from filelock import FileLock, Timeout
from numba.core import event
from numba.core.caching import FunctionCache

from vefl_sim.core.files import cache_directory, ensure_writable
from vefl_sim.core.memory import slowdown
from vefl_sim.core.progress import report

_TEXTS = 100_000  # that are made to measure the speed of this machine, in about 10 ms
_COMPILING = 1400.0  # times as long takes compiling all kernels of a run, in two processes on two idle cores
_LONGEST_S = 300.0  # many times what compiling one kernel takes: then the process that compiles it is stuck


@cache
def compiling() -> str:
    """The step that is reported whenever a kernel is not in the cache, with the time that this machine needs for it."""
    began_s = time.process_time()
    for number in range(_TEXTS):
        str(number)
    return f"compiling (once, about {_COMPILING * (time.process_time() - began_s) * slowdown(2):.0f} s)"


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
            report(compiling())

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


class _SharedCache(FunctionCache):
    """A cache of one kernel, which one process compiles while others that need it wait."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{function.__module__}.{function.__name__}".replace("<lambda>", "lambda")
        self._lock = FileLock(_DIRECTORY / f"{name}.lock", thread_local=False, is_singleton=True)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel; None if this process is the one to compile it."""
        loaded = super().load_overload(signature, target)
        if loaded is None:
            with suppress(OSError, NotImplementedError, Timeout):  # without locks every process compiles it
                self._lock.acquire(timeout=_LONGEST_S)
            loaded = super().load_overload(signature, target)
            if loaded is not None:
                self._lock.release()
        return loaded

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save what this process has compiled."""
        super().save_overload(signature, compiled)
        self._lock.release()


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    kernel = numba.njit(**options)(function)
    if _CACHED:
        with _kernel_cache():
            kernel._cache = _SharedCache(function)
    return kernel


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
