"""The kernels of `kernels`, registered as XLA FFI targets so that JAX programs can call them."""

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any

import jax
import numpy as np

from vefl_sim.core.kernel import c_callback
from vefl_sim.learning.conv.kernels import filter_gradient, input_gradient, pooled_conv_kernel
from vefl_sim.learning.conv.xla_ffi import HANDLER, answered_version_query

_KEPT: list[Any] = []  # compiled functions, which must stay alive because XLA stores only their addresses
_LOCK = RLock()  # `cache` alone may let two threads register the same name, which XLA refuses


def _once(register: Callable[[np.dtype[Any]], str]) -> Callable[[np.dtype[Any]], str]:
    """Call a registering function once per number type, whichever thread comes first."""
    cached = cache(register)

    @wraps(register)
    def locked(dtype: np.dtype[Any]) -> str:
        with _LOCK:
            return cached(dtype)

    return locked


@_once
def forward(dtype: np.dtype[Any]) -> str:
    """Name of the FFI target (x, W, b) → pooled, starts."""
    real = dtype.type

    @c_callback(HANDLER)
    def handle(frame: Any) -> int:
        if not answered_version_query(frame):
            pooled_conv_kernel(frame, real)
        return 0

    return _register("forward", dtype, handle)


@_once
def backward_filter(dtype: np.dtype[Any]) -> str:
    """Name of the FFI target (x, starts, gradient of pooled, parts) → gradients of W as patches and of b."""
    real = dtype.type

    @c_callback(HANDLER)
    def handle(frame: Any) -> int:
        if not answered_version_query(frame):
            filter_gradient(frame, real)
        return 0

    return _register("backward_filter", dtype, handle)


@_once
def backward_input(dtype: np.dtype[Any]) -> str:
    """Name of the FFI target (W as patches, starts, gradient of pooled, parts) → gradient of x."""
    real = dtype.type

    @c_callback(HANDLER)
    def handle(frame: Any) -> int:
        if not answered_version_query(frame):
            input_gradient(frame, real)
        return 0

    return _register("backward_input", dtype, handle)


def _register(call: str, dtype: np.dtype[Any], handle: Any) -> str:
    """Register an FFI target; programs in JAX's cache contain its name, so it is the same in every process."""
    name = f"vefl_sim.pooled_conv.{call}.{dtype.name}"
    _KEPT.append(handle)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handle.ctypes), platform="cpu")
    return name
