"""The kernels of `conv_kernels` under names that programs of JAX can call; all arrays have four axes."""

from functools import cache
from typing import Any

import jax
import numpy as np

from vefl_sim.kernel import native
from vefl_sim.learning.conv_kernels import filter_gradient, input_gradient, pooled_conv
from vefl_sim.learning.foreign import HANDLER, argument, asks_for_version, result


@cache
def forward(dtype: np.dtype[Any]) -> str:
    """(x, W, b[1, 1, 1, filters]) → pooled, winner."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            x, w, bias = argument(frame, 0, real), argument(frame, 1, real), argument(frame, 2, real)
            pooled_conv(x, w, bias[0, 0, 0], result(frame, 0, real), result(frame, 1, np.int8))
        return 0

    return _register("forward", dtype, handle)


@cache
def backward_filter(dtype: np.dtype[Any]) -> str:
    """(x, winner, gradient of pooled) → gradients of W and of b[1, 1, 1, filters]."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            x, winner, gradient = argument(frame, 0, real), argument(frame, 1, np.int8), argument(frame, 2, real)
            filter_gradient(x, winner, gradient, result(frame, 0, real), result(frame, 1, real)[0, 0, 0])
        return 0

    return _register("backward_filter", dtype, handle)


@cache
def backward_input(dtype: np.dtype[Any]) -> str:
    """(W, winner, gradient of pooled) → gradient of x."""
    real = dtype.type

    @native(HANDLER)
    def handle(frame: Any) -> int:
        if not asks_for_version(frame):
            w, winner, gradient = argument(frame, 0, real), argument(frame, 1, np.int8), argument(frame, 2, real)
            input_gradient(w, winner, gradient, result(frame, 0, real))
        return 0

    return _register("backward_input", dtype, handle)


def _register(call: str, dtype: np.dtype[Any], handle: Any) -> str:
    """Make it known to XLA. Compiled programs in JAX's cache name it, so the names are the same in every process."""
    name = f"vefl_sim.pooled_conv.{call}.{dtype.name}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handle.ctypes), platform="cpu")
    return name
