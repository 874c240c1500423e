"""Kernels of Numba as calls inside programs of XLA.

XLA hands a C function one frame with the buffers of a call (its typed FFI, `xla/ffi/api/c_api.h` in jaxlib), and wants
0 back. A frame is read here as words of 64 bits: the ABI is stable, and fields are only added at the end.
"""

from typing import Any

from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from vefl_sim.kernel import inner

WORDS = types.CPointer(types.int64)
HANDLER = types.int64(WORDS)
"""Signature of the C function."""

_EXTENSION, _ARGUMENTS, _RESULTS = 1, 9, 14  # words of a frame
_TYPE, _METADATA, _VERSION = 1, 3, 3  # words of an extension (twice) and of the metadata it points to
_DATA, _SIZES = 3, 5  # words of a buffer
_IS_METADATA = 1
_OURS = 0 | 1 << 32  # major and minor version of the ABI: what we use has been there since 0.1


def _pointer(kind: Any) -> Any:
    """A compiled function from an address to a pointer of this kind."""

    @intrinsic
    def pointer(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return pointer


_words, _memory = _pointer(WORDS), _pointer(types.voidptr)


@inner
def asks_for_version(frame: Any) -> bool:
    """True if this is no call but XLA asking, once, which version of the ABI we speak; then it is answered."""
    if frame[_EXTENSION] == 0:
        return False
    extension = _words(frame[_EXTENSION])
    if extension[_TYPE] & 0xFFFFFFFF != _IS_METADATA:
        return False
    _words(extension[_METADATA])[_VERSION] = _OURS
    return True


@inner
def argument(frame: Any, number: int, dtype: Any) -> Any:
    """An argument of four axes."""
    return _array(_words(_words(frame[_ARGUMENTS])[number]), dtype)


@inner
def result(frame: Any, number: int, dtype: Any) -> Any:
    """A result of four axes, to be filled."""
    return _array(_words(_words(frame[_RESULTS])[number]), dtype)


@inner
def _array(buffer: Any, dtype: Any) -> Any:
    sizes = _words(buffer[_SIZES])
    return carray(_memory(buffer[_DATA]), (sizes[0], sizes[1], sizes[2], sizes[3]), dtype)
