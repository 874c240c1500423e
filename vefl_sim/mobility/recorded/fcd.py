"""SUMO's floating car data (FCD), as XML and as Parquet.

XML has <fcd-export>, <timestep time>, <vehicle id x y speed>. It is read as a stream, so that a file of any size needs
the memory of one timestep. Times are in seconds, x and y in metres in the plane; longitude and latitude
(--fcd-output.geo) look the same and cannot be detected.

Parquet has the columns timestep_time, vehicle_id, vehicle_x, vehicle_y, vehicle_speed. SUMO 1.28 writes one row per
vehicle and a row of nulls for an empty timestep. Persons and containers are written to the same columns, all of which
are named after the kind of the first object in the file; they have an edge, vehicles a lane. A mesoscopic simulation
has no lanes, so that only its XML can be read.
"""

import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from vefl_sim.core.arrays import Bools
from vefl_sim.core.clock import to_ns
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_unpacked
from vefl_sim.core.parquet import ColumnKind, Columns, ParquetFile
from vefl_sim.core.xml import CHUNK_BYTES, BadXml, XmlParser
from vefl_sim.mobility.recorded.recording import MAX_VEHICLES, Recording, VehicleNumbers, instants, ordered
from vefl_sim.mobility.scene import Scene

_TIME = "timestep_time"  # names of columns
_NUMBERS = ("x", "y", "speed")
_LONGEST_TEXT = 200  # of an id or a number
_LONGEST_S = 9e9  # the largest time that fits into 64 bits of nanoseconds


def xml_scenes(path: Path, register: VehicleNumbers) -> Iterator[Scene]:
    """Yield all timesteps one by one; an error in the file is raised when it is reached."""
    document = _Document(Recording(str(path), register), register)
    try:
        with open_unpacked(path) as file:
            while not document.at_end:
                problem = document.read(file)
                yield from document.completed()
                if problem:
                    raise problem
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def _time_ns(time_s: float, where: str) -> int:
    """Convert a time of the file to nanoseconds."""
    if not abs(time_s) < _LONGEST_S:
        raise ExperimentError(f"{where}: time = {time_s:g} is not a time in seconds: correct it.")
    return to_ns(time_s)


class _Document:
    """Parser of an XML file that is read in chunks; keeps the current line for error messages."""

    def __init__(self, recording: Recording, register: VehicleNumbers) -> None:
        self.at_end = False
        self._recording, self._register = recording, register
        self._xml = XmlParser(self._start, self._end)
        self._depth = 0
        self._time_ns: int | None = None  # of the timestep that is being read
        self._names: list[str] = []  # of its vehicles so far, with x, y and speed
        self._values: list[tuple[float, ...]] = []
        self._scenes: list[Scene] = []

    def read(self, file: BufferedIOBase) -> ExperimentError | None:
        """Read the next chunk; an error is returned, not raised, because timesteps before it may be complete."""
        try:
            piece = file.read1(CHUNK_BYTES)
            self.at_end = not piece
            self._xml.feed(piece)
        except ExperimentError as error:
            return error
        except BadXml as error:
            return self._problem(f"the file {error.fault}: write it again.", error.line)
        except (OSError, EOFError, zlib.error) as error:
            return self._problem(f"the file cannot be read any further ({error}): write it again.")
        return None

    def completed(self) -> list[Scene]:
        """Return the timesteps completed since the last call."""
        scenes, self._scenes = self._scenes, []
        return scenes

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and tag != "fcd-export":
            raise self._problem(
                f"the file begins with <{tag}>, not with <fcd-export>: name an output of sumo --fcd-output."
            )
        if self._depth == 2 and tag == "timestep":
            time_s = self._number(tag, attributes, "time")
            self._time_ns = _time_ns(time_s, f"{self._recording.name}, line {self._xml.line}")
            self._names, self._values = [], []
        elif self._depth == 3 and tag == "vehicle" and self._time_ns is not None:  # no persons and containers
            self._names.append(self._text(tag, attributes, "id"))
            self._values.append((*(self._number(tag, attributes, name) for name in _NUMBERS),))
            if len(self._names) > MAX_VEHICLES:
                raise self._recording.too_many()

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._depth == 1 and self._time_ns is not None:
            numbers = self._register.numbers(self._names)
            x_m, y_m, speed_mps = np.array(self._values, np.float64).reshape(-1, 3).T
            scene = Scene(self._time_ns, numbers, x_m, y_m, speed_mps, self._register.connected(numbers))
            self._scenes.append(ordered(self._recording, scene))
            self._time_ns = None

    def _number(self, tag: str, attributes: dict[str, str], name: str) -> float:
        text = self._text(tag, attributes, name)
        try:
            return float(text)
        except ValueError:
            raise self._problem(f'{name} = "{text}" is not a number: write seconds, metres and m/s.') from None

    def _text(self, tag: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._problem(f"<{tag}> has no {name}: write the FCD with id, x, y and speed.")
        if len(attributes[name]) > _LONGEST_TEXT:
            raise self._problem(f"{name} has {len(attributes[name])} characters: shorten it to {_LONGEST_TEXT}.")
        return attributes[name]

    def _problem(self, sentence: str, line: int | None = None) -> ExperimentError:
        return ExperimentError(f"{self._recording.name}, line {line or self._xml.line}: {sentence}")


def table_scenes(table: ParquetFile, register: VehicleNumbers) -> Iterator[Scene]:
    """Yield one scene per timestep."""
    recording, present = Recording(str(table.path), register), table.column_names
    tag = next((tag for tag in ("vehicle", "person", "container") if f"{tag}_id" in present), "vehicle")
    kinds: dict[str, ColumnKind] = {_TIME: "number", f"{tag}_id": "text"}
    for name in _NUMBERS:
        kinds[f"{tag}_{name}"] = "number"
    for name in (f"{tag}_lane", f"{tag}_edge"):
        if name in present or tag != "vehicle":
            kinds[name] = "text"
    for columns in instants(recording, table.batches(kinds), _TIME):
        columns = {name.removeprefix(f"{tag}_"): values for name, values in columns.items()}
        time_ns = _time_ns(float(columns[_TIME][0]), f"{table.path}, row {columns['row'][0]}")
        is_vehicle = _vehicles(columns)
        columns = {name: values[is_vehicle] for name, values in columns.items()}
        names = columns["id"].tolist()
        if None in names:
            row = columns["row"][names.index(None)]
            raise ExperimentError(f"{table.path}, row {row}: the vehicle has no id: fill it in, or drop the row.")
        numbers = register.numbers(names)
        connected = register.connected(numbers)
        yield ordered(recording, Scene(time_ns, numbers, columns["x"], columns["y"], columns["speed"], connected))


def _vehicles(columns: Columns) -> Bools:
    """Which rows are vehicles: not the nulls of an empty timestep, and no person, which has an edge but no lane."""
    is_empty = _is_null(columns, "id") & np.isnan(columns["x"]) & np.isnan(columns["y"])
    return ~is_empty & ~(_is_null(columns, "lane") & ~_is_null(columns, "edge"))


def _is_null(columns: Columns, name: str) -> Bools:
    """Which rows have no value in a column; a column that is missing from the file counts as empty."""
    if name not in columns:
        return np.ones(columns["row"].size, np.bool_)
    return np.array([value is None for value in columns[name]], np.bool_)
