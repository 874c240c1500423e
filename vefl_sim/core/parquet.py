"""Read Parquet files of any origin in batches or as a whole; a bad file is reported in one sentence.

What a file says about its own size is checked before it is read: its footer, rows, columns and unpacked bytes.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput, first_line
from vefl_sim.core.files import open_file

ColumnKind = Literal["integer", "number", "text", "boolean"]
Columns = dict[str, NDArray[Any]]

_ROWS_PER_BATCH = 8192
_BUFFER_BYTES = 1 << 16  # a row group may be as large as the file, so it is read in pieces
_UNREADABLE = (OSError, ValueError, RecursionError, pa.ArrowException)
_MAX_FOOTER_BYTES = 1 << 21  # of a small file; pyarrow takes up to 250 times as much memory
_MAX_FOOTER_SHARE = 1 / 128  # of a large file, beyond; tables of long runs have 1/110 to 1/500
MAX_COLUMNS = 1000
MAX_TEXT_BYTES = 4096  # of one value
_MAX_RATIO = 100  # of the unpacked size to the size of the file; tables of runs have less than 10
_MIN_UNPACKED_BYTES = 1 << 26  # that a file may unpack to however small it is
_MAX_CELLS_PER_BYTE = 10  # of a table that is read as a whole; tables of runs have about 1
_MIN_CELLS = 1_000_000  # that a table may have however small its file is
_TEXT_BYTES_PER_CELL = 8  # in all texts together; tables of runs have about 1


def require_footer(file: BinaryIO) -> int:
    """Raise ValueError if a Parquet file has no footer, or a very large one; returns the size of the file."""
    end = file.seek(0, io.SEEK_END) - 8
    file.seek(max(end, 0))
    tail = file.read(8)
    size, most = int.from_bytes(tail[:4], "little"), _MAX_FOOTER_BYTES + int(end * _MAX_FOOTER_SHARE)
    if tail[4:] != b"PAR1" or size > end:
        raise ValueError("it has no footer")
    if size > most:
        raise ValueError(f"its footer has {size} bytes, more than {most}")
    return end + 8


class ParquetFile:
    """A Parquet file opened for reading, with its schema, its number of rows and its key-value metadata."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_file(path) as file:
                self._size = require_footer(file)
            self._metadata = pq.ParquetFile(pa.OSFile(str(path))).metadata  # by its path it would take a third longer
            self.schema = self._metadata.schema.to_arrow_schema()
            groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
            unpacked = sum(group.total_byte_size for group in groups)
        except _UNREADABLE as error:
            raise BadInput(f"{path} cannot be read as Parquet ({first_line(error)}): write it again.") from None
        self.num_rows, self.column_names = int(self._metadata.num_rows), list[str](self.schema.names)
        if len(self.column_names) > MAX_COLUMNS:
            raise BadInput(f"{path} has {len(self.column_names)} columns, more than {MAX_COLUMNS}: drop some.")
        if unpacked > _MIN_UNPACKED_BYTES + _MAX_RATIO * self._size:
            raise BadInput(f"{path} unpacks to {unpacked} bytes, from {self._size}: write it again.")
        metadata = self._metadata.metadata or {}
        self.metadata = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in metadata.items()}

    @cached_property
    def _file(self) -> Any:
        """The open file; a repeated text stays one, however long it is and however often it comes."""
        texts = [field.name for field in self.schema if _kind(field.type) == "text"]
        return pq.ParquetFile(
            self.path, metadata=self._metadata, read_dictionary=texts, buffer_size=_BUFFER_BYTES, pre_buffer=False
        )

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Columns]:
        """Yield these columns, a few thousand rows at a time, and the row numbers, counted from 1, as column `row`.

        A missing number is NaN and a missing text None; a missing integer or boolean is an error.
        """
        self._require(kinds)
        row = 1
        with self._explaining():
            for batch in self._file.iter_batches(_ROWS_PER_BATCH, columns=list(kinds)):
                columns = {name: self._values(batch, name, kind, row) for name, kind in kinds.items()}
                yield columns | {"row": np.arange(row, row + batch.num_rows)}
                row += batch.num_rows

    def read(self, schema: pa.Schema) -> pa.Table:
        """All rows, converted to this schema; other columns of the file are not read."""
        self._require({column.name: _kind(column.type) for column in schema})
        with self._explaining():
            rows = (rows.select(schema.names).cast(schema) for rows in self.rows(*schema.names))
            return pa.concat_tables([schema.empty_table(), *rows])

    def rows(self, *names: str) -> Iterator[pa.Table]:
        """Yield these columns, or all, of a table that could be read as a whole, a few thousand rows at a time."""
        schema = pa.schema([field for field in self.schema if not names or field.name in names])
        if other := next((field for field in schema if _kind(field.type) == "other"), None):
            raise BadInput(f"{self.path}: column {other.name} holds {other.type}, not numbers or text: write it again.")
        count, columns, most = self.num_rows, len(schema), _MIN_CELLS + _MAX_CELLS_PER_BYTE * self._size
        if count * columns > most:
            raise BadInput(f"{self.path} has {count} rows of {columns} columns in {self._size} bytes: write it again.")
        length = 0  # of all texts so far
        with self._explaining():
            for batch in self._file.iter_batches(_ROWS_PER_BATCH, columns=schema.names):
                texts = [column for column in batch.columns if _kind(column.type) == "text"]
                length += sum(map(self._check_texts, texts))
                if length > _TEXT_BYTES_PER_CELL * most:
                    raise BadInput(f"{self.path} has texts of {length} bytes in {self._size} bytes: write it again.")
                yield pa.Table.from_batches([batch]).cast(schema)

    def _check_texts(self, column: Any) -> int:
        """Refuse a text that is too long; returns how many bytes all have together."""
        import pyarrow.compute as pc  # slow to import, and not needed to list runs

        repeated = pa.types.is_dictionary(column.type)
        lengths = pc.binary_length(column.dictionary if repeated else column)
        if (longest := pc.max(lengths).as_py() or 0) > MAX_TEXT_BYTES:
            raise BadInput(f"{self.path} has a text of {longest} bytes: shorten it to {MAX_TEXT_BYTES}.")
        return pc.sum(lengths.take(column.indices) if repeated else lengths).as_py() or 0

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn the errors with which pyarrow reads a damaged file into one sentence."""
        try:
            yield
        except _UNREADABLE as error:
            raise BadInput(f"{self.path} is damaged ({first_line(error)}): write it again.") from None

    def _require(self, kinds: Mapping[str, str]) -> None:
        """Refuse a file that lacks one of these columns, or whose column is of another kind."""
        if missing := [name for name in kinds if self.column_names.count(name) != 1]:
            raise BadInput(
                f"{self.path} has no column {', '.join(missing)}: it needs {', '.join(kinds)}, each once, "
                f"and has {', '.join(self.column_names) or 'none'}."
            )
        for name, kind in kinds.items():
            actual = self.schema.field(name).type
            if _kind(actual) not in (kind, "none") and (kind, _kind(actual)) != ("number", "integer"):
                raise BadInput(f"{self.path}: column {name} holds {actual}, not {_PLURALS[kind]}: convert it.")

    def _values(self, batch: Any, name: str, kind: ColumnKind, first_row: int) -> NDArray[Any]:
        column = batch.column(batch.schema.get_field_index(name))
        if kind == "text":
            if _kind(column.type) == "text":
                self._check_texts(column)
            if pa.types.is_dictionary(column.type):  # a repeated text is one object
                places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                return np.asarray(np.array([*column.dictionary.to_pylist(), None], object)[places])
            return np.asarray(column.to_numpy(zero_copy_only=False), object)
        if kind == "number":
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise BadInput(f"{self.path}, row {row}: column {name} has no value: fill it in, or drop the row.")
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64 if kind == "integer" else np.bool_)


_KINDS = {
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "text": lambda actual: pa.types.is_string(actual) or pa.types.is_large_string(actual),
    "boolean": pa.types.is_boolean,
    "none": pa.types.is_null,  # of a column in which all values are missing
}
_PLURALS = {"integer": "whole numbers", "number": "numbers", "text": "text", "boolean": "true or false"}


def _kind(actual: Any) -> str:
    """What a column of this Arrow type holds, whatever its number of bits; "other" for lists, bytes and the like."""
    if pa.types.is_dictionary(actual) and _kind(actual.value_type) == "text":
        return "text"
    return next((kind for kind, is_it in _KINDS.items() if is_it(actual)), "other")
