"""SUMO's floating car data as Parquet: timestep_time, vehicle_id, vehicle_x, vehicle_y, vehicle_speed.

SUMO 1.28 writes one row per vehicle and a row of nulls for an empty timestep. Persons and containers are written to the
same columns, all of which are named after the kind of the first object in the file; they have an edge, vehicles a lane.
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
    """Yield one frame per timestep."""
    source, tag, lanes_checked = RecordingFile(table.path, "row"), _tag(table), False
    for columns in instants(source, _batches(table, tag), _TIME):
        columns = {name.removeprefix(f"{tag}_"): values for name, values in columns.items()}
        if tag == "vehicle" and not lanes_checked:
            lanes_checked = _check_lanes(source, columns)
        yield _frame(source, columns, register)


def _tag(table: ParquetFile) -> str:
    """Kind of object that the columns are named after."""
    tags = ("vehicle", "person", "container")
    return next((tag for tag in tags if f"{tag}_id" in table.column_names), "vehicle")


def _batches(table: ParquetFile, tag: str) -> Iterator[Columns]:
    kinds: dict[str, ColumnKind] = {_TIME: "number", f"{tag}_id": "text"}
    for name in _NUMBERS:
        kinds[f"{tag}_{name}"] = "number"
    for name in (f"{tag}_lane", f"{tag}_edge"):
        if name in table.column_names or tag != "vehicle":
            kinds[name] = "text"
    return table.batches(kinds)


def _frame(source: RecordingFile, columns: Columns, register: VehicleNumbers) -> Frame:
    first_row = int(columns["row"][0])
    at_ns = time_ns(source, first_row, float(columns[_TIME][0]))
    is_vehicle = _vehicles(columns)
    columns = {name: values[is_vehicle] for name, values in columns.items()}
    names, place = columns["id"].tolist(), columns["row"]
    if None in names:
        raise source.problem(int(place[names.index(None)]), "the vehicle has no id: fill it in, or drop the row.")
    numbers = register.numbers(names)
    scene = Scene(at_ns, numbers, columns["x"], columns["y"], columns["speed"], register.connected(numbers))
    return frame(source, scene, first_row, place)


def _check_lanes(source: RecordingFile, columns: Columns) -> bool:
    """Refuse a file whose first object is in no lane, although the columns are named after vehicles.

    Returns whether the first object is in these rows.
    """
    row = first(~_is_empty(columns))
    if row is not None and _off_lane(columns)[row]:
        raise source.problem(
            int(columns["row"][row]),
            "the vehicle is in no lane, as in a mesoscopic simulation, so persons look like vehicles: write it as XML.",
        )
    return row is not None


def _vehicles(columns: Columns) -> Bools:
    """Which rows are vehicles: not the row of an empty timestep, and no object that has an edge but no lane."""
    return ~_is_empty(columns) & ~_off_lane(columns)


def _is_empty(columns: Columns) -> Bools:
    """Which rows stand for an empty timestep."""
    return _is_null(columns, "id") & np.isnan(columns["x"]) & np.isnan(columns["y"])


def _off_lane(columns: Columns) -> Bools:
    """Which rows have an edge but no lane, as persons and containers do."""
    return _is_null(columns, "lane") & ~_is_null(columns, "edge")


def _is_null(columns: Columns, name: str) -> Bools:
    """Which rows have no value in a column; a column that is missing from the file counts as empty."""
    if name not in columns:
        return np.ones(columns["row"].size, np.bool_)
    return np.array([value is None for value in columns[name]], np.bool_)
