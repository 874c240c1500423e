"""Numba kernels as calls inside XLA programs, through XLA's typed FFI (foreign function interface).

XLA passes a C function one frame with the buffers of a call (`xla/ffi/api/c_api.h` in jaxlib); the function returns 0.
A frame is read here as 64-bit words: the ABI is stable, and fields are only added at the end. Kernels see buffers as
bare pointers, which compile faster than Numba arrays; nothing is checked.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vefl_sim.core.kernel import kernel

WORDS = types.CPointer(types.int64)
HANDLER = types.int64(WORDS)
"""Signature of the C function that XLA calls."""

_EXTENSION, _ARGUMENTS, _RESULTS = 1, 9, 14  # indices of words in a frame
_TYPE, _METADATA, _VERSION = 1, 3, 3  # indices of words in an extension (twice) and in the metadata it points to
_DATA, _SIZES = 3, 5  # indices of words in a buffer
_METADATA_EXTENSION = 1
_ABI_VERSION = 0 | 1 << 32  # major and minor version: the fields used here exist since 0.1
_AXES = types.UniTuple(types.int64, 4)
_WORD = ir.IntType(64)


def _data(buffers: int) -> Any:
    """A compiled function (frame, number of the buffer, type) → pointer to the data of a buffer."""

    @intrinsic
    def data_pointer(typing: Any, frame: Any, number: Any, kind: Any) -> Any:
        pointer = types.CPointer(kind.dtype)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _word(builder, _buffer(builder, args, buffers), _DATA)
            return builder.inttoptr(data, context.get_value_type(pointer))

        return pointer(frame, types.int64, kind), generate

    return data_pointer


def _sizes(buffers: int) -> Any:
    """A compiled function (frame, number of the buffer) → sizes of the four axes of a buffer."""

    @intrinsic
    def sizes(typing: Any, frame: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            axes = _follow(builder, _buffer(builder, args, buffers), _SIZES)
            return context.make_tuple(builder, _AXES, [_word(builder, axes, axis) for axis in range(4)])

        return _AXES(frame, types.int64), generate

    return sizes


def _buffer(builder: Any, args: Any, buffers: int) -> Any:
    frame, number = args[:2]
    return _follow(builder, _follow(builder, frame, buffers), number)


def _follow(builder: Any, words: Any, index: Any) -> Any:
    """Pointer to the words whose address is in the word at an index."""
    return builder.inttoptr(_word(builder, words, index), _WORD.as_pointer())


def _word(builder: Any, words: Any, index: Any) -> Any:
    return builder.load(builder.gep(words, [_WORD(index) if isinstance(index, int) else index]))


def _offset(typing: Any, pointer: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), generate


def _words_at(typing: Any, words: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _follow(builder, *args)

    return WORDS(words, types.int64), generate


argument, result = _data(_ARGUMENTS), _data(_RESULTS)
argument_sizes, result_sizes = _sizes(_ARGUMENTS), _sizes(_RESULTS)
offset: Any = intrinsic(_offset)
"""A compiled function (pointer, count) → pointer to the number that is `count` numbers further on."""

_words: Any = intrinsic(_words_at)


@kernel
def answered_version_query(frame: Any) -> bool:
    """Answer XLA's one-time query for our ABI version; False if the frame is an ordinary call instead."""
    if frame[_EXTENSION] == 0:
        return False
    extension = _words(frame, _EXTENSION)
    if extension[_TYPE] & 0xFFFFFFFF != _METADATA_EXTENSION:
        return False
    _words(extension, _METADATA)[_VERSION] = _ABI_VERSION
    return True
