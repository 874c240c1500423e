"""However rows are divided over part files, the final table is the same, byte for byte."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.tables import TableWriter, content_digest
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import PartFile, PartWriter


def write_table(folder: Path, rows: list[dict], cuts: list[int]) -> Path:
    """Write a table of these rows, with a new part file before each row number in `cuts`."""
    writer = PartWriter(folder, "events")
    for number, row in enumerate(rows):
        if number in cuts:
            writer.commit()
        writer.append(row)
    writer.compact(folder)
    return folder / "events.parquet"


ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 2**62), "kind": st.sampled_from(["a", "b", ""])},
        optional={"reason": st.text(max_size=3), "cost": st.floats(allow_nan=False), "cv": st.integers(-5, 5)},
    ),
    max_size=60,
)


@given(ROWS, st.lists(st.integers(0, 60)), st.integers(1, 20))
def test_the_table_does_not_depend_on_the_part_files(rows: list[dict], cuts: list[int], group: int) -> None:
    from vefl_sim.core import tables
    from vefl_sim.records import table_parts

    default = tables.ROWS_PER_GROUP
    tables.ROWS_PER_GROUP = table_parts.ROWS_PER_GROUP = group
    try:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            whole, pieces = write_table(Path(one), rows, []), write_table(Path(other), rows, cuts)
            assert whole.read_bytes() == pieces.read_bytes()
            assert content_digest([whole]) == content_digest([pieces])
            filled = [{name: row.get(name) for name in SCHEMAS["events"]} for row in rows]
            assert pq.read_table(pieces).to_pylist() == filled
    finally:
        tables.ROWS_PER_GROUP = table_parts.ROWS_PER_GROUP = default


def test_a_resumed_writer_appends_after_the_committed_rows(tmp_path: Path) -> None:
    first = PartWriter(tmp_path, "timings")
    first.append({"round": 1, "what": "plan", "wall_s": 0.5})
    parts = first.commit()
    first.append({"round": 2, "what": "plan", "wall_s": 0.5})  # lost in a crash
    second = PartWriter(tmp_path, "timings")
    second.parts = parts
    second.append({"round": 2, "what": "train", "wall_s": 0.25})
    second.compact(tmp_path)
    assert pq.read_table(tmp_path / "timings.parquet")["what"].to_pylist() == ["plan", "train"]


def test_a_changed_or_missing_part_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"rows")
    part = PartFile.of(file)
    assert part.fault(tmp_path) is None
    file.write_bytes(b"rowz")
    assert part.fault(tmp_path) == f"{file} has changed since it was written"
    file.unlink()
    assert part.fault(tmp_path) == f"{file} is missing"


def test_rows_and_columns_give_the_same_table_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vefl_sim.core.tables.ROWS_PER_GROUP", 10)
    rows = [{"round": number, "what": "plan", "wall_s": number / 7} for number in range(34)]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for folder in ("rows", "columns", "both"):
        (tmp_path / folder).mkdir()
    by_row, by_column, both = (
        TableWriter(tmp_path / folder / "timings.parquet", SCHEMAS["timings"]) for folder in ("rows", "columns", "both")
    )
    for row in rows:
        by_row.append(row)
    by_column.extend(columns)
    both.append(rows[0])
    both.extend({name: column[1:33] for name, column in columns.items()})
    both.append(rows[33])
    for writer in (by_row, by_column, both):
        writer.close()
    assert pq.read_table(by_row.path).to_pylist() == rows
    assert len({content_digest([writer.path]) for writer in (by_row, by_column, both)}) == 1
    metadata = pq.ParquetFile(by_row.path).metadata
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [10, 10, 10, 4]
