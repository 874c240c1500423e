"""relu(max_pool(x ∗ W) + b) and its gradients, compiled for the CPU.

x [n, height, width, channels], W [rows, columns, channels, filters], pooled [n, height′, width′, filters]; the
convolution is valid, the pooling 2×2, an odd last row or column is dropped. Each kernel takes an XLA FFI call
frame (`xla_ffi`) with the arguments and results that its docstring lists, and the number type. Results in brackets are
scratch memory.

Forward, eight samples are processed at a time, one per lane. The four sums under a pooling window never leave the
registers: only the largest is stored, and where in the sample its patch starts (or OFF where the ReLU gives 0).
Backward, sample by sample, only that one of four passes a gradient on: a quarter of the products of a dense backward
pass.
"""

from typing import Any

import numpy as np
from llvmlite import binding

from vefl_sim.core.kernel import kernel
from vefl_sim.learning.conv.tiles import LANES, OFF, add_patches, best_of_four, from_lanes, into_lanes, spread_patches
from vefl_sim.learning.conv.xla_ffi import ARGUMENTS, RESULTS, data, offset, sizes

TILE = 5 if binding.get_host_cpu_features().get("avx512vl") else 2
"""Filters processed at a time: as many as 32 or 16 registers have room for. Results do not depend on it."""

GROUP = 5
"""Vectors of a patch processed at a time. The last digits of the gradient of x depend on it."""

_best, _best_1 = best_of_four(TILE), best_of_four(1)
_add, _add_1 = add_patches(TILE, GROUP), add_patches(1, GROUP)
_spread = spread_patches(GROUP)


@kernel
def pooled_conv_kernel(frame: Any, real: Any) -> None:
    """(x, W, b) → pooled, starts (of all samples or of none), [eight samples of x, of pooled and of starts]."""
    arguments, results = frame[ARGUMENTS], frame[RESULTS]
    x, w, bias = data(arguments, 0, real), data(arguments, 1, real), data(arguments, 2, real)
    pooled, starts = data(results, 0, real), data(results, 1, np.int32)
    images, values, chosen = data(results, 2, real), data(results, 3, real), data(results, 4, np.int32)
    _, height, width, channels = sizes(arguments, 0)
    rows, columns, _, _ = sizes(arguments, 1)
    samples, pooled_rows, pooled_columns, filters = sizes(results, 0)
    row, taps, kept = width * channels, columns * channels, sizes(results, 1)[0]
    for n in range(0, samples, LANES):
        into_lanes(x, n, samples - 1, height * row, images)
        place = 0
        for i in range(pooled_rows):
            for j in range(pooled_columns):
                at = 2 * i * row + 2 * j * channels
                for f in range(0, filters - TILE + 1, TILE):
                    _best(images, at, row, channels, w, f, filters, taps, rows, bias, values, chosen, place + f)
                for f in range(filters // TILE * TILE, filters):
                    _best_1(images, at, row, channels, w, f, filters, taps, rows, bias, values, chosen, place + f)
                place += filters
        from_lanes(pooled, n, samples - 1, place, values)
        if kept > 0:
            from_lanes(starts, n, samples - 1, place, chosen)


@kernel
def filter_gradient(frame: Any, real: Any) -> None:
    """(x, starts, gradient of pooled, parts) → gradients of W as patches and of b, [a sample, positions, factors].

    Sums run over the samples in order. b is summed here, too, because XLA would split so long a sum over its threads.
    A patch that is OFF is added with factor 0, which is faster than listing the active ones where most are.
    """
    arguments, results = frame[ARGUMENTS], frame[RESULTS]
    x, starts, gradient = data(arguments, 0, real), data(arguments, 1, np.int32), data(arguments, 2, real)
    parts, dw, db = data(arguments, 3, np.int32), data(results, 0, real), data(results, 1, real)
    sample, at, factor = data(results, 2, real), data(results, 3, np.int32), data(results, 4, real)
    _, height, width, channels = sizes(arguments, 0)
    samples, rows, columns, filters = sizes(arguments, 1)
    vectors = sizes(arguments, 3)[3]
    pixels, places, line = height * width * channels, rows * columns * filters, vectors * LANES
    for p in range(filters * line):
        dw[p] = 0
    for f in range(filters):
        db[f] = 0
    for _ in range(samples):
        active = 0
        for p in range(places):
            off = starts[p] == OFF
            value = real(0) if off else gradient[p]
            at[p] = 0 if off else starts[p]
            factor[p] = value
            active += value != 0
        if active > 0:  # padding samples have no gradient
            for p in range(pixels):
                sample[p] = x[p]
            for window in range(rows * columns):
                for f in range(filters):
                    db[f] += factor[window * filters + f]
            for v in range(0, vectors, GROUP):
                for f in range(0, filters - TILE + 1, TILE):
                    place = f * line + v * LANES
                    _add(sample, offset(at, f), offset(factor, f), rows, columns, filters, parts, v, dw, place, line)
                for f in range(filters // TILE * TILE, filters):
                    place = f * line + v * LANES
                    _add_1(sample, offset(at, f), offset(factor, f), rows, columns, filters, parts, v, dw, place, line)
        x, starts, gradient = offset(x, pixels), offset(starts, places), offset(gradient, places)


@kernel
def input_gradient(frame: Any, real: Any) -> None:
    """(W as patches, starts, gradient of pooled, parts) → gradient of x, [a sample, positions, factors].

    A patch is written in whole vectors: the last one may run over into the padding at the end of the sample.
    """
    arguments, results = frame[ARGUMENTS], frame[RESULTS]
    patches, starts, gradient = data(arguments, 0, real), data(arguments, 1, np.int32), data(arguments, 2, real)
    parts, dx, sample = data(arguments, 3, np.int32), data(results, 0, real), data(results, 1, real)
    at, factor = data(results, 2, np.int32), data(results, 3, real)
    samples, height, width, channels = sizes(results, 0)
    windows, vectors = sizes(arguments, 1), sizes(arguments, 3)[3]
    pixels, places, filters = height * width * channels, windows[1] * windows[2] * windows[3], windows[3]
    for _ in range(samples):
        for p in range(pixels):
            sample[p] = 0
        for f in range(filters):
            count = _active(offset(starts, f), offset(gradient, f), windows, at, factor)
            for v in range(0, vectors, GROUP):
                _spread(sample, at, factor, count, parts, v, patches, (f * vectors + v) * LANES)
        for p in range(pixels):
            dx[p] = sample[p]
        dx, starts, gradient = offset(dx, pixels), offset(starts, places), offset(gradient, places)


@kernel
def _active(starts: Any, gradient: Any, windows: Any, at: Any, factor: Any) -> int:
    """Find the patches of one filter in one sample that pass a gradient on; return their number.

    Their starts are written to `at`, their gradients to `factor`. Column by column: neighbours in a column are two rows
    apart, so that `spread_patches` does not read what it wrote just before, which would halve its speed. Without
    branches: a patch that passes nothing on is overwritten by the next one.
    """
    _, height, width, filters = windows
    count = 0
    for j in range(width):
        for i in range(height):
            place = (i * width + j) * filters
            at[count] = starts[place]
            factor[count] = gradient[place]
            count += (starts[place] != OFF) & (gradient[place] != 0)
    return count
