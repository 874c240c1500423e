"""relu(max_pool(x ∗ W) + b) and its gradients, sample by sample, compiled for the CPU.

x [n, height, width, channels], W [rows, columns, channels, filters], pooled [n, height′, width′, filters]; the
convolution is valid, the pooling 2×2, an odd last row or column is dropped. Each kernel takes an XLA FFI call
frame (`xla_ffi`) with the arguments and results that its docstring lists, and the number type. Results in brackets are
scratch memory.

Forward, the four sums under a pooling window never leave the registers: only the largest is stored, and which one it
was (0 … 3, or OFF where the ReLU gives 0). Backward, only that one of four passes a gradient on, and none where
the ReLU gives 0: a quarter to a tenth of the products of a dense backward pass.
"""

from typing import Any

import numpy as np

from vefl_sim.core.kernel import inner_kernel
from vefl_sim.learning.conv.simd import LANES
from vefl_sim.learning.conv.tiles import add_patches, best_of_four, spread_patches
from vefl_sim.learning.conv.xla_ffi import argument, argument_sizes, offset, result, result_sizes

OFF = 4  # winner where the ReLU gives 0
GROUP = 5
"""Vectors of a patch processed at a time: enough to hide the latency of an addition, few enough for 16 registers."""

_best_1, _best_2, _best_3 = best_of_four(1), best_of_four(2), best_of_four(3)
_add, _spread = add_patches(GROUP), spread_patches(GROUP)


@inner_kernel
def pooled_conv_kernel(frame: Any, real: Any) -> None:
    """(x, W with whole vectors of filters, b) → pooled, winner as int8, [2 numbers per filter]."""
    x, w, bias = argument(frame, 0, real), argument(frame, 1, real), argument(frame, 2, real)
    pooled, winner, maxima = result(frame, 0, real), result(frame, 1, np.int8), result(frame, 2, real)
    _, height, width, channels = argument_sizes(frame, 0)
    rows, columns, _, step = argument_sizes(frame, 1)
    samples, pooled_rows, pooled_columns, filters = result_sizes(frame, 0)
    row, taps, place = width * channels, columns * channels, 0
    for n in range(samples):
        for i in range(pooled_rows):
            for j in range(pooled_columns):
                at = (n * height + 2 * i) * row + 2 * j * channels
                f = 0
                while f + 3 * LANES <= step:
                    _best_3(x, at, row, channels, w, f, step, taps, rows, maxima, f)
                    f += 3 * LANES
                if f + 2 * LANES == step:
                    _best_2(x, at, row, channels, w, f, step, taps, rows, maxima, f)
                elif f + LANES == step:
                    _best_1(x, at, row, channels, w, f, step, taps, rows, maxima, f)
                for f in range(filters):
                    value = maxima[f] + bias[f]
                    pooled[place + f] = real(0) if value <= 0 else value  # so that nan stays nan
                    winner[place + f] = np.int8(maxima[step + f]) if value > 0 else np.int8(OFF)
                place += filters


@inner_kernel
def filter_gradient(frame: Any, real: Any) -> None:
    """(x, winner, gradient of pooled, starts) → gradients of W as patches and of b, [a sample, positions, factors].

    Sums run over the samples in order. b is summed here, too, because XLA would split so long a sum over its threads.
    """
    x, winner, gradient = argument(frame, 0, real), argument(frame, 1, np.int8), argument(frame, 2, real)
    starts, dw, db = argument(frame, 3, np.int32), result(frame, 0, real), result(frame, 1, real)
    sample, at, factor = result(frame, 2, real), result(frame, 3, np.int32), result(frame, 4, real)
    samples, height, width, channels = argument_sizes(frame, 0)
    windows, vectors = argument_sizes(frame, 1), argument_sizes(frame, 3)[3]
    pixels, places, filters = height * width * channels, windows[1] * windows[2], windows[3]
    for p in range(filters * vectors * LANES):
        dw[p] = 0
    for f in range(filters):
        db[f] = 0
    for _ in range(samples):
        for p in range(pixels):
            sample[p] = x[p]
        for p in range(places):
            for f in range(filters):
                db[f] += gradient[p * filters + f] if winner[p * filters + f] != OFF else real(0)
        for f in range(filters):
            count = _active(offset(winner, f), offset(gradient, f), windows, width * channels, channels, at, factor)
            for v in range(0, vectors, GROUP):
                _add(sample, at, factor, count, starts, v, dw, (f * vectors + v) * LANES)
        x, winner, gradient = offset(x, pixels), offset(winner, places * filters), offset(gradient, places * filters)


@inner_kernel
def input_gradient(frame: Any, real: Any) -> None:
    """(W as patches, winner, gradient of pooled, starts) → gradient of x with padding, [positions, factors].

    A patch is written in whole vectors: the last one may run over into the next sample or the padding at the end.
    """
    patches, winner, gradient = argument(frame, 0, real), argument(frame, 1, np.int8), argument(frame, 2, real)
    starts, dx = argument(frame, 3, np.int32), result(frame, 0, real)
    at, factor = result(frame, 1, np.int32), result(frame, 2, real)
    _, height, width, channels = result_sizes(frame, 0)
    windows, vectors = argument_sizes(frame, 1), argument_sizes(frame, 3)[3]
    pixels, places, filters = height * width * channels, windows[1] * windows[2], windows[3]
    for _ in range(windows[0]):
        for p in range(pixels):
            dx[p] = 0
        for f in range(filters):
            count = _active(offset(winner, f), offset(gradient, f), windows, width * channels, channels, at, factor)
            for v in range(0, vectors, GROUP):
                _spread(dx, at, factor, count, starts, v, patches, (f * vectors + v) * LANES)
        dx, winner, gradient = offset(dx, pixels), offset(winner, places * filters), offset(gradient, places * filters)


@inner_kernel
def _active(winner: Any, gradient: Any, windows: Any, row: int, pixel: int, at: Any, factor: Any) -> int:
    """Find the patches of one filter in one sample that pass a gradient on; return their number.

    Their starts are written to `at`, their gradients to `factor`. Column by column: neighbours in a column are two rows
    apart, so that `spread_patches` does not read what it wrote just before, which would halve its speed. Without
    branches: a patch that is OFF is overwritten by the next one.
    """
    _, height, width, filters = windows
    count = 0
    for j in range(width):
        for i in range(height):
            place = (i * width + j) * filters
            which = winner[place]
            at[count] = 2 * i * row + 2 * j * pixel + (which >> 1) * row + (which & 1) * pixel
            factor[count] = gradient[place]
            count += which != OFF
    return count
