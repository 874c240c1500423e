"""The tables of a run that is not over: a file per table and checkpoint, and at the end one file per table.

A Parquet file without its footer is unreadable, so what must survive a crash is in files that are closed. The
checkpoint says which of them count; others are of rounds that will be repeated.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vefl_sim.core.errors import RunFailed
from vefl_sim.core.files import whole
from vefl_sim.core.tables import ROWS_PER_GROUP, TableWriter, arrow_schema
from vefl_sim.records.schemas import SCHEMAS


@dataclass(frozen=True)
class PartFile:
    """Some rows of a table, on disk for good."""

    file: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "PartFile":
        """A file as it is now."""
        with path.open("rb") as file:
            return cls(path.name, hashlib.file_digest(file, "sha256").hexdigest())

    def fault(self, directory: Path) -> str | None:
        """What is wrong with it; None while it is as it was written."""
        path = directory / self.file
        if not path.exists():
            return f"{path} is not there"
        return None if PartFile.of(path) == self else f"{path} has changed since it was written"


class PartWriter:
    """Writes one table, a part after the other."""

    def __init__(self, directory: Path, table: str) -> None:
        self._directory, self._table = directory, table
        self._parts: list[PartFile] = []
        self._open: TableWriter | None = None

    def append(self, row: dict[str, Any]) -> None:
        """Add one row; missing columns are null."""
        self._opened().append(row)

    def commit(self) -> list[dict[str, str]]:
        """Close the part with the rows since the last call; all parts so far. Every table has at least one."""
        if self._open or not self._parts:
            writer = self._opened()
            writer.close()
            self._parts.append(PartFile.of(writer.path))
            self._open = None
        return [asdict(part) for part in self._parts]

    def discard(self) -> None:
        """Forget the rows since the last commit."""
        if self._open:
            self._open.discard()
            self._open = None

    def go_on_after(self, parts: Iterable[dict[str, str]]) -> None:
        """Append to these."""
        self._parts = [PartFile(**part) for part in parts]

    def compact(self, directory: Path) -> None:
        """All rows in one file, in groups of the same size wherever the parts were cut."""
        self.commit()
        target = directory / f"{self._table}.parquet"
        with whole(target) as partial, pq.ParquetWriter(partial, arrow_schema(SCHEMAS[self._table])) as writer:
            for group in self._groups():
                writer.write_table(group)

    def _opened(self) -> TableWriter:
        if self._open is None:
            path = self._directory / f"{self._table}-{len(self._parts) + 1:06d}.parquet"
            if path.exists():
                raise RunFailed(f"{path} is there already: it holds rows that must not be lost.")
            self._open = TableWriter(path, SCHEMAS[self._table])
        return self._open

    def _groups(self) -> Iterable[Any]:
        held = arrow_schema(SCHEMAS[self._table]).empty_table()
        for part in self._parts:
            for batch in pq.ParquetFile(self._directory / part.file).iter_batches(ROWS_PER_GROUP):
                held = pa.concat_tables([held, pa.Table.from_batches([batch])])
                while held.num_rows >= ROWS_PER_GROUP:
                    yield held.slice(0, ROWS_PER_GROUP).combine_chunks()
                    held = held.slice(ROWS_PER_GROUP)
        if held.num_rows:
            yield held.combine_chunks()


def remove_others(directory: Path, kept: Sequence[str]) -> None:
    """Remove files of rounds that will be repeated."""
    for file in directory.iterdir():
        if file.is_file() and file.name not in kept:
            file.unlink()
