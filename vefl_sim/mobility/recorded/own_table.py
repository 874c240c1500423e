"""The `mobility` table of a run, read as a recording."""

from collections.abc import Iterator

import numpy as np

from vefl_sim.core.parquet import ColumnKind, Columns, ParquetFile
from vefl_sim.mobility.recorded.frame import Frame, RecordingFile, frame, instants
from vefl_sim.mobility.scene import Scene

END = "end_ns"  # key of the end time in the file's metadata, because empty streets leave no row
_COLUMNS: dict[str, ColumnKind] = {
    "time_ns": "integer",
    "vehicle": "integer",
    "x_m": "number",
    "y_m": "number",
    "speed_mps": "number",
    "connected": "boolean",
}


def is_own(table: ParquetFile) -> bool:
    """Whether the file is a `mobility` table, possibly with columns missing."""
    return "time_ns" in table.column_names


def own_frames(table: ParquetFile) -> Iterator[Frame]:
    """Yield one frame per time, and empty frames at time 0 and at the end if there are no rows for them."""
    source, columns = RecordingFile(table.path, "row"), None
    for number, columns in enumerate(instants(source, table.batches(_COLUMNS), "time_ns")):
        if number == 0 and columns["time_ns"][0] > 0:
            yield _empty_frame(columns, 0, 1)
        yield frame(source, _scene(columns), int(columns["row"][0]), columns["row"])
    if columns and (end_ns := _end_ns(table)) > columns["time_ns"][0]:
        yield _empty_frame(columns, end_ns, int(columns["row"][-1]))


def _end_ns(table: ParquetFile) -> int:
    noted = table.metadata.get(END, "")
    return int(noted) if noted.isdecimal() else 0


def _scene(columns: Columns) -> Scene:
    x_m, y_m, speed_mps = columns["x_m"], columns["y_m"], columns["speed_mps"]
    return Scene(int(columns["time_ns"][0]), columns["vehicle"], x_m, y_m, speed_mps, columns["connected"])


def _empty_frame(like: Columns, time_ns: int, row: int) -> Frame:
    """A frame without vehicles, with the column types of another one."""
    scene = _scene(like)
    empty = {name: values[:0] for name, values in vars(scene).items() if name != "time_ns"}
    return Frame(Scene(time_ns=time_ns, **empty), row, np.zeros(0, np.int64))
