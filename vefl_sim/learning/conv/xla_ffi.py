"""Numba kernels as calls inside XLA programs, through XLA's typed FFI (foreign function interface).

XLA passes a C function one frame with the buffers of a call (`xla/ffi/api/c_api.h` in jaxlib); the function returns 0.
A frame is read here as 64-bit words: the ABI is stable, and fields are only added at the end. Kernels see buffers as
bare pointers, which compile faster than Numba arrays; nothing is checked.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from vefl_sim.core.kernel import kernel

HANDLER = types.int64(types.CPointer(types.int64))
"""Signature of the C function that XLA calls."""

_EXTENSION, ARGUMENTS, RESULTS = 1, 9, 14  # indices of words in a frame
_TYPE, _METADATA, _VERSION = 1, 3, 3  # indices of words in an extension (twice) and in the metadata it points to
_DATA, _SIZES = 3, 5  # indices of words in a buffer
_METADATA_EXTENSION = 1
_ABI_VERSION = 0 | 1 << 32  # major and minor version: the fields used here exist since 0.1


def _at(typing: Any, address: Any, kind: Any) -> Any:
    pointer = types.CPointer(kind.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(types.int64, kind), generate


def _offset(typing: Any, pointer: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), generate


at: Any = intrinsic(_at)
"""A compiled function (address, type) → pointer to the numbers of this type that are there."""
offset: Any = intrinsic(_offset)
"""A compiled function (pointer, count) → pointer to the number that is `count` numbers further on."""


@kernel
def data(buffers: int, number: int, kind: Any) -> Any:
    """Pointer to the numbers of an argument or result; `buffers`: frame[ARGUMENTS] or frame[RESULTS]."""
    return at(at(at(buffers, np.int64)[number], np.int64)[_DATA], kind)


@kernel
def sizes(buffers: int, number: int) -> Any:
    """Sizes of the four axes of an argument or result."""
    axes = at(at(at(buffers, np.int64)[number], np.int64)[_SIZES], np.int64)
    return axes[0], axes[1], axes[2], axes[3]


@kernel
def answered_version_query(frame: Any) -> bool:
    """Answer XLA's one-time query for our ABI version; False if the frame is an ordinary call instead."""
    if frame[_EXTENSION] == 0:
        return False
    extension = at(frame[_EXTENSION], np.int64)
    if extension[_TYPE] & 0xFFFFFFFF != _METADATA_EXTENSION:
        return False
    at(extension[_METADATA], np.int64)[_VERSION] = _ABI_VERSION
    return True
