"""relu(max_pool(x ∗ W) + b) and its gradients, sample by sample, compiled for the CPU.

x [n, height, width, channels], W [rows, columns, channels, filters], pooled [n, height′, width′, filters]; the
convolution is valid, the pooling 2×2, an odd last row or column is dropped.

Forward, the four sums under a pooling window never leave the registers: only the largest is stored, and which one it
was (0 … 3, or OFF where the ReLU is closed). Backward, only that one of four passes a gradient on, and none where
the ReLU is closed: a quarter to a tenth of the products of a dense backward pass.
"""

from typing import Any

import numpy as np

from vefl_sim.kernel import inner
from vefl_sim.learning.conv_tiles import add_patches, best_of_four, spread_patches
from vefl_sim.learning.simd import LANES

OFF = 4
_best_1, _best_2, _best_3 = best_of_four(1), best_of_four(2), best_of_four(3)
_add_5, _add_7 = add_patches(5), add_patches(7)
_spread_5, _spread_7 = spread_patches(5), spread_patches(7)


@inner
def pooled_conv(x: Any, w: Any, bias: Any, pooled: Any, winner: Any) -> None:
    """Fill `pooled` and `winner` (int8, of the same shape)."""
    samples, height, width, channels = x.shape
    rows, columns, _, filters = w.shape
    row, taps, step = width * channels, columns * channels, _whole(filters)
    table = _filters_last(w, step)
    found = np.empty(2 * step, x.dtype)
    pixels = x.reshape(-1)
    for n in range(samples):
        for i in range(pooled.shape[1]):
            for j in range(pooled.shape[2]):
                at = (n * height + 2 * i) * row + 2 * j * channels
                f = 0
                while f + 3 * LANES <= step:
                    _best_3(pixels, at, row, channels, table, f, step, taps, rows, found, f)
                    f += 3 * LANES
                if f + 2 * LANES == step:
                    _best_2(pixels, at, row, channels, table, f, step, taps, rows, found, f)
                elif f + LANES == step:
                    _best_1(pixels, at, row, channels, table, f, step, taps, rows, found, f)
                for f in range(filters):
                    value = found[f] + bias[f]
                    pooled[n, i, j, f] = 0 if value <= 0 else value  # so that nan stays nan
                    winner[n, i, j, f] = found[step + f] if value > 0 else OFF


@inner
def filter_gradient(x: Any, winner: Any, gradient: Any, dw: Any, db: Any) -> None:
    """Fill `dw` and `db`, the gradients of W and b, from that of `pooled`; summed over samples in their order."""
    samples, height, width, channels = x.shape
    rows, columns, _, filters = dw.shape
    row = width * channels
    parts, group = _parts(rows, columns * channels, row)
    total = np.zeros(filters * len(parts) * LANES, x.dtype)
    sample = np.zeros(height * row + len(parts) * LANES, x.dtype)
    at, factor, count = _room(winner, x)
    pixels = x.reshape(-1)
    for f in range(filters):
        db[f] = 0
    for n in range(samples):
        _add_open(winner[n], gradient[n], db)
        for p in range(height * row):
            sample[p] = pixels[n * height * row + p]
        _open_positions(winner[n], gradient[n], row, channels, at, factor, count)
        for f in range(filters):
            for first in range(0, len(parts), group):
                place = (f * len(parts) + first) * LANES
                if group == 7:
                    _add_7(sample, at[f], factor[f], count[f], parts, first, total, place)
                else:
                    _add_5(sample, at[f], factor[f], count[f], parts, first, total, place)
    _copy_filters(total.reshape(filters, -1), dw, False)


