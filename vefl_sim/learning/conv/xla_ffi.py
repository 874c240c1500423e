"""Kernels of Numba as calls inside programs of XLA.

XLA hands a C function one frame with the buffers of a call (its typed FFI, `xla/ffi/api/c_api.h` in jaxlib), and wants
0 back. A frame is read here as words of 64 bits: the ABI is stable, and fields are only added at the end. Kernels see
buffers as bare pointers, which compile more than twice as fast as arrays of Numba; nothing is checked.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vefl_sim.core.kernel import inner

WORDS = types.CPointer(types.int64)
HANDLER = types.int64(WORDS)
"""Signature of the C function."""

_EXTENSION, _ARGUMENTS, _RESULTS = 1, 9, 14  # words of a frame
_TYPE, _METADATA, _VERSION = 1, 3, 3  # words of an extension (twice) and of the metadata it points to
_DATA, _SIZES = 3, 5  # words of a buffer
_IS_METADATA = 1
_OURS = 0 | 1 << 32  # major and minor version of the ABI: what we use has been there since 0.1
_AXES = types.UniTuple(types.int64, 4)
_WORD = ir.IntType(64)


def _numbers(buffers: int) -> Any:
    """A compiled function (frame, number, type) → the numbers of a buffer, as a pointer."""

    @intrinsic
    def numbers(typing: Any, frame: Any, number: Any, kind: Any) -> Any:
        pointer = types.CPointer(kind.dtype)

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            data = _word(builder, _buffer(builder, given, buffers), _DATA)
            return builder.inttoptr(data, context.get_value_type(pointer))

        return pointer(frame, types.int64, kind), generate

    return numbers


def _sizes(buffers: int) -> Any:
    """A compiled function (frame, number) → the sizes of a buffer with four axes."""

    @intrinsic
    def sizes(typing: Any, frame: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            axes = _followed(builder, _buffer(builder, given, buffers), _SIZES)
            return context.make_tuple(builder, _AXES, [_word(builder, axes, axis) for axis in range(4)])

        return _AXES(frame, types.int64), generate

    return sizes


def _buffer(builder: Any, given: Any, buffers: int) -> Any:
    frame, number = given[:2]
    return _followed(builder, _followed(builder, frame, buffers), number)


def _followed(builder: Any, words: Any, place: Any) -> Any:
    """The words to which a word points."""
    return builder.inttoptr(_word(builder, words, place), _WORD.as_pointer())


def _word(builder: Any, words: Any, place: Any) -> Any:
    return builder.load(builder.gep(words, [_WORD(place) if isinstance(place, int) else place]))


def _beyond(typing: Any, pointer: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.gep(given[0], [given[1]])

    return pointer(pointer, types.int64), generate


def _pointed_to(typing: Any, words: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _followed(builder, *given)

    return WORDS(words, types.int64), generate


argument, result = _numbers(_ARGUMENTS), _numbers(_RESULTS)
argument_sizes, result_sizes = _sizes(_ARGUMENTS), _sizes(_RESULTS)
beyond: Any = intrinsic(_beyond)
"""(pointer, count) → what is so many numbers further on."""

_pointed: Any = intrinsic(_pointed_to)


@inner
def asks_for_version(frame: Any) -> bool:
    """True if this is no call but XLA asking, once, which version of the ABI we speak; then it is answered."""
    if frame[_EXTENSION] == 0:
        return False
    extension = _pointed(frame, _EXTENSION)
    if extension[_TYPE] & 0xFFFFFFFF != _IS_METADATA:
        return False
    _pointed(extension, _METADATA)[_VERSION] = _OURS
    return True
