"""The inner loops of a convolution with pooling, with all sums in registers.

Numba keeps a small array in memory; the inner loops of a convolution need their sums in registers, in vectors of eight
numbers. A Numba `intrinsic` emits LLVM instructions directly; the helpers here keep such code short. Positions count
numbers from the start of a flat array; nothing is checked, so arrays must have a whole vector at every position that is
read.

Eight samples lie side by side, one per lane of a vector: stored as [number][lane] instead of [sample][number]. So a
convolution needs no padding, whatever the number of filters, channels or columns: each vector holds the same number of
eight samples. `into_lanes` and `from_lanes` change between the two orders by transposing blocks of 8×8 numbers in
registers.

A patch is the area that a filter covers, such as 5×5. In an array with channels last each of its rows is contiguous,
so a patch is a few vectors at fixed distances from its first number.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from vefl_sim.core.kernel import kernel

LANES = 8
_INDEX = ir.IntType(64)
_CONTRACT = ("contract",)  # multiply and add in one instruction where the CPU has it


class Flat:
    """The flat array that a pointer argument of an intrinsic points to."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self._builder = builder
        self._data = value
        element = context.get_data_type(kind.dtype)
        self.vector = ir.VectorType(element, LANES)
        self._align = context.get_abi_sizeof(element)

    def scalar(self, position: Any) -> Any:
        """The number at a position."""
        return self._builder.load(self._builder.gep(self._data, [position]))

    def index(self, position: Any) -> Any:
        """The integer at a position, as a 64-bit position."""
        return self._builder.sext(self.scalar(position), _INDEX)

    def load(self, position: Any) -> Any:
        """The eight numbers that start at a position."""
        loaded = self._builder.load(self._pointer(position))
        loaded.align = self._align
        return loaded

    def store(self, value: Any, position: Any) -> None:
        """Write eight numbers, starting at a position."""
        self._builder.store(value, self._pointer(position), align=self._align)

    def spread(self, position: Any) -> Any:
        """A vector with the number at a position in all eight lanes."""
        return self.spread_value(self.scalar(position))

    def spread_value(self, number: Any) -> Any:
        """A vector with this number in all eight lanes."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self._builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return shuffle(self._builder, first, undefined, [0] * LANES)

    def constant(self, value: float) -> Any:
        """A vector with a constant in all eight lanes."""
        return ir.Constant(self.vector, [value] * LANES)

    def _pointer(self, position: Any) -> Any:
        return self._builder.bitcast(self._builder.gep(self._data, [position]), self.vector.as_pointer())


class VectorRegister:
    """A vector variable, which LLVM keeps in a register."""

    def __init__(self, builder: Any, start: Any) -> None:
        self._builder = builder
        self._memory = cgutils.alloca_once(builder, start.type)  # type: ignore[no-untyped-call]
        builder.store(start, self._memory)

    @property
    def value(self) -> Any:
        """The current value."""
        return self._builder.load(self._memory)

    def add_product(self, one: Any, other: Any) -> None:
        """Add one · other to the value."""
        self._builder.store(multiply_add(self._builder, one, other, self.value), self._memory)


def multiply_add(builder: Any, one: Any, other: Any, added: Any) -> Any:
    """The vector one · other + added."""
    return builder.fadd(builder.fmul(one, other, flags=_CONTRACT), added, flags=_CONTRACT)


def shuffle(builder: Any, one: Any, other: Any, lanes: list[int]) -> Any:
    """A vector of these lanes of two vectors; those of the second count from LANES."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))


def lanes_at(builder: Any, number: Any) -> Any:
    """Position of a number in an array [number][lane]."""
    return builder.mul(number, ir.Constant(_INDEX, LANES))


def vector_at(builder: Any, position: Any, number: int) -> Any:
    """The position `number` vectors after this one."""
    return builder.add(position, ir.Constant(_INDEX, number * LANES))


def index_at(builder: Any, position: Any, number: int) -> Any:
    """The position `number` numbers after this one."""
    return builder.add(position, ir.Constant(_INDEX, number))


_I = types.int64


@kernel
def into_lanes(samples: Any, first: int, last: int, size: int, lanes: Any) -> None:
    """Copy eight samples of `size` numbers to [number][lane]; lane i is sample first + i, or `last` if that is less."""
    _blocks_into_lanes(samples, first, last, size, lanes)
    for p in range(size // LANES * LANES, size):
        for lane in range(LANES):
            lanes[p * LANES + lane] = samples[min(first + lane, last) * size + p]


@kernel
def from_lanes(samples: Any, first: int, last: int, size: int, lanes: Any) -> None:
    """Copy eight samples back, the reverse of `into_lanes`; lanes of the same sample must be equal."""
    _blocks_from_lanes(samples, first, last, size, lanes)
    for p in range(size // LANES * LANES, size):
        for lane in range(LANES):
            samples[min(first + lane, last) * size + p] = lanes[p * LANES + lane]


def _block_copy(into: bool) -> Any:
    """A compiled `copy(samples, first, last, size, lanes)` of all whole blocks of eight numbers, into lanes or back."""

    @intrinsic
    def copy(typing: Any, samples: Any, first: Any, last: Any, size: Any, lanes: Any) -> tuple[Any, Callable[..., Any]]:
        signature = types.void(samples, _I, _I, _I, lanes)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            plain, interleaved = (Flat(context, builder, signature.args[i], args[i]) for i in (0, 4))
            _, first, last, size, _ = args
            length = ir.Constant(size.type, LANES)
            starts = [builder.mul(_smaller(builder, index_at(builder, first, i), last), size) for i in range(LANES)]
            with cgutils.for_range(builder, builder.sdiv(size, length)) as block:
                number = builder.mul(block.index, length)
                in_samples = [builder.add(start, number) for start in starts]
                in_lanes = [vector_at(builder, builder.mul(number, length), i) for i in range(LANES)]
                sides = [(plain, in_samples), (interleaved, in_lanes)]
                (source, read), (target, write) = sides if into else sides[::-1]
                columns = _transposed(builder, [source.load(position) for position in read])
                for column, position in zip(columns, write, strict=True):
                    target.store(column, position)
            return context.get_dummy_value()

        return signature, generate

    return copy


def _smaller(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.icmp_signed("<", one, other), one, other)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of eight vectors: blocks of four, then two, then one change places across the diagonal."""
    for size in (4, 2, 1):
        for i in (i for i in range(LANES) if not i & size):
            upper, lower = rows[i], rows[i + size]
            rows[i] = shuffle(builder, upper, lower, [LANES + n - size if n & size else n for n in range(LANES)])
            rows[i + size] = shuffle(builder, upper, lower, [LANES + n if n & size else n + size for n in range(LANES)])
    return rows


_blocks_into_lanes, _blocks_from_lanes = _block_copy(into=True), _block_copy(into=False)


OFF = -1
"""Start of the chosen patch where the ReLU gives 0, so that no patch passes a gradient on."""


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
