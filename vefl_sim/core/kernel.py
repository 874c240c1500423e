"""`kernel`, the decorator of all compiled functions here.

Numba's own cache looks at the file of a function only, not at the files of those it calls, and would go on using an old
version of them. So the cache has a folder for each state of all kernels together.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from vefl_sim.core.files import cache_directory, writable


def _state() -> str:
    sources = (file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py")))
    compiled = (text for text in sources if b"vefl_sim.core.kernel" in text or b"numba" in text)
    return hashlib.sha256(b"\0".join(compiled)).hexdigest()[:12]


_DIRECTORY = cache_directory(os.environ) / "numba" / _state()
_CACHED = writable(_DIRECTORY)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, or take it from the cache."""
    with _cache_of_kernels():
        return numba.njit(cache=_CACHED)(function)


def inner(function: Callable[..., Any]) -> Any:
    """A kernel that only other kernels call: without a way in from Python it compiles faster."""
    options: Any = {"cache": _CACHED, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with _cache_of_kernels():
        return numba.njit(**options)(function)


def native(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function now, or take it from the cache, into one that C can call."""

    def compile_now(function: Callable[..., Any]) -> Any:
        with _cache_of_kernels():
            return numba.cfunc(signature, cache=_CACHED)(function)

    return compile_now


@contextmanager
def _cache_of_kernels() -> Iterator[None]:
    config: Any = numba.config  # its attributes come from the environment
    before = config.CACHE_DIR
    if _CACHED:
        config.CACHE_DIR = str(_DIRECTORY)
    try:
        yield
    finally:
        config.CACHE_DIR = before  # the user's own kernels keep their place
