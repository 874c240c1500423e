"""The files of a run's tables: one part file per table and checkpoint, merged at the end into one file per table.

A Parquet file without its footer is unreadable, so rows that must survive a crash are in closed files. A checkpoint
lists the part files that belong to it; rows in other files are of rounds that will be simulated again.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.files import atomic_file, open_file
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import ROWS_PER_GROUP, TableWriter, arrow_schema, content_digest, parquet_writer, read_table
from vefl_sim.records.schemas import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

NOT_CONTENT = {"timings"}  # wall-clock figures differ from run to run


@dataclass(frozen=True)
class PartFile:
    """A closed file with some rows of a table, its size and its digest."""

    file: Annotated[str, Field(pattern=r"^[a-z]+-\d{6,}\.parquet$")]  # of one in the folder `parts`, nowhere else
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "PartFile":
        """Describe a file by its current content."""
        with open_file(path) as file:
            return cls(path.name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())

    def fault(self, directory: Path) -> str | None:
        """What is wrong with the file, or None if it is unchanged."""
        path = directory / self.file
        try:
            same = path.stat().st_size == self.bytes and PartFile.of(path) == self  # a huge file is not read
            return None if same else f"{path} has changed since it was written"
        except FileNotFoundError:
            return f"{path} is missing"
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"


class PartWriter:
    """Writes one table as a series of part files."""

    def __init__(self, directory: Path, table: str) -> None:
        self._directory, self._table, self._schema = directory, table, arrow_schema(SCHEMAS[table])
        self.parts: list[PartFile] = []  # closed files; a resumed run continues after them
        self._open: TableWriter | None = None

    def append(self, row: dict[str, Any]) -> None:
        """Add one row; missing columns are null."""
        self._opened().append(row)

    def extend(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, given as all columns of the table, each of the same length."""
        self._opened().extend(columns)

    def commit(self) -> list[PartFile]:
        """Close the part file of the rows since the last call; return all part files, at least one."""
        if self._open or not self.parts:
            writer = self._opened()
            writer.close()
            self.parts.append(PartFile.of(writer.path))
            self._open = None
        return [*self.parts]

    def table(self) -> pa.Table:
        """All rows so far."""
        self.commit()
        return pa.concat_tables([self._schema.empty_table(), *self._groups()])

    def discard(self) -> None:
        """Delete the rows since the last commit."""
        if self._open:
            self._open.discard()
            self._open = None

    def compact(self, directory: Path) -> None:
        """Write all rows to one file, in row groups whose size does not depend on the part files."""
        self.commit()
        target = directory / f"{self._table}.parquet"
        with atomic_file(target) as partial, parquet_writer(partial, self._schema) as writer:
            for group in self._groups():
                writer.write_table(group)

    def _opened(self) -> TableWriter:
        if self._open is None:
            path = self._directory / f"{self._table}-{len(self.parts) + 1:06d}.parquet"
            self._open = TableWriter(path, SCHEMAS[self._table])
        return self._open

    def _groups(self) -> Iterable[Any]:
        pending = self._schema.empty_table()
        for path in (self._directory / part.file for part in self.parts):
            for rows in ParquetFile(path).rows():
                pending = pa.concat_tables([pending, rows])
                while pending.num_rows >= ROWS_PER_GROUP:
                    yield pending.slice(0, ROWS_PER_GROUP).combine_chunks()
                    pending = pending.slice(ROWS_PER_GROUP)
        if pending.num_rows:
            yield pending.combine_chunks()


def remove_other_files(directory: Path, kept: Sequence[str]) -> None:
    """Delete all files of a folder except those in `kept`; their rounds will be simulated again."""
    for file in directory.iterdir():
        if file.is_file() and file.name not in kept:
            file.unlink()


def table_fault(file: Path, digests: Mapping[str, str]) -> str | None:
    """What is wrong with a table of a finished run with these digests; None if nothing is, or there are none."""
    changed = digests and file.stem not in NOT_CONTENT and content_digest([file]) != digests.get(file.stem)
    return f"{file} has changed since it was written" if changed else None


def content_files(run: Path) -> list[Path]:
    """The files of all tables that a repeated run must reproduce exactly."""
    return [file for file in (run / "tables").glob("*.parquet") if file.stem not in NOT_CONTENT]


def table_digests(run: Path) -> dict[str, str]:
    """Digest of each of these tables, by its name."""
    return {file.stem: content_digest([file]) for file in content_files(run)}


def read_rows(files: Sequence[Path]) -> "pd.DataFrame":
    """Read the rows of files of one table into one data frame, in this order."""
    import pandas as pd  # slow to import, and not needed to list runs

    schema = SCHEMAS[files[0].stem.partition("-")[0]]  # of events.parquet, or of events-000001.parquet of a checkpoint
    try:
        return pd.concat([read_table(file, schema) for file in files], ignore_index=True)
    except BadInput as error:
        raise RunNotFound(error.problems) from None


class MainTables(ABC):
    """The tables that every run has, by name."""

    @abstractmethod
    def table(self, name: str) -> "pd.DataFrame":
        """One table by name: events, rounds, vehicles, mobility, …"""

    @property
    def events(self) -> "pd.DataFrame":
        """The trace."""
        return self.table("events")

    @property
    def rounds(self) -> "pd.DataFrame":
        """One row per finished round."""
        return self.table("rounds")

    @property
    def vehicles(self) -> "pd.DataFrame":
        """One row per round and CV in coverage at its start."""
        return self.table("vehicles")
