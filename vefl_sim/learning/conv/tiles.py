"""The inner loops of a convolution with pooling: the work at one position, with all sums in registers.

A patch is the area that a filter covers, such as 5×5. In an array with channels last each of its rows is contiguous,
so a patch is a few vectors at fixed distances from its first number.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from vefl_sim.learning.conv.simd import Flat, VectorRegister, index_at, multiply_add, vector_at

_I = types.int64


def best_of_four(vectors: int) -> Any:
    """A compiled `best(x, at, row, pixel, filters, first, step, taps, rows, maxima, place)`.

    Convolves at the four positions of a pooling window and keeps the largest sum of each of 8·`vectors` channels.
    x[at]: first number of the window's patch; `row`, `pixel`: numbers from one row and one pixel of x to the next;
    `filters[first + t·step]`: channels of tap t; `taps` per row of the patch, `rows` of these. The sums go to
    maxima[place:], which of the four they come from (0 … 3 by rows; the first if equal) to maxima[place + step:].
    """

    @intrinsic
    def best(typing: Any, x: Any, at: Any, row: Any, pixel: Any, filters: Any, first: Any, step: Any, taps: Any,
             rows: Any, maxima: Any, place: Any) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
        signature = types.void(x, _I, _I, _I, filters, _I, _I, _I, _I, maxima, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = [Flat(context, builder, signature.args[i], args[i]) for i in (0, 4, 9)]
            window, tables, result = flat
            _, at, row, pixel, _, first, step, taps, rows, _, place = args
            sums = [[VectorRegister(builder, window.constant(0.0)) for _ in range(vectors)] for _ in range(4)]
            with cgutils.for_range(builder, rows) as down:
                left = builder.add(at, builder.mul(down.index, row))
                below = builder.add(left, row)
                corners = [left, builder.add(left, pixel), below, builder.add(below, pixel)]
                table = builder.add(first, builder.mul(builder.mul(down.index, taps), step))
                with cgutils.for_range(builder, taps) as along:
                    tap = builder.add(table, builder.mul(along.index, step))
                    loaded = [tables.load(vector_at(builder, tap, v)) for v in range(vectors)]
                    for corner, channels in zip(corners, sums, strict=True):
                        value = window.spread(builder.add(corner, along.index))
                        for total, weights in zip(channels, loaded, strict=True):
                            total.add_product(value, weights)
            for v in range(vectors):
                largest, which = sums[0][v].value, window.constant(0.0)
                for p in (1, 2, 3):
                    other = sums[p][v].value
                    larger = builder.fcmp_ordered(">", other, largest)
                    largest = builder.select(larger, other, largest)
                    which = builder.select(larger, window.constant(float(p)), which)
                result.store(largest, vector_at(builder, place, v))
                result.store(which, vector_at(builder, builder.add(place, step), v))
            return context.get_dummy_value()

        return signature, generate

    return best


def add_patches(vectors: int) -> Any:
    """A compiled `add(x, at, factor, count, parts, first, total, place)`.

    total[place + 8·i:] += Σ_n factor[n] · x[at[n] + parts[first + i]:] for the `count` patches that start at at[n]
    and `vectors` parts i of them, 8 numbers each.
    """

    @intrinsic
    def add(typing: Any, x: Any, at: Any, factor: Any, count: Any, parts: Any, first: Any, total: Any,
            place: Any) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
        signature = types.void(x, at, factor, _I, parts, _I, total, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = [Flat(context, builder, signature.args[i], args[i]) for i in (0, 1, 2, 4, 6)]
            patches, starts, factors, table, result = flat
            distances = [table.index(index_at(builder, args[5], i)) for i in range(vectors)]
            places = [vector_at(builder, args[7], i) for i in range(vectors)]
            sums = [VectorRegister(builder, result.load(place)) for place in places]
            with cgutils.for_range(builder, args[3]) as n:
                start, value = starts.index(n.index), factors.spread(n.index)
                for total, distance in zip(sums, distances, strict=True):
                    total.add_product(value, patches.load(builder.add(start, distance)))
            for total, place in zip(sums, places, strict=True):
                result.store(total.value, place)
            return context.get_dummy_value()

        return signature, generate

    return add


def spread_patches(vectors: int) -> Any:
    """A compiled `spread(x, at, factor, count, parts, first, patch, place)`, the transpose of `add_patches`.

    x[at[n] + parts[first + i]:] += factor[n] · patch[place + 8·i:], for n in order.
    """

    @intrinsic
    def spread(typing: Any, x: Any, at: Any, factor: Any, count: Any, parts: Any, first: Any, patch: Any,
               place: Any) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
        signature = types.void(x, at, factor, _I, parts, _I, patch, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = [Flat(context, builder, signature.args[i], args[i]) for i in (0, 1, 2, 4, 6)]
            result, starts, factors, table, patch = flat
            distances = [table.index(index_at(builder, args[5], i)) for i in range(vectors)]
            loaded = [patch.load(vector_at(builder, args[7], i)) for i in range(vectors)]
            with cgutils.for_range(builder, args[3]) as n:
                start, value = starts.index(n.index), factors.spread(n.index)
                for part, distance in zip(loaded, distances, strict=True):
                    target = builder.add(start, distance)
                    result.store(multiply_add(builder, value, part, result.load(target)), target)
            return context.get_dummy_value()

        return signature, generate

    return spread
