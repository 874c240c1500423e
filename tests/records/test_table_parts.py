"""However rows are divided over part files, the final table is the same, byte for byte."""

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vefl_sim.core import tables
from vefl_sim.core.tables import content_digest
from vefl_sim.records import table_parts
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.records.table_parts import PartFile, TableParts


def write_table(folder: Path, rows: list[dict], cuts: list[int]) -> Path:
    """Write a table of these rows, with a new part file before each row number in `cuts`."""
    writer = TableParts(folder, "events")
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
    max_size=30,
)


@given(ROWS, st.lists(st.integers(0, 30)), st.integers(1, 10))
@settings(max_examples=10)
def test_the_table_does_not_depend_on_the_part_files(rows: list[dict], cuts: list[int], group: int) -> None:
    folders = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
    with folders[0] as one, folders[1] as other, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS_PER_GROUP", group)
        patch.setattr(table_parts, "ROWS_PER_GROUP", group)
        patch.setattr(table_parts, "_MOST_GROUPS", 2)
        whole, pieces = write_table(Path(one), rows, []), write_table(Path(other), rows, cuts)
        assert whole.read_bytes() == pieces.read_bytes()
        assert content_digest([whole]) == content_digest([pieces])
        filled = [{name: row.get(name) for name in SCHEMAS["events"]} for row in rows]
        assert pq.read_table(pieces).to_pylist() == filled


def test_a_changed_or_missing_part_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"rows")
    part = PartFile.of(file)
    assert part.fault(tmp_path) is None
    file.write_bytes(b"rowz")
    assert part.fault(tmp_path) == f"{file} has changed since it was written"
    file.unlink()
    assert part.fault(tmp_path) == f"{file} is missing"
