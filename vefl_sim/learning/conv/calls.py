"""The kernels of `conv_kernels` under names that programs of JAX can call."""

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any

import jax
import numpy as np

from vefl_sim.core.kernel import native
from vefl_sim.learning.conv.kernels import filter_gradient, input_gradient, pooled_conv_kernel
from vefl_sim.learning.conv.xla_ffi import HANDLER, asks_for_version

_KEPT: list[Any] = []  # XLA keeps addresses only
_LOCK = RLock()  # `cache` alone lets two threads in at once, and XLA takes a name once


def _once(register: Callable[[np.dtype[Any]], str]) -> Callable[[np.dtype[Any]], str]:
    """Register for each type of number once, whoever asks first."""
    known = cache(register)

    @wraps(register)
    def locked(dtype: np.dtype[Any]) -> str:
        with _LOCK:
            return known(dtype)

    return locked


@_once
def forward(dtype: np.dtype[Any]) -> str:
    """(x, W, b[1, 1, 1, filters]) → pooled, winner."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            pooled_conv_kernel(frame, real)
        return 0

    return _register("forward", dtype, handle)


@_once
def backward_filter(dtype: np.dtype[Any]) -> str:
    """(x, winner, gradient of pooled) → gradients of W and of b[1, 1, 1, filters]."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            filter_gradient(frame, real)
        return 0

    return _register("backward_filter", dtype, handle)


@_once
def backward_input(dtype: np.dtype[Any]) -> str:
    """(W, winner, gradient of pooled) → gradient of x."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            input_gradient(frame, real)
        return 0

    return _register("backward_input", dtype, handle)


def _register(call: str, dtype: np.dtype[Any], handle: Any) -> str:
    """Make it known to XLA. Compiled programs in JAX's cache name it, so the names are the same in every process."""
    name = f"vefl_sim.pooled_conv.{call}.{dtype.name}"
    _KEPT.append(handle)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handle.ctypes), platform="cpu")
    return name
