"""The inner loops of a convolution with pooling, with all sums in registers.

A patch is the area that a filter covers, such as 5×5. In an array with channels last each of its rows is contiguous,
so a patch is a few vectors at fixed distances from its first number.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from vefl_sim.learning.conv.simd import Flat, VectorRegister, index_at, lanes_at, multiply_add, vector_at

OFF = -1
"""Start of the chosen patch where the ReLU gives 0, so that no patch passes a gradient on."""

_I = types.int64


def best_of_four(filters: int) -> Any:
    """A compiled `best(x, at, row, pixel, w, first, step, taps, rows, bias, pooled, starts, place)`.

    Convolves eight samples, one per lane, at the four positions of a pooling window with `filters` filters, and keeps
    the largest of the four sums plus the bias where it is positive.
    x: eight samples, [number][lane]; `at`: first number of the window's patch; `row`, `pixel`: numbers from one row
    and one pixel of x to the next; w[first + t·step:]: the filters' weights at tap t; `taps` per row of the patch,
    `rows` of these. Results [place + filter][lane]: `pooled`, and `starts`, the first number of the patch with the
    largest sum (by rows; the first if equal), OFF where the ReLU gives 0.
    """

    @intrinsic
    def best(typing: Any, x: Any, at: Any, row: Any, pixel: Any, w: Any, first: Any, step: Any, taps: Any, rows: Any,
             bias: Any, pooled: Any, starts: Any, place: Any) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
        signature = types.void(x, _I, _I, _I, w, _I, _I, _I, _I, bias, pooled, starts, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = [Flat(context, builder, signature.args[i], args[i]) for i in (0, 4, 9, 10, 11)]
            samples, weights, biases, values, chosen = flat
            _, at, row, pixel, _, first, step, taps, rows, _, _, _, place = args
            below = builder.add(at, row)
            corners = [at, builder.add(at, pixel), below, builder.add(below, pixel)]
            zero = samples.constant(0.0)
            sums = [[VectorRegister(builder, zero) for _ in corners] for _ in range(filters)]
            with cgutils.for_range(builder, rows) as down:
                lines = [builder.add(corner, builder.mul(down.index, row)) for corner in corners]
                table = builder.add(first, builder.mul(builder.mul(down.index, taps), step))
                with cgutils.for_range(builder, taps) as along:
                    tap = builder.add(table, builder.mul(along.index, step))
                    numbers = [samples.load(lanes_at(builder, builder.add(line, along.index))) for line in lines]
                    for f, totals in enumerate(sums):
                        weight = weights.spread(index_at(builder, tap, f))
                        for total, number in zip(totals, numbers, strict=True):
                            total.add_product(number, weight)
            positions = [chosen.spread_value(builder.trunc(corner, chosen.vector.element)) for corner in corners]
            for f, totals in enumerate(sums):
                largest, start = totals[0].value, positions[0]
                for total, position in zip(totals[1:], positions[1:], strict=True):
                    larger = builder.fcmp_ordered(">", total.value, largest)
                    largest = builder.select(larger, total.value, largest)
                    start = builder.select(larger, position, start)
                value = builder.fadd(largest, biases.spread(index_at(builder, first, f)))
                inactive = builder.fcmp_ordered("<=", value, zero)  # so that nan stays nan
                target = lanes_at(builder, index_at(builder, place, f))
                values.store(builder.select(inactive, zero, value), target)
                passed_on = builder.fcmp_ordered(">", value, zero)
                chosen.store(builder.select(passed_on, start, chosen.constant(OFF)), target)
            return context.get_dummy_value()

        return signature, generate

    return best


def add_patches(filters: int, vectors: int) -> Any:
    """A compiled `add(x, at, factor, height, width, step, parts, first, total, place, line)`.

    total[place + f·line + 8·i:] += Σ_k factor[k + f] · x[at[k + f] + parts[first + i]:] for `filters` filters f and
    `vectors` parts i of their patches, 8 numbers each; k = (row·width + column)·step runs over the pooling windows
    column by column.
    """

    @intrinsic
    def add(typing: Any, x: Any, at: Any, factor: Any, height: Any, width: Any, step: Any, parts: Any, first: Any,
            total: Any, place: Any, line: Any) -> tuple[Any, Callable[..., Any]]:  # fmt: skip
        signature = types.void(x, at, factor, _I, _I, _I, parts, _I, total, _I, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = [Flat(context, builder, signature.args[i], args[i]) for i in (0, 1, 2, 6, 8)]
            patches, starts, factors, table, result = flat
            _, _, _, height, width, step, _, first, _, place, line = args
            distances = [table.index(index_at(builder, first, i)) for i in range(vectors)]
            lines = [builder.add(place, builder.mul(line, ir.Constant(line.type, f))) for f in range(filters)]
            places = [[vector_at(builder, here, i) for i in range(vectors)] for here in lines]
            sums = [[VectorRegister(builder, result.load(place)) for place in here] for here in places]
            with cgutils.for_range(builder, width) as across, cgutils.for_range(builder, height) as down:
                window = builder.mul(builder.add(builder.mul(down.index, width), across.index), step)
                for f, totals in enumerate(sums):
                    k = index_at(builder, window, f)
                    start, value = starts.index(k), factors.spread(k)
                    for total, distance in zip(totals, distances, strict=True):
                        total.add_product(value, patches.load(builder.add(start, distance)))
            for totals, here in zip(sums, places, strict=True):
                for total, place in zip(totals, here, strict=True):
                    result.store(total.value, place)
            return context.get_dummy_value()

        return signature, generate

    return add


def sum_rows(vectors: int) -> Any:
    """A compiled `add(table, count, step, total, place)`.

    total[place:] += Σ_n table[place + n·step:] for `count` rows n, `vectors` vectors of each.
    """

    @intrinsic
    def add(typing: Any, table: Any, count: Any, step: Any, total: Any, place: Any) -> tuple[Any, Callable[..., Any]]:
        signature = types.void(table, _I, _I, total, _I)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lines, result = (Flat(context, builder, signature.args[i], args[i]) for i in (0, 3))
            _, count, step, _, place = args
            places = [vector_at(builder, place, i) for i in range(vectors)]
            sums = [VectorRegister(builder, result.load(place)) for place in places]
            with cgutils.for_range(builder, count) as n:
                line = builder.mul(n.index, step)
                for total, here in zip(sums, places, strict=True):
                    total.add(lines.load(builder.add(line, here)))
            for total, here in zip(sums, places, strict=True):
                result.store(total.value, here)
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
