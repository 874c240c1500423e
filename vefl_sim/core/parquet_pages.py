"""The pages of a Parquet file: their headers are read before a decoder believes the sizes in them.

A column of a row group is a chain of pages, each with a header in Thrift's compact protocol. A decoder allocates
what the header announces, and a page of a few KB may unpack to 2 GB.
"""

from typing import Any, BinaryIO

MAX_PAGE_BYTES = 1 << 26  # unpacked; writers make pages of 1 MB, some of a whole row group of 1 million values
_MAX_HEADER_BYTES = 1 << 20
_UNPACKED, _PACKED = 2, 3  # fields of a page header
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12  # kinds of fields


def largest_page(file: BinaryIO, column: Any) -> int:
    """Largest unpacked size, in bytes, of the pages of a column chunk; ValueError if their headers are damaged."""
    start = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)), default=0)
    end, largest = start + column.total_compressed_size, 0
    file.seek(start)
    while start < end:
        header = _Header(file).fields()
        unpacked, packed = header.get(_UNPACKED, -1), header.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError("the header of a page has no size")
        largest = max(largest, unpacked)
        start = file.seek(packed, 1)
    return largest


class _Header:
    """One page header, of which only the integers at the top level are kept."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, _MAX_HEADER_BYTES

    def fields(self) -> dict[int, int]:
        """The integer fields by number."""
        found: dict[int, int] = {}
        number = 0
        while byte := self._byte():
            kind, delta = byte & 15, byte >> 4
            number = number + delta if delta else self._integer()
            value = self._value(kind)
            if value is not None:
                found[number] = value
        return found

    def _value(self, kind: int) -> int | None:
        """Read one value; None unless it is an integer."""
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind in (_TRUE, _FALSE):
            return None
        if kind in (_BYTE, _DOUBLE, _BINARY):
            self._skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self._unsigned())
        elif kind == _STRUCT:
            self.fields()
        else:
            raise ValueError("the header of a page is damaged")  # lists, sets and maps do not occur in it
        return None

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("the header of a page has an endless number")

    def _byte(self) -> int:
        self._spend(1)
        content = self._file.read(1)
        if not content:
            raise ValueError("the file ends in the header of a page")
        return content[0]

    def _skip(self, size: int) -> None:
        self._spend(size)
        self._file.seek(size, 1)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueError(f"the header of a page has more than {_MAX_HEADER_BYTES >> 20} MB")
