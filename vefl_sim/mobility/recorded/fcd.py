"""SUMO's floating car data (FCD) as XML: <fcd-export>, <timestep time>, <vehicle id x y speed>.

The file is read as a stream, so that a file of any size needs the memory of one timestep. Times are in seconds, x and y
in metres in the plane; longitude and latitude (--fcd-output.geo) look the same and cannot be detected.
"""

import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from vefl_sim.core.clock import to_ns
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_unpacked
from vefl_sim.core.xml import BadXml, XmlParser
from vefl_sim.mobility.recorded.frame import MAX_VEHICLES, Frame, RecordingFile, frame, too_many
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.scene import Scene

_CHUNK_BYTES = 1 << 16
_LONGEST_TEXT = 200  # of an id or a number
_LONGEST_S = 9e9  # the largest time that fits into 64 bits of nanoseconds


def xml_frames(path: Path, register: VehicleNumbers) -> Iterator[Frame]:
    """Yield all timesteps one by one; an error in the file is raised when it is reached."""
    document = _Document(RecordingFile(path, "line"), register)
    try:
        with open_unpacked(path) as file:
            while not document.at_end:
                problem = document.read(file)
                yield from document.frames()
                if problem:
                    raise problem
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def time_ns(source: RecordingFile, place: int, time_s: float) -> int:
    """Convert a time of the file to nanoseconds."""
    if not abs(time_s) < _LONGEST_S:
        raise source.problem(place, f"time = {time_s:g} is not a time in seconds: correct it.")
    return to_ns(time_s)


class _Document:
    """Parser of an XML file that is read in chunks; keeps the current line for error messages."""

    def __init__(self, source: RecordingFile, register: VehicleNumbers) -> None:
        self.at_end = False
        self._source, self._register = source, register
        self._xml = XmlParser(self._start, self._end)
        self._depth = 0
        self._timestep: _Timestep | None = None
        self._frames: list[Frame] = []

    def read(self, file: BufferedIOBase) -> ExperimentError | None:
        """Read the next chunk; an error is returned, not raised, because timesteps before it may be complete."""
        try:
            piece = file.read1(_CHUNK_BYTES)
            self.at_end = not piece
            self._xml.feed(piece)
        except ExperimentError as error:
            return error
        except BadXml as error:
            return self._source.problem(error.line, f"the file {error.fault}: write it again.")
        except (OSError, EOFError, zlib.error) as error:
            return self._problem(f"the file cannot be read any further ({error}): write it again.")
        return None

    def frames(self) -> list[Frame]:
        """Return the timesteps completed since the last call."""
        frames, self._frames = self._frames, []
        return frames

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and tag != "fcd-export":
            raise self._problem(
                f"the file begins with <{tag}>, not with <fcd-export>: name an output of sumo --fcd-output."
            )
        if self._depth == 2 and tag == "timestep":
            self._timestep = _Timestep(self._time_ns(attributes), self._xml.line)
        elif self._depth == 3 and tag == "vehicle" and self._timestep:  # persons and containers are not vehicles
            self._timestep.add(
                self._text(tag, attributes, "id"),
                (*(self._number(tag, attributes, name) for name in ("x", "y", "speed")),),
                self._xml.line,
            )
            if self._timestep.vehicles > MAX_VEHICLES:
                raise too_many(self._source, self._xml.line)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if self._depth == 1 and self._timestep:
            self._frames.append(self._timestep.frame(self._source, self._register))
            self._timestep = None

    def _time_ns(self, attributes: dict[str, str]) -> int:
        return time_ns(self._source, self._xml.line, self._number("timestep", attributes, "time"))

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

    def _problem(self, sentence: str) -> ExperimentError:
        return self._source.problem(self._xml.line, sentence)


class _Timestep:
    """The vehicles of a <timestep> that have been read so far."""

    def __init__(self, time_ns: int, line: int) -> None:
        self._time_ns, self._line = time_ns, line
        self._names: list[str] = []
        self._values: list[tuple[float, ...]] = []
        self._lines: list[int] = []

    @property
    def vehicles(self) -> int:
        """Number of vehicles read so far."""
        return len(self._names)

    def add(self, name: str, values: tuple[float, ...], line: int) -> None:
        self._names.append(name)
        self._values.append(values)
        self._lines.append(line)

    def frame(self, source: RecordingFile, register: VehicleNumbers) -> Frame:
        numbers = register.numbers(self._names)
        x_m, y_m, speed_mps = np.array(self._values, np.float64).reshape(-1, 3).T
        scene = Scene(self._time_ns, numbers, x_m, y_m, speed_mps, register.connected(numbers))
        return frame(source, scene, self._line, np.array(self._lines, np.int64))
