"""Read Parquet files of any origin in batches of NumPy columns; a bad file is reported in one sentence."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput, first_line
from vefl_sim.core.files import open_file
from vefl_sim.core.parquet_pages import MAX_PAGE_BYTES, chunks, largest_page, seek_footer

ColumnKind = Literal["integer", "number", "text", "boolean"]
Columns = dict[str, NDArray[Any]]

_ROWS_PER_BATCH = 8192
_BUFFER_BYTES = 1 << 16  # a row group may be as large as the file, so it is read in pieces
_ROW = "row"
_UNREADABLE = (OSError, ValueError, RecursionError, pa.ArrowException)
MAX_COLUMNS = 1000
MAX_TEXT_BYTES = 4096  # of one value
MAX_CELLS_PER_BYTE = 10  # of a table that is read as a whole; tables of runs have about 1
_MIN_CELLS = 1_000_000  # that a table may have however small its file is
_TEXT_BYTES_PER_CELL = 8  # in all texts together; tables of runs have about 1


class ParquetFile:
    """A Parquet file opened for reading, with the names of its columns and its key-value metadata."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_file(path) as file:
                seek_footer(file)
            self._metadata = pq.ParquetFile(pa.OSFile(str(path))).metadata  # by its path it would take a third longer
            self._schema = self._metadata.schema.to_arrow_schema()
        except _UNREADABLE as error:
            raise BadInput(f"{path} cannot be read as Parquet ({first_line(error)}): write it again.") from None
        self.column_names: list[str] = self._schema.names
        if len(self.column_names) > MAX_COLUMNS:
            raise BadInput(f"{path} has {len(self.column_names)} columns, more than {MAX_COLUMNS}: drop some.")
        metadata = self._metadata.metadata or {}
        self.metadata = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in metadata.items()}

    @cached_property
    def _file(self) -> Any:
        """The open file; a repeated text stays one, however long it is and however often it comes."""
        texts = [field.name for field in self._schema if _fits(field.type, "text")]
        return pq.ParquetFile(
            self.path, metadata=self._metadata, read_dictionary=texts, buffer_size=_BUFFER_BYTES, pre_buffer=False
        )

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Columns]:
        """Yield these columns, a few thousand rows at a time, and the row numbers, counted from 1, as column `row`.

        A missing number is NaN and a missing text None; a missing integer or boolean is an error.
        """
        self._check(kinds)
        self._check_pages(set(kinds))
        row = 1
        for batch in self._batches(list(kinds)):
            columns = {name: self._values(batch, name, kind, row) for name, kind in kinds.items()}
            yield columns | {_ROW: np.arange(row, row + batch.num_rows)}
            row += batch.num_rows

    def read(self, schema: pa.Schema) -> pa.Table:
        """All rows, converted to this schema; other columns of the file are not read."""
        for column in schema:
            found = [_kind_of_type(field.type) for field in self._schema if field.name == column.name]
            if found not in ([_kind_of_type(column.type)], ["null"]):
                raise BadInput(
                    f"{self.path} has no column {column.name} of {column.type}: it is damaged, or of another version."
                )
        self.require_bounded(schema.names)
        try:
            return self._file.read(schema.names, use_threads=False).select(schema.names).cast(schema)
        except _UNREADABLE as error:
            raise BadInput(f"{self.path} is damaged ({first_line(error)}): write it again.") from None

    def require_bounded(self, names: Iterable[str] | None = None) -> None:
        """Raise BadInput if these columns, or all, read as a whole need far more memory than the file has bytes."""
        fields = [field for field in self._schema if names is None or field.name in names]
        if other := next((field for field in fields if not _is_plain(field.type)), None):
            raise BadInput(f"{self.path}: column {other.name} holds {other.type}, not numbers or text: write it again.")
        rows, columns, size = self._metadata.num_rows, len(fields), self.path.stat().st_size
        most = _MIN_CELLS + MAX_CELLS_PER_BYTE * size
        if rows * columns > most:
            raise BadInput(f"{self.path} has {rows} rows of {columns} columns in {size} bytes: write it again.")
        self._check_pages({field.name for field in fields})
        texts, length = [field.name for field in fields if _fits(field.type, "text")], 0
        for batch in self._batches(texts) if texts else ():
            length += sum(map(self._check_texts, batch.columns))
            if length > _TEXT_BYTES_PER_CELL * most:
                raise BadInput(f"{self.path} has texts of {length} bytes in {size} bytes: write it again.")

    def _check_pages(self, names: set[str]) -> None:
        """Refuse pages that unpack to more than a few megabytes in any of these columns."""
        try:
            with open_file(self.path) as file:
                for chunk in [*chunks(file)]:
                    if chunk.column in names:
                        self._check_page(largest_page(file, chunk))
        except _UNREADABLE as error:
            raise BadInput(f"{self.path} is damaged ({first_line(error)}): write it again.") from None

    def _check_page(self, size: int) -> None:
        if size > MAX_PAGE_BYTES:
            raise BadInput(f"{self.path} has a page of {size} bytes: write it with at most {MAX_PAGE_BYTES} per page.")

    def _check_texts(self, column: Any) -> int:
        """Refuse a text that is too long; returns how many bytes all have together."""
        if pa.types.is_null(column.type):
            return 0
        import pyarrow.compute as pc  # slow to import, and not needed to list runs

        repeated = pa.types.is_dictionary(column.type)
        lengths = pc.binary_length(column.dictionary if repeated else column)
        if (longest := pc.max(lengths).as_py() or 0) > MAX_TEXT_BYTES:
            raise BadInput(f"{self.path} has a text of {longest} bytes: shorten it to {MAX_TEXT_BYTES}.")
        return pc.sum(lengths.take(column.indices) if repeated else lengths).as_py() or 0

    def _batches(self, names: list[str]) -> Iterator[Any]:
        read = 0
        try:
            for batch in self._file.iter_batches(_ROWS_PER_BATCH, columns=names):
                yield batch
                read += batch.num_rows
        except _UNREADABLE as error:
            raise BadInput(f"{self.path} is damaged after row {read} ({first_line(error)}): write it again.") from None

    def _check(self, kinds: Mapping[str, ColumnKind]) -> None:
        if missing := [name for name in kinds if self.column_names.count(name) != 1]:
            raise BadInput(
                f"{self.path} has no column {', '.join(missing)}: it needs {', '.join(kinds)}, each once, "
                f"and has {', '.join(self.column_names) or 'none'}."
            )
        for name, kind in kinds.items():
            actual = self._schema.field(name).type
            if not _fits(actual, kind):
                raise BadInput(f"{self.path}: column {name} holds {actual}, not {_PLURALS[kind]}: convert it.")

    def _values(self, batch: Any, name: str, kind: ColumnKind, first_row: int) -> NDArray[Any]:
        column = batch.column(batch.schema.get_field_index(name))
        if kind == "text":
            self._check_texts(column)
            if pa.types.is_dictionary(column.type):  # a repeated text is one object
                places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                return np.asarray(_objects(column.dictionary)[places])
            return _objects(column)[:-1]
        if kind == "number":
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise BadInput(f"{self.path}, row {row}: column {name} has no value: fill it in, or drop the row.")
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64 if kind == "integer" else np.bool_)


def _objects(texts: Any) -> NDArray[Any]:
    """Texts as Python objects, and None after the last."""
    return np.array([*texts.to_pylist(), None], object)


def _kind_of_type(arrow_type: Any) -> str:
    """The name of an Arrow type without its number of bits, which other programs may change."""
    return str(arrow_type).removeprefix("large_").rstrip("0123456789")


def _is_plain(actual: Any) -> bool:
    return any(_fits(actual, kind) for kind in ("number", "text", "boolean"))


_PLURALS = {"integer": "whole numbers", "number": "numbers", "text": "text", "boolean": "true or false"}


def _fits(actual: Any, kind: ColumnKind) -> bool:
    if pa.types.is_null(actual):
        return kind in ("number", "text")  # a column in which all values are missing has no type
    if kind == "number":
        return bool(pa.types.is_floating(actual) or pa.types.is_integer(actual))
    if kind == "text":
        text = actual.value_type if pa.types.is_dictionary(actual) else actual
        return bool(pa.types.is_string(text) or pa.types.is_large_string(text))
    return bool(pa.types.is_integer(actual) if kind == "integer" else pa.types.is_boolean(actual))
