"""The tables of a run: their columns, and writers that keep memory flat."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vefl_sim.core.errors import RunNotFound
from vefl_sim.core.files import PARTIAL, publish, writing

ROWS_PER_GROUP = 20_000

SCHEMAS: dict[str, pa.Schema] = {
    "events": pa.schema(
        [
            ("id", pa.int64()),
            ("cause", pa.int64()),
            ("time_ns", pa.int64()),
            ("kind", pa.string()),
            ("actor", pa.string()),
            ("round", pa.int32()),
            ("cv", pa.int64()),
            ("reason", pa.string()),
            ("distance_m", pa.float64()),
            ("sojourn_ns", pa.int64()),  # the bound at the round's start
            ("train_limit_ns", pa.int64()),  # T_v
            ("iterations", pa.int32()),
            ("max_iterations", pa.int32()),  # hi_v
            ("cpu_hz", pa.float64()),
            ("train_ns", pa.int64()),  # t_cmp
            ("worst_slots", pa.int64()),  # t̄_tx
            ("slots", pa.int64()),  # used so far
            ("earliest_ns", pa.int64()),  # start of slot τ_v
            ("deadline_ns", pa.int64()),
            ("mean_snr_db", pa.float64()),
            ("bits", pa.float64()),
            ("bits_left", pa.float64()),
            ("energy_j", pa.float64()),
            ("cost", pa.float64()),
            ("weight", pa.float64()),
            ("version", pa.int32()),  # of the model, where there are no rounds
            ("staleness", pa.int32()),  # steps of the server since that version
            ("count", pa.int32()),
            ("accuracy", pa.float64()),
            ("loss", pa.float64()),
        ]
    ),
    "rounds": pa.schema(
        [
            ("round", pa.int32()),
            ("start_ns", pa.int64()),
            ("end_ns", pa.int64()),
            ("in_coverage", pa.int32()),
            ("eligible", pa.int32()),
            ("ordered", pa.int32()),
            ("delivered", pa.int32()),
            ("p_suc", pa.float64()),  # mean over ordered CVs
            ("p_suc_with_ineligible", pa.float64()),  # ineligible CVs count as 0
            ("steps", pa.int32()),  # of the server; 0 or 1 where there are rounds
            ("staleness", pa.float64()),  # mean over the updates applied: steps since the model they started from
            ("weight_sum", pa.float64()),
            ("theorem2_sum", pa.float64()),  # Σ p_v/(q_v·p_suc) over the CVs with p_v > 0
            ("planned_cost", pa.float64()),
            ("cost", pa.float64()),
            ("energy_j", pa.float64()),
            ("bits_per_joule", pa.float64()),  # drained bits over transmit energy
            ("accuracy", pa.float64()),
            ("loss", pa.float64()),
            ("plan_status", pa.string()),
            ("plan_dropped", pa.bool_()),  # FDPC: the budget made it a selection
            ("plan_objective", pa.float64()),
            ("plan_bound", pa.float64()),
            ("plan_gap", pa.float64()),
            ("overruns", pa.int32()),  # of worst cases, over all ordered CVs
        ]
    ),
    "vehicles": pa.schema(
        [
            ("round", pa.int32()),
            ("cv", pa.int64()),
            ("ordered_ns", pa.int64()),
            ("version", pa.int32()),  # of the model that it trained, where there are no rounds
            ("state", pa.string()),  # delivered, lost, passed_over, ineligible
            ("reason", pa.string()),  # of a loss, or the binding constraint
            ("distance_m", pa.float64()),
            ("sojourn_ns", pa.int64()),
            ("samples", pa.int64()),
            ("iterations", pa.int32()),
            ("cpu_hz", pa.float64()),
            ("train_ns", pa.int64()),
            ("limit_ns", pa.int64()),  # min(t_th, t_soj), in whole slots
            ("delay_ns", pa.int64()),  # until it was received or lost
            ("worst_slots", pa.int64()),
            ("tx_slots", pa.int64()),
            ("compute_j", pa.float64()),
            ("transmit_j", pa.float64()),
            ("worst_j", pa.float64()),  # compute and transmit, as planned
            ("paid", pa.float64()),
            ("worst_cost", pa.float64()),
            ("delivered_fraction", pa.float64()),  # p_suc of ProbSuc
        ]
    ),
    "mobility": pa.schema(
        [
            ("time_ns", pa.int64()),
            ("vehicle", pa.int64()),
            ("x_m", pa.float64()),
            ("y_m", pa.float64()),
            ("speed_mps", pa.float64()),
            ("connected", pa.bool_()),
        ]
    ),
    "slots": pa.schema(
        [
            ("slot", pa.int64()),
            ("cv", pa.int64()),
            ("prbs", pa.int32()),
            ("power_w", pa.float64()),
            ("rate_bps", pa.float64()),
            ("bits_left", pa.float64()),  # at the start of the slot
            ("gap", pa.float64()),  # (bound − objective) / Σ a·r of the slot
            ("status", pa.string()),
        ]
    ),
    "timings": pa.schema([("round", pa.int32()), ("what", pa.string()), ("wall_s", pa.float64())]),
}


class TableWriter:
    """Appends rows and writes them in groups; the file gets its name when it is complete."""

    def __init__(self, path: Path, table: str) -> None:
        self.path, self._partial = path, path.with_name(path.name + PARTIAL)
        self._schema = SCHEMAS[table]
        self._rows: list[dict[str, Any]] = []
        with writing(self.path):
            self._writer = pq.ParquetWriter(self._partial, self._schema)

    def append(self, row: dict[str, Any]) -> None:
        """Add one row; missing columns are null."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        """Write the rest and the footer, without which nobody can read the file."""
        self._flush()
        with writing(self.path):
            self._writer.close()
            publish(self._partial, self.path)

    def discard(self) -> None:
        """There shall be no such file."""
        with writing(self.path):
            self._writer.close()
            self._partial.unlink()

    def _flush(self) -> None:
        if self._rows:
            with writing(self.path):
                self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []


class ColumnWriter:
    """The same for whole columns of numbers, which may be many: written in groups, and packed well."""

    def __init__(self, path: Path, table: str) -> None:
        self.path, self._partial = path, path.with_name(path.name + PARTIAL)
        self._schema = SCHEMAS[table]
        self._columns: list[Mapping[str, NDArray[Any]]] = []
        self._rows = 0
        floats = [field.name for field in self._schema if pa.types.is_floating(field.type)]
        with writing(self.path):
            self._writer = pq.ParquetWriter(
                self._partial, self._schema, compression="zstd", use_dictionary=False, use_byte_stream_split=floats
            )

    def append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows; all columns are there and of the same length."""
        self._columns.append(columns)
        self._rows += len(columns[self._schema.names[0]])
        if self._rows >= ROWS_PER_GROUP:
            self._flush()

    def close(self, path: Path | None = None, notes: Mapping[str, str] | None = None) -> None:
        """Write the rest and the footer, with notes on the whole; the file gets its name, or another."""
        self._flush()
        with writing(self.path):
            self._writer.add_key_value_metadata(notes or {})
            self._writer.close()
            publish(self._partial, path or self.path)

    def discard(self) -> None:
        """There shall be no such file."""
        with writing(self.path):
            self._writer.close()
            self._partial.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._rows:
            joined = {name: np.concatenate([part[name] for part in self._columns]) for name in self._schema.names}
            with writing(self.path):
                self._writer.write_table(pa.table(joined, self._schema))
            self._columns, self._rows = [], 0


def content_digest(paths: list[Path]) -> str:
    """SHA-256 over names, columns and values, whatever the row groups and compression; a column at a time."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        try:
            _digest_table(digest, path)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunNotFound(f"{path} cannot be read: {str(error).splitlines()[0]}.") from None
    return digest.hexdigest()


def _digest_table(digest: Any, path: Path) -> None:
    file = pq.ParquetFile(path)
    digest.update(f"{path.stem} {file.metadata.num_rows}\n".encode())
    for field in file.schema_arrow:
        digest.update(f"{field.name} {field.type}\n".encode())
        for batch in file.iter_batches(ROWS_PER_GROUP, columns=[field.name]):
            _digest_values(digest, batch.column(0))


def _digest_values(digest: Any, column: Any) -> None:
    """One after the other, so that it does not matter where batches end."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if not pa.types.is_primitive(column.type):  # text
        digest.update("".join(f"{value or ''}\x00{int(there)}" for value, there in _pairs(column, valid)).encode())
        return
    filled = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    digest.update(np.rec.fromarrays([filled, valid]).tobytes())


def _pairs(column: Any, valid: NDArray[np.bool_]) -> Iterator[tuple[str | None, bool]]:
    return zip(column.to_pylist(), valid.tolist(), strict=True)
