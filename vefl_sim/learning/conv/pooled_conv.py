"""A convolution, 2×2 max-pooling, bias and ReLU as one fast layer, `pooled_conv`.

On a CPU it calls our own kernels, elsewhere `plain_pooled_conv`, the readable reference. Both pool before they add
the bias: the maximum stays the same, and three of four additions and ReLUs are saved.
"""

import math
from functools import cache
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from numpy.typing import NDArray

from vefl_sim.core.kernel import c_callback
from vefl_sim.learning.conv.kernels import GROUP, filter_gradient, input_gradient, pooled_conv_kernel
from vefl_sim.learning.conv.tiles import LANES
from vefl_sim.learning.conv.xla_ffi import HANDLER, answered_version_query

_KEPT: list[Any] = []  # compiled functions, which must stay alive because XLA stores only their addresses
_LOCK = RLock()  # `cache` alone may let two threads register the same name, which XLA refuses
Residual = tuple[jax.Array, jax.Array, jax.Array]


def pooled_conv(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
    """relu(max_pool(x ∗ W) + b), [n, height′, width′, filters], computed in the fastest way available on this machine.

    x [n, height, width, channels], W [rows, columns, channels, filters], b [filters]; the convolution is valid and the
    sides are halved, an odd last row or column is dropped. `jax.vmap` is not supported: merge mapped axes into n.
    """
    _check(x, w, bias)
    compiled = jax.default_backend() == "cpu" and x.dtype in (jnp.float32, jnp.float64)
    return compiled_pooled_conv(x, w, bias) if compiled else plain_pooled_conv(x, w, bias)


def _check(x: jax.Array, w: jax.Array, bias: jax.Array) -> None:
    """Refuse shapes and types that do not fit; the kernels themselves check nothing."""
    if (x.ndim, w.ndim, bias.ndim) != (4, 4, 1) or x.shape[3] != w.shape[2] or bias.shape[0] != w.shape[3]:
        raise ValueError(f"pooled_conv: images {x.shape}, filters {w.shape} and bias {bias.shape} do not fit together.")
    if not x.dtype == w.dtype == bias.dtype:
        raise TypeError(f"pooled_conv: images are {x.dtype}, filters {w.dtype}, bias {bias.dtype}; make them the same.")
    if x.shape[1] <= w.shape[0] or x.shape[2] <= w.shape[1]:
        raise ValueError(f"pooled_conv: images of {x.shape[1]} × {x.shape[2]} are too small for filters {w.shape[:2]}.")


def plain_pooled_conv(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
    """Reference version of `pooled_conv`, in plain JAX operations."""
    sums = lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    largest = nn.max_pool(sums, (2, 2), strides=(2, 2))  # type: ignore[no-untyped-call]
    return jax.nn.relu(largest + bias)


@jax.custom_vjp
def compiled_pooled_conv(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
    """`pooled_conv` computed by the compiled `kernels`; CPU only."""
    return _pooled_and_starts(x, w, bias, keep_starts=False)[0]


def _forward(x: jax.Array, w: jax.Array, bias: jax.Array) -> tuple[jax.Array, Residual]:
    pooled, starts = _pooled_and_starts(x, w, bias, keep_starts=True)
    return pooled, (x, w, starts)


def _pooled_and_starts(x: jax.Array, w: jax.Array, bias: jax.Array, keep_starts: bool) -> tuple[jax.Array, jax.Array]:
    """The result of the layer, and where the patches start that pass a gradient on, if there will be one."""
    windows = (x.shape[1] - w.shape[0] + 1) // 2, (x.shape[2] - w.shape[1] + 1) // 2, w.shape[3]
    lanes = math.prod(windows) * LANES
    results = (
        _array((len(x), *windows), x.dtype), _array((len(x) * keep_starts, *windows), jnp.int32),
        _array((_size(x) * LANES,), x.dtype), _array((lanes,), x.dtype), _array((lanes,), jnp.int32),
    )  # fmt: skip
    pooled, starts, *_ = jax.ffi.ffi_call(_targets(x.dtype)["forward"], results)(x, w, bias)
    return pooled, starts


def _backward(residual: Residual, gradient: jax.Array) -> Residual:
    """Gradients of x, W and b; that of x is a separate call, which XLA drops where it is unused: in the first layer."""
    x, w, starts = residual
    dw, db = _filter_gradient(x, w, starts, gradient)
    return _input_gradient(x, w, starts, gradient), dw, db


def _filter_gradient(x: jax.Array, w: jax.Array, starts: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    places, filters = _size(starts), starts.shape[3]
    results = (
        _array(jax.eval_shape(_patches, w).shape, x.dtype), _array((filters,), x.dtype),
        _array((_size(x) + LANES,), x.dtype), _array((places,), jnp.int32), _array((places,), x.dtype),
    )  # fmt: skip
    dw, db, *_ = jax.ffi.ffi_call(_targets(x.dtype)["backward_filter"], results)(x, starts, gradient, _parts(x, w))
    return jax.linear_transpose(_patches, w)(dw)[0], db


def _input_gradient(x: jax.Array, w: jax.Array, starts: jax.Array, gradient: jax.Array) -> jax.Array:
    listed = (math.prod(starts.shape[1:3]) + 1,)
    results = (
        _array(x.shape, x.dtype), _array((_size(x) + LANES,), x.dtype),
        _array(listed, jnp.int32), _array(listed, x.dtype),
    )  # fmt: skip
    call = jax.ffi.ffi_call(_targets(x.dtype)["backward_input"], results)
    dx, *_ = call(_patches(w), starts, gradient, _parts(x, w))
    return dx


def _patches(w: jax.Array) -> jax.Array:
    """W as [filter, numbers of a patch]; each row of a patch is padded to whole vectors, the patch to whole groups."""
    rows, columns, channels, filters = w.shape
    lines = w.reshape(rows, columns * channels, filters).transpose(2, 0, 1)
    return _padded(_padded(lines, LANES).reshape(filters, -1), GROUP * LANES)


def _parts(x: jax.Array, w: jax.Array) -> NDArray[np.int32]:
    """Where in a sample the vectors of a patch start, counted from its first number; [1, 1, 1, vectors].

    The last group is padded with the start of the first vector: sums there are never read, and only zeros are added.
    """
    rows, columns, channels, _ = w.shape
    starts = np.add.outer(np.arange(rows) * x.shape[2] * channels, np.arange(0, columns * channels, LANES))
    return np.pad(starts.reshape(1, 1, 1, -1), [(0, 0)] * 3 + [(0, -starts.size % GROUP)]).astype(np.int32)


def _padded(array: jax.Array, multiple: int) -> jax.Array:
    """Pad the last axis with zeros to a multiple of this length."""
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % multiple)])


def _size(x: jax.Array) -> int:
    """How many numbers a sample has."""
    return math.prod(x.shape[1:])


def _array(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


compiled_pooled_conv.defvjp(_forward, _backward)


def _targets(dtype: np.dtype[Any]) -> dict[str, str]:
    """Names of the FFI targets that call the kernels, which are registered when they are asked for first."""
    with _LOCK:
        return _registered(dtype)


@cache
def _registered(dtype: np.dtype[Any]) -> dict[str, str]:
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

    targets = {"forward": forward, "backward_filter": backward_filter, "backward_input": backward_input}
    names = {call: f"vefl_sim.pooled_conv.{call}.{dtype.name}" for call in targets}  # JAX's cache contains them
    for call, handle in targets.items():
        _KEPT.append(handle)
        capsule = jax.ffi.pycapsule(handle.ctypes)  # type: ignore[no-untyped-call]
        jax.ffi.register_ffi_target(names[call], capsule, platform="cpu")
    return names
