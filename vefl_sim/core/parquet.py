"""Parquet files that anybody may have written, read in batches: numpy columns out, sentences for what is wrong."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput

ColumnKind = Literal["integer", "number", "text", "boolean"]
Columns = dict[str, NDArray[Any]]

_ROWS_PER_BATCH = 8192
_BUFFER_BYTES = 1 << 16  # a row group may be the whole file: read it piece by piece
_ROW = "row"


class ParquetFile:
    """One file, open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise BadInput(f"{path} cannot be read as Parquet ({_first_line(error)}): write it again.") from None
        self.names: list[str] = self._file.schema_arrow.names
        noted = self._file.metadata.metadata or {}
        self.notes = {name.decode(errors="replace"): text.decode(errors="replace") for name, text in noted.items()}

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Columns]:
        """These columns, a few thousand rows at a time, and the numbers of the rows, from 1, as `row`.

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
            raise BadInput(f"{self.path} is damaged after row {read} ({_first_line(error)}): write it again.") from None

    def _check(self, kinds: Mapping[str, ColumnKind]) -> None:
        if missing := [name for name in kinds if self.names.count(name) != 1]:
            raise BadInput(
                f"{self.path} has no column {', '.join(missing)}: it needs {', '.join(kinds)}, each once, "
                f"and has {', '.join(self.names) or 'none'}."
            )
        for name, kind in kinds.items():
            found = self._file.schema_arrow.field(name).type
            if not _fits(found, kind):
                raise BadInput(f"{self.path}: column {name} holds {found}, not {_PLURALS[kind]}: convert it.")

    def _values(self, batch: Any, name: str, kind: ColumnKind, first_row: int) -> NDArray[Any]:
        column = batch.column(batch.schema.get_field_index(name))
        if kind == "text":
            return np.array([*column.to_pylist(), None], object)[:-1]  # never an array of characters
        if kind == "number":
            return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise BadInput(f"{self.path}, row {row}: column {name} has no value: fill it in, or drop the row.")
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64 if kind == "integer" else np.bool_)


_PLURALS = {"integer": "whole numbers", "number": "numbers", "text": "text", "boolean": "true or false"}


def _fits(found: Any, kind: ColumnKind) -> bool:
    if pa.types.is_null(found):
        return kind in ("number", "text")  # a column without a single value has no type
    if kind == "number":
        return bool(pa.types.is_floating(found) or pa.types.is_integer(found))
    if kind == "text":
        text = found.value_type if pa.types.is_dictionary(found) else found
        return bool(pa.types.is_string(text) or pa.types.is_large_string(text))
    return bool(pa.types.is_integer(found) if kind == "integer" else pa.types.is_boolean(found))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