@inner
def input_gradient(w: Any, winner: Any, gradient: Any, dx: Any) -> None:
    """Fill `dx`, the gradient of x, from that of `pooled`."""
    samples, height, width, channels = dx.shape
    rows, columns, _, filters = w.shape
    row = width * channels
    parts, group = _parts(rows, columns * channels, row)
    patches = np.zeros(filters * len(parts) * LANES, w.dtype)
    _copy_filters(patches.reshape(filters, -1), w, True)
    sample = np.zeros(height * row + len(parts) * LANES, w.dtype)
    at, factor, count = _room(winner, w)
    pixels = dx.reshape(-1)
    for n in range(samples):
        for p in range(len(sample)):
            sample[p] = 0
        _open_positions(winner[n], gradient[n], row, channels, at, factor, count)
        for f in range(filters):
            for first in range(0, len(parts), group):
                place = (f * len(parts) + first) * LANES
                if group == 7:
                    _spread_7(sample, at[f], factor[f], count[f], parts, first, patches, place)
                else:
                    _spread_5(sample, at[f], factor[f], count[f], parts, first, patches, place)
        for p in range(height * row):
            pixels[n * height * row + p] = sample[p]


@inner
def _whole(count: int) -> int:
    """Filled up to whole vectors."""
    return (count + LANES - 1) // LANES * LANES


@inner
def _filters_last(w: Any, step: int) -> Any:
    """W as [tap, filter], flat, with zeros up to whole vectors of filters."""
    filters = w.shape[3]
    flat = w.reshape(-1)
    taps = flat.size // filters
    table = np.zeros(taps * step, w.dtype)
    for t in range(taps):
        for f in range(filters):
            table[t * step + f] = flat[t * filters + f]
    return table


@inner
def _parts(rows: int, taps: int, row: int) -> Any:
    """Where the vectors of a patch start, counted from its first number; and how many are taken at a time.

    Seven or five sums at a time: enough to hide the latency of an addition, few enough for sixteen registers. The last
    group is filled up with the first vector; what that adds is never read.
    """
    across = _whole(taps) // LANES
    wanted = rows * across
    group = 7 if (wanted + 6) // 7 * 7 <= (wanted + 4) // 5 * 5 else 5
    parts = np.zeros((wanted + group - 1) // group * group, np.int64)
    for i in range(wanted):
        parts[i] = i // across * row + i % across * LANES
    return parts, group


@inner
def _copy_filters(patches: Any, w: Any, into_patches: bool) -> None:
    """Between W and patches [filter, vectors of a patch], whose rows are filled up to whole vectors."""
    rows, columns, channels, filters = w.shape
    across = _whole(columns * channels)
    for r in range(rows):
        for c in range(columns):
            for d in range(channels):
                for f in range(filters):
                    if into_patches:
                        patches[f, r * across + c * channels + d] = w[r, c, d, f]
                    else:
                        w[r, c, d, f] = patches[f, r * across + c * channels + d]


@inner
def _room(winner: Any, like: Any) -> Any:
    """Room for the open positions of each filter in one sample, and one more."""
    _, height, width, filters = winner.shape
    places = height * width + 1
    return np.empty((filters, places), np.int64), np.empty((filters, places), like.dtype), np.empty(filters, np.int64)


@inner
def _add_open(winner: Any, gradient: Any, total: Any) -> None:
    """Add the gradients where the ReLU is open. Not left to XLA, which splits so long a sum by its threads."""
    height, width, filters = winner.shape
    for i in range(height):
        for j in range(width):
            for f in range(filters):
                total[f] += gradient[i, j, f] if winner[i, j, f] != OFF else 0


@inner
def _open_positions(winner: Any, gradient: Any, row: int, pixel: int, at: Any, factor: Any, count: Any) -> None:
    """For each filter the patches that pass a gradient on, at[f, :count[f]], and these gradients.

    Column after column: neighbours in a column are two rows apart, so that `spread_patches` does not read what it wrote
    just before, which would cost it half its speed. Written without a branch: a closed one is overwritten by the next.
    """
    height, width, filters = winner.shape
    for f in range(filters):
        count[f] = 0
    for j in range(width):
        for i in range(height):
            corner = 2 * i * row + 2 * j * pixel
            for f in range(filters):
                which, n = winner[i, j, f], count[f]
                at[f, n] = corner + (which >> 1) * row + (which & 1) * pixel
                factor[f, n] = gradient[i, j, f]
                count[f] = n + (which != OFF)
