"""Parquet tables: written by rows or columns, in row groups that limit memory use; read, and digested by content."""

import hashlib
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.files import PARTIAL, explain_write_errors, publish
from vefl_sim.core.parquet import ParquetFile

if TYPE_CHECKING:
    import pandas as pd

ROWS_PER_GROUP = 20_000

Schema = Mapping[str, str]
"""The columns of a table, in order, with their Arrow types by name ("int64", "float64", "string", "bool", …)."""


def arrow_schema(schema: Schema) -> pa.Schema:
    """Convert a schema to one of Arrow."""
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in schema.items()])


def parquet_writer(path: Path, schema: pa.Schema) -> Any:
    """An open Parquet file with compact encodings: the bytes of floats by position, everything else by dictionary."""
    floats = [field.name for field in schema if pa.types.is_floating(field.type)]
    others = [field.name for field in schema if field.name not in floats]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=others, use_byte_stream_split=floats)


class RowBuffer:
    """Rows of a table, added one by one or as columns, that are handed on in row groups (`_write`)."""

    def __init__(self, schema: Schema) -> None:
        self.schema = arrow_schema(schema)
        self._columns: dict[str, list[Any]] = {name: [] for name in schema}
        self._rows: list[Mapping[str, Any]] = []  # that follow them

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row, which must not be changed afterwards; missing columns are null."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_PER_GROUP:
            self._flush(ROWS_PER_GROUP)

    def extend(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, given as all columns of the schema, each of the same length."""
        self._add_rows()
        for name, values in self._columns.items():
            values.extend(columns[name].tolist())
        self._flush(ROWS_PER_GROUP)

    def _add_rows(self) -> None:
        """Add the rows to the columns, many at once, which is faster."""
        for name, values in self._columns.items():
            values.extend([row.get(name) for row in self._rows])
        self._rows.clear()

    def _flush(self, least: int) -> None:
        """Hand on a row group if at least that many rows wait."""
        self._add_rows()
        if len(next(iter(self._columns.values()))) >= least:
            group = pa.table(self._columns, self.schema)
            for values in self._columns.values():
                values.clear()
            self._write(group)

    def _write(self, group: pa.Table) -> None:
        raise NotImplementedError


class TableWriter(RowBuffer):
    """A table that is written to a file, which gets its name when it is complete."""

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(schema)
        self.path, self._partial = path, path.with_name(path.name + PARTIAL)
        with explain_write_errors(path):
            self._partial.unlink(missing_ok=True)  # nothing is written through a link or into a pipe
            self._writer = parquet_writer(self._partial, self.schema)

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Write the remaining rows and the footer with key-value metadata; publish the file."""
        self._flush(1)
        with explain_write_errors(self.path):
            self._writer.add_key_value_metadata(metadata or {})
            self._writer.close()
            publish(self._partial, self.path)

    def discard(self) -> None:
        """Delete the partial file."""
        with explain_write_errors(self.path):
            self._writer.close()
            self._partial.unlink(missing_ok=True)

    def _write(self, group: pa.Table) -> None:
        with explain_write_errors(self.path):
            self._writer.write_table(group)


def data_frame(table: pa.Table) -> "pd.DataFrame":
    """A table of Arrow as a data frame, in which missing values are marked."""
    import pandas as pd  # slow to import, and not needed to write tables or to list runs

    types = {  # that mark missing values, which NumPy's integers cannot
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    return pd.DataFrame(table.to_pandas(types_mapper=types.get))


def content_digest(paths: list[Path]) -> str:
    """The digest of tables in files; row groups and compression do not matter. RunNotFound if one cannot be read."""
    try:
        return digest_of_tables({path.stem: ParquetFile(path) for path in paths})
    except BadInput as error:
        raise RunNotFound(error.problems) from None


def digest_of_tables(tables: Mapping[str, pa.Table | ParquetFile]) -> str:
    """SHA-256 over the names of tables, their columns and values; files are read by column, in pieces."""
    digest = hashlib.sha256()
    for name, table in sorted(tables.items()):
        digest.update(f"{name} {table.num_rows}\n".encode())
        for field in table.schema:
            digest.update(f"{field.name} {field.type}\n".encode())
            pieces = table.rows(field.name) if isinstance(table, ParquetFile) else [table.select([field.name])]
            for chunk in chain.from_iterable(piece.column(0).chunks for piece in pieces):
                _digest_values(digest, chunk)
    return digest.hexdigest()


def _digest_values(digest: Any, column: Any) -> None:
    """Digest value by value, so that batch boundaries do not matter."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if not pa.types.is_primitive(column.type):  # text
        pairs = zip(column.to_pylist(), valid.tolist(), strict=True)
        digest.update("".join(f"{value or ''}\x00{int(present)}" for value, present in pairs).encode())
        return
    filled = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    digest.update(np.rec.fromarrays([filled, valid]).tobytes())
