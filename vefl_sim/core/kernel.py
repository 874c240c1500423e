"""Decorators for functions that Numba compiles.

Numba's own cache checks only the file of a compiled function, not the files of the functions it calls, and would keep
using old versions of those. So there is one cache folder per digest of the sources of all kernels.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from vefl_sim.core.files import cache_directory, ensure_writable


def _sources_digest() -> str:
    sources = (file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py")))
    compiled = (text for text in sources if b"vefl_sim.core.kernel" in text or b"numba" in text)
    return hashlib.sha256(b"\0".join(compiled)).hexdigest()[:12]


_DIRECTORY = cache_directory(os.environ) / "numba" / _sources_digest()
_CACHED = ensure_writable(_DIRECTORY)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call, or load it from the cache; it raises ZeroDivisionError as Python does."""
    with _kernel_cache():
        return numba.njit(cache=_CACHED)(function)


def float_kernel(function: Callable[..., Any]) -> Any:
    """Like `kernel`, but a division by zero gives ±inf or nan as in NumPy.

    Without the test for it, inner loops run up to 1.7 times faster.
    """
    with _kernel_cache():
        return numba.njit(cache=_CACHED, error_model="numpy")(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Like `kernel`, for a function that only other kernels call: without a Python entry point it compiles faster."""
    options: Any = {"cache": _CACHED, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with _kernel_cache():
        return numba.njit(**options)(function)


def inner_float_kernel(function: Callable[..., Any]) -> Any:
    """Both: for a function that only other kernels call, with divisions as in NumPy."""
    options: Any = {"cache": _CACHED, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    with _kernel_cache():
        return numba.njit(**options)(function)


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
