"""Eight samples side by side, one per lane of a vector: stored as [number][lane] instead of [sample][number].

With one sample per lane a convolution needs no padding, whatever the number of filters, channels or columns: each
vector holds the same number of eight samples. The copies below change between the two orders by transposing blocks of
8×8 numbers in registers.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from vefl_sim.core.kernel import kernel
from vefl_sim.learning.conv.simd import LANES, Flat, index_at, shuffle, vector_at

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
