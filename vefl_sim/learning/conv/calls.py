"""The kernels of `kernels`, registered as XLA FFI targets so that JAX programs can call them."""

from functools import cache
from threading import RLock
from typing import Any, NamedTuple

import jax
import numpy as np

from vefl_sim.core.kernel import c_callback
from vefl_sim.learning.conv.kernels import filter_gradient, input_gradient, pooled_conv_kernel
from vefl_sim.learning.conv.xla_ffi import HANDLER, answered_version_query

_KEPT: list[Any] = []  # compiled functions, which must stay alive because XLA stores only their addresses
_LOCK = RLock()  # `cache` alone may let two threads register the same name, which XLA refuses


class Targets(NamedTuple):
    """Names of the FFI targets that call the kernels; programs in JAX's cache contain them."""

    forward: str
    filter_gradient: str
    input_gradient: str


def targets(dtype: np.dtype[Any]) -> Targets:
    """The targets of a number type, which are registered when they are asked for first, in whichever thread."""
    with _LOCK:
        return _registered(dtype)


@cache
def _registered(dtype: np.dtype[Any]) -> Targets:
    real = dtype.type  # unlike a kernel, a type in a closure lets Numba find the compiled function in its cache

    @c_callback(HANDLER)
    def forward(frame: Any) -> int:
        if not answered_version_query(frame):
            pooled_conv_kernel(frame, real)
        return 0

    @c_callback(HANDLER)
    def backward_filter(frame: Any) -> int:
        if not answered_version_query(frame):
            filter_gradient(frame, real)
        return 0

    @c_callback(HANDLER)
    def backward_input(frame: Any) -> int:
        if not answered_version_query(frame):
            input_gradient(frame, real)
        return 0

    def register(call: str, handle: Any) -> str:
        name = f"vefl_sim.pooled_conv.{call}.{dtype.name}"
        _KEPT.append(handle)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handle.ctypes), platform="cpu")
        return name

    return Targets(
        register("forward", forward),
        register("backward_filter", backward_filter),
        register("backward_input", backward_input),
    )
