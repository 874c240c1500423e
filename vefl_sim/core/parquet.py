"""Read Parquet files of any origin in batches of NumPy columns; a bad file is reported in one sentence."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput, first_line

ColumnKind = Literal["integer", "number", "text", "boolean"]
Columns = dict[str, NDArray[Any]]

_ROWS_PER_BATCH = 8192
_BUFFER_BYTES = 1 << 16  # a row group may be as large as the file, so it is read in pieces
_ROW = "row"


class ParquetFile:
    """A Parquet file opened for reading, with the names of its columns and its key-value metadata."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BadInput(f"{path} cannot be read as Parquet ({first_line(error)}): write it again.") from None
        self.column_names: list[str] = self._file.schema_arrow.names
        metadata = self._file.metadata.metadata or {}
        self.metadata = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in metadata.items()}

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Columns]:
        """Yield these columns, a few thousand rows at a time, and the row numbers, counted from 1, as column `row`.

        A missing number is NaN and a missing text None; a missing integer or boolean is an error.
        """
        self._check(kinds)
        row = 1
        for batch in self._batches(list(kinds)):
            columns = {name: self._values(batch, name, kind, row) for name, kind in kinds.items()}
            yield columns | {_ROW: np.arange(row, row + batch.num_rows)}
            row += batch.num_rows

    def _batches(self, names: list[str]) -> Iterator[Any]:
        read = 0
        try:
            for batch in self._file.iter_batches(_ROWS_PER_BATCH, columns=names):
                yield batch
                read += batch.num_rows
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BadInput(f"{self.path} is damaged after row {read} ({first_line(error)}): write it again.") from None

    def _check(self, kinds: Mapping[str, ColumnKind]) -> None:
        if missing := [name for name in kinds if self.column_names.count(name) != 1]:
            raise BadInput(
                f"{self.path} has no column {', '.join(missing)}: it needs {', '.join(kinds)}, each once, "
                f"and has {', '.join(self.column_names) or 'none'}."
            )
        for name, kind in kinds.items():
            actual = self._file.schema_arrow.field(name).type
            if not _fits(actual, kind):
                raise BadInput(f"{self.path}: column {name} holds {actual}, not {_PLURALS[kind]}: convert it.")

    def _values(self, batch: Any, name: str, kind: ColumnKind, first_row: int) -> NDArray[Any]:
        column = batch.column(batch.schema.get_field_index(name))
        if kind == "text":
            return np.array([*column.to_pylist(), None], object)[:-1]  # a one-dimensional array of Python objects
        if kind == "number":
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise BadInput(f"{self.path}, row {row}: column {name} has no value: fill it in, or drop the row.")
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64 if kind == "integer" else np.bool_)


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
