"""SUMO's floating car data as Parquet: timestep_time, vehicle_id, vehicle_x, vehicle_y, vehicle_speed.

SUMO 1.28 writes one row per vehicle and a row of nulls for an empty timestep. Persons and containers go to the same
columns, which are all named after whoever came first in the file; they have an edge, vehicles a lane.
"""

from collections.abc import Iterator

import numpy as np

from vefl_sim.core.arrays import Bools
from vefl_sim.core.parquet import ColumnKind, Columns, ParquetFile
from vefl_sim.mobility.recorded.fcd import time_ns
from vefl_sim.mobility.recorded.frame import Frame, RecordingFile, first, frame, instants
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.scene import Scene

_TIME = "timestep_time"
_NUMBERS = ("x", "y", "speed")


def fcd_table_frames(table: ParquetFile, register: VehicleNumbers) -> Iterator[Frame]:
    """One frame per timestep."""
    source, tag, seen = RecordingFile(table.path, "row"), _tag(table), False
    for columns in instants(_batches(table, tag), _TIME):
        columns = {name.removeprefix(f"{tag}_"): values for name, values in columns.items()}
        if tag == "vehicle" and not seen:
            seen = _check_lanes(source, columns)
        yield _frame(source, columns, register)


def _tag(table: ParquetFile) -> str:
    """Whom the columns are named after."""
    tags = ("vehicle", "person", "container")
    return next((tag for tag in tags if f"{tag}_id" in table.names), "vehicle")


def _batches(table: ParquetFile, tag: str) -> Iterator[Columns]:
    kinds: dict[str, ColumnKind] = {_TIME: "number", f"{tag}_id": "text"}
    for name in _NUMBERS:
        kinds[f"{tag}_{name}"] = "number"
    for name in (f"{tag}_lane", f"{tag}_edge"):
        if name in table.names or tag != "vehicle":
            kinds[name] = "text"
    return table.batches(kinds)


def _frame(source: RecordingFile, columns: Columns, register: VehicleNumbers) -> Frame:
    begins = int(columns["row"][0])
    at_ns = time_ns(source, begins, float(columns[_TIME][0]))
    here = _vehicles(columns)
    columns = {name: values[here] for name, values in columns.items()}
    names, place = columns["id"].tolist(), columns["row"]
    if None in names:
        raise source.problem(int(place[names.index(None)]), "the vehicle has no id: fill it in, or drop the row.")
    numbers = register.numbers(names)
    scene = Scene(at_ns, numbers, columns["x"], columns["y"], columns["speed"], register.connected(numbers))
    return frame(source, scene, begins, place)


def _check_lanes(source: RecordingFile, columns: Columns) -> bool:
    """Whether the first in the file is here: a vehicle, since the columns are named so, and hence in a lane."""
    here = first(~_nobody(columns))
    if here is not None and _off_lane(columns)[here]:
        raise source.problem(
            int(columns["row"][here]),
            "the vehicle is in no lane, as in a mesoscopic simulation, so persons look like vehicles: write XML.",
        )
    return here is not None


def _vehicles(columns: Columns) -> Bools:
    """Rows of vehicles: not the row of an empty timestep, and nobody on an edge but in no lane."""
    return ~_nobody(columns) & ~_off_lane(columns)


def _nobody(columns: Columns) -> Bools:
    return _null(columns, "id") & np.isnan(columns["x"]) & np.isnan(columns["y"])


def _off_lane(columns: Columns) -> Bools:
    return _null(columns, "lane") & ~_null(columns, "edge")


def _null(columns: Columns, name: str) -> Bools:
    """Where there is nothing; a column that was not written tells nothing, and counts as empty."""
    if name not in columns:
        return np.ones(columns["row"].size, np.bool_)
    return np.array([value is None for value in columns[name]], np.bool_)
