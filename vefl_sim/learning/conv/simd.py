"""Vectors of eight numbers inside compiled kernels, where the compiler does not vectorize by itself.

Numba keeps a small array in memory; the inner loops of a convolution need their sums in registers. A Numba
`intrinsic` emits LLVM instructions directly; the helpers here keep such code short. Positions count numbers from the
start of a flat array; nothing is checked, so arrays must have a whole vector at every position that is read.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

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

    def add(self, other: Any) -> None:
        """Add a vector to the value."""
        self._builder.store(self._builder.fadd(self.value, other), self._memory)

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
