"""The files of a run's tables: part files per table and checkpoint, merged at the end into one file per table.

A Parquet file without its footer is unreadable, so rows that must survive a crash are in closed files. A checkpoint
lists the part files that belong to it; rows in other files are of rounds that will be simulated again.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
from pydantic import Field

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.files import atomic_file, open_file
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.core.tables import ROWS_PER_GROUP, RowBuffer, arrow_schema, content_digest, data_frame, parquet_writer
from vefl_sim.records.schemas import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

_MOST_GROUPS = 50  # of a table that are kept in memory until a checkpoint
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


class TableParts(RowBuffer):
    """One table of a run: part files with the rows up to a checkpoint, and those since then in memory.

    Without a directory, all rows are in memory.
    """

    def __init__(self, directory: Path | None, table: str) -> None:
        super().__init__(SCHEMAS[table])
        self._directory, self._table = directory, table
        self.parts: list[PartFile] = []  # a resumed run continues after them
        self._groups: list[pa.Table] = []  # that are in no part file yet

    def commit(self) -> list[PartFile]:
        """Write the rows since the last call to a part file; return all part files, at least one."""
        self._flush(1)
        if self._directory and (self._groups or not self.parts):
            path = self._directory / f"{self._table}-{len(self.parts) + 1:06d}.parquet"
            self._write_file(path, self._groups)
            self.parts.append(PartFile.of(path))
            self._groups.clear()
        return [*self.parts]

    def table(self) -> pa.Table:
        """All rows so far."""
        self._flush(1)
        return pa.concat_tables([self.schema.empty_table(), *self._committed(), *self._groups])

    def compact(self, directory: Path) -> None:
        """Write all rows to one file, in row groups whose size does not depend on the part files."""
        self.commit()
        self._write_file(directory / f"{self._table}.parquet", self._regrouped())

    def _committed(self) -> Iterable[pa.Table]:
        if self._directory:
            for part in self.parts:
                yield from ParquetFile(self._directory / part.file).rows()

    def _regrouped(self) -> Iterable[pa.Table]:
        pending = self.schema.empty_table()
        for rows in self._committed():
            pending = pa.concat_tables([pending, rows])
            while pending.num_rows >= ROWS_PER_GROUP:
                yield pending.slice(0, ROWS_PER_GROUP).combine_chunks()
                pending = pending.slice(ROWS_PER_GROUP)
        if pending.num_rows:
            yield pending.combine_chunks()

    def _write_file(self, path: Path, groups: Iterable[pa.Table]) -> None:
        with atomic_file(path) as partial, parquet_writer(partial, self.schema) as writer:
            for group in groups:
                writer.write_table(group)

    def _write(self, group: pa.Table) -> None:
        self._groups.append(group)
        if len(self._groups) == _MOST_GROUPS:
            self.commit()


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
    schema = arrow_schema(SCHEMAS[files[0].stem.partition("-")[0]])  # of events.parquet, or of events-000001.parquet
    try:
        return data_frame(pa.concat_tables([ParquetFile(file).read(schema) for file in files]))
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
