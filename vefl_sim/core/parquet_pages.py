"""The inside of a Parquet file: its footer and the headers of its pages, read before a decoder believes their sizes.

The footer lists the chunks of all columns; a chunk is a chain of pages, each with a header. A decoder allocates what a
header announces, and a page of a few KB may unpack to 2 GB. pyarrow knows the chunks, too, but ends the process if a
damaged footer contradicts itself. Footer and headers are structures in Thrift's compact protocol.
"""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

MAX_PAGE_BYTES = 1 << 26  # unpacked; writers make pages of 1 MB, some of a whole row group of 1 million values
_MAX_FOOTER_BYTES = 1 << 21  # of a small file; pyarrow takes up to 250 times as much memory
_MAX_FOOTER_SHARE = 1 / 128  # of a large file, beyond; a chunk has 150 to 200 bytes, tables of long runs 1/110 to 1/500
_MAX_HEADER_BYTES = 1 << 20
_MAX_DEPTH = 16  # of structures in each other; Parquet has 5
_TAIL = b"PAR1"
_GROUPS, _CHUNKS, _CHUNK = 4, 1, 3  # fields of the footer, of a row group, and of a column chunk
_PATH, _PACKED_SIZE, _DATA, _DICTIONARY = 3, 7, 9, 11  # fields of the metadata of a column chunk
_UNPACKED, _PACKED = 2, 3  # fields of a page header
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12


class Chunk(NamedTuple):
    """The pages of one column in one row group."""

    column: str
    start: int  # of the first page, in bytes from the beginning of the file
    size: int  # of all pages, packed


def seek_footer(file: BinaryIO) -> int:
    """Go to the start of the footer and return its size; ValueError if the file has none, or a large one."""
    end = file.seek(0, io.SEEK_END) - 8
    file.seek(max(end, 0))
    tail = file.read(8)
    size, most = int.from_bytes(tail[:4], "little"), _MAX_FOOTER_BYTES + int(end * _MAX_FOOTER_SHARE)
    if tail[4:] != _TAIL or size > end:
        raise ValueError("it has no footer")
    if size > most:
        raise ValueError(f"its footer has {size} bytes, more than {most}")
    file.seek(end - size)
    return size


def chunks(file: BinaryIO) -> Iterator[Chunk]:
    """Yield the column chunks that the footer of a file lists; ValueError if the footer is damaged or too large."""
    size = seek_footer(file)
    footer = _Structure(io.BytesIO(file.read(size)), size).fields()
    try:
        for group in footer.get(_GROUPS, []):
            for column in group[_CHUNKS]:
                chunk = column[_CHUNK]
                start = min(filter(None, (chunk.get(_DICTIONARY), chunk[_DATA])), default=0)
                yield Chunk(chunk[_PATH][0].decode(errors="replace"), start, chunk[_PACKED_SIZE])
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError("its footer is damaged") from None


def largest_page(file: BinaryIO, chunk: Chunk) -> int:
    """Largest unpacked size, in bytes, of the pages of a column chunk; ValueError if their headers are damaged."""
    start, end, largest = chunk.start, chunk.start + chunk.size, 0
    file.seek(start)
    while start < end:
        header = _Structure(file, _MAX_HEADER_BYTES).fields()
        unpacked, packed = header.get(_UNPACKED), header.get(_PACKED)
        if not isinstance(unpacked, int) or not isinstance(packed, int) or unpacked < 0 or packed < 0:
            raise ValueError("the header of a page has no size")
        largest = max(largest, unpacked)
        start = file.seek(packed, 1)
    return largest


class _Structure:
    """A structure of at most `most_bytes`: its fields by number, as integers, bytes, lists and structures."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file, self._left, self._depth = file, most_bytes, 0

    def fields(self) -> dict[int, Any]:
        """Read the fields up to the end of the structure; floating-point numbers are skipped."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("it has too many structures in each other")
        found: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            kind, delta = byte & 15, byte >> 4
            number = number + delta if delta else self._integer()
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        self._depth -= 1
        return found

    def _value(self, kind: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _STRUCT:
            return self.fields()
        if kind in (_LIST, _SET):
            return self._list()
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list a Boolean has a byte
            return self._byte()
        if kind == _DOUBLE:
            self._bytes(8)
            return None
        raise ValueError("it has a field of a kind that Parquet does not use")

    def _list(self) -> list[Any]:
        byte = self._byte()
        size, kind = byte >> 4, byte & 15
        if size == 15:
            size = self._unsigned()
        return [self._value(kind) for _ in range(size)]  # every value takes a byte, so the size is bounded, too

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
        raise ValueError("it has an endless number")

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise ValueError("a header or its footer is longer than it may be")
        content = self._file.read(size)
        if len(content) < size:
            raise ValueError("the file ends in a header")
        return content
