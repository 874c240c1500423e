"""The streets of a SUMO network that cars may use, with what is needed to check, measure and draw it."""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedIOBase
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_unpacked
from vefl_sim.mobility.sumo.foreign_files import MAX_BYTES

Position = tuple[float, float]

MAX_POINTS = 10_000_000  # in all shapes; each needs 25 bytes of memory, and 160 while lengths in coverage are computed
_POINTS_PER_STREET, _POINTS_PER_JUNCTION = 20, 10  # that need as much memory as a street without points
_MAX_PARTS = 100_000  # elements in one street or junction


@dataclass(frozen=True)
class Street:
    """One direction of a street between two junctions."""

    name: str
    lanes: int
    length_m: float
    limit_mps: float
    points_m: Floats  # (n, 2), shape of its first lane
    ends: tuple[str, str]  # names of the junctions at its start and end


@dataclass(frozen=True, eq=False)
class Net:
    """Streets and junctions, in the coordinates of the network; two are equal if their files have the same content."""

    path: Path
    digest: str
    streets: list[Street]
    junctions_m: dict[str, Position]
    signals_m: Floats  # (n, 2), positions of the junctions with traffic lights
    has_degrees: bool  # whether it has a geographic projection

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Net) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def junctions(self) -> int:
        """Number of junctions, without dead ends."""
        return len(self.junctions_m)

    def joined_m(self, street: Street) -> Floats:
        """Points of a street from the middle of one junction to the middle of the next, so that drawn streets meet."""
        start, end = ([self.junctions_m[name]] if name in self.junctions_m else [] for name in street.ends)
        return np.array([*start, *street.points_m.tolist(), *end])

    @property
    def length_m(self) -> float:
        """Total length of all streets, each direction counted."""
        return sum(street.length_m for street in self.streets)

    @cached_property
    def box_m(self) -> tuple[Floats, Floats]:
        """Lower left and upper right corner of the box around all streets."""
        points = np.concatenate([street.points_m for street in self.streets])
        return points.min(axis=0), points.max(axis=0)

    @property
    def centre_m(self) -> Position:
        """The middle of the box."""
        low, high = self.box_m
        x_m, y_m = ((low + high) / 2).tolist()
        return x_m, y_m

    def metres_within(self, centre_m: Position, radius_m: float) -> Floats:
        """Length in m of each street inside a circle."""
        street, start, end = self._segments
        step, away = end - start, start - np.array(centre_m)
        a, b, c = (step**2).sum(1), (away * step).sum(1), (away**2).sum(1) - radius_m**2
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))  # 0 for a line that does not meet the circle
        first, last = (np.clip((-b + sign * root) / np.maximum(a, 1e-12), 0.0, 1.0) for sign in (-1, 1))
        return np.bincount(street, (last - first) * np.sqrt(a), len(self.streets)).astype(np.float64)

    @cached_property
    def _segments(self) -> tuple[Ints, Floats, Floats]:
        """Straight segments of all streets: index of the street, start and end points."""
        street = np.repeat(np.arange(len(self.streets)), [len(street.points_m) - 1 for street in self.streets])
        start = np.concatenate([street.points_m[:-1] for street in self.streets])
        end = np.concatenate([street.points_m[1:] for street in self.streets])
        return street, start, end


def read_net(path: Path, label: str) -> Net:
    """Read a .net.xml or .net.xml.gz; `label` names the file in error messages."""
    streets, junctions, signals = list[Street](), dict[str, Position](), list[Position]()
    has_degrees, is_net, size = False, False, 0
    try:
        with open_unpacked(path, MAX_BYTES) as content:
            source = _Digested(content)
            for element in _elements(source):
                if element.tag == "edge" and (street := _street(element)):
                    streets.append(street)
                    size += len(street.points_m) + _POINTS_PER_STREET
                elif element.tag == "junction" and element.get("type") not in ("internal", "dead_end"):
                    place = float(element.attrib["x"]), float(element.attrib["y"])
                    junctions[element.attrib["id"]] = place
                    size += _POINTS_PER_JUNCTION
                    if element.get("type", "").startswith("traffic_light"):
                        signals.append(place)
                elif element.tag == "location":
                    has_degrees = element.get("projParameter", "!") not in ("!", "-", ".")
                is_net = is_net or element.tag == "net"
                if size > MAX_POINTS:
                    raise ExperimentError(f"{label} has too many streets: use at most {MAX_POINTS // 25} of them.")
    except (OSError, EOFError, zlib.error) as error:
        raise ExperimentError(f"{label} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ExperimentError(
            f"{label} is not a network of SUMO, or it is incomplete ({error}): write it again."
        ) from None
    if not is_net:
        raise ExperimentError(f"{label} is not a network of SUMO: it has no <net>.")
    if not streets:
        raise ExperimentError(f"{label} has no street that cars may use: choose a larger or another part of the map.")
    return Net(path, source.digest, streets, junctions, np.array(signals).reshape(-1, 2), has_degrees)


class _Digested:
    """The bytes of a network, with a digest of those from <net on: the head has the date at which it was written."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file, self._digest, self._head = file, hashlib.sha256(), b""
        self._in_net = False

    def read(self, size: int = -1, /) -> bytes:
        """Read and digest the next bytes."""
        content = self._file.read(size)
        if self._in_net:
            self._digest.update(content)
        else:
            self._head = self._head[-3:] + content
            self._in_net = b"<net" in self._head
            if self._in_net:
                self._digest.update(self._head[self._head.find(b"<net") :])
        return content

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits."""
        return self._digest.hexdigest()


def _elements(file: _Digested) -> Iterator[ElementTree.Element]:
    """Yield the children of the root, and then the root; each is removed before the next one is read."""
    path, parts = list[ElementTree.Element](), 0
    for event, element in ElementTree.iterparse(file, ("start", "end")):
        if event == "start":
            path.append(element)
            parts += 1
            if parts > _MAX_PARTS:
                raise ValueError(f"<{path[1].tag}> has more than {_MAX_PARTS} parts")
            continue
        path.pop()
        if len(path) <= 1:
            parts = 0
            yield element
            (path or [element])[0].clear()


def _street(edge: ElementTree.Element) -> Street | None:
    """The street of an edge, or None if the edge is not a street or has no lane for cars."""
    lanes = [lane for lane in edge.iter("lane") if _allows_cars(lane)]
    if edge.get("function", "normal") not in ("normal", "connector") or not lanes:
        return None
    lane = lanes[0]
    points = np.array([[float(value) for value in point.split(",")[:2]] for point in lane.attrib["shape"].split()])
    if points.ndim != 2 or points.shape[0] < 2:
        raise ValueError(f"lane {lane.get('id')} has no shape")
    length_m, limit_mps, ends = lane.attrib["length"], lane.attrib["speed"], (edge.get("from", ""), edge.get("to", ""))
    return Street(edge.attrib["id"], len(lanes), float(length_m), float(limit_mps), points, ends)


def _allows_cars(lane: ElementTree.Element) -> bool:
    if allow := lane.get("allow"):
        return bool({"passenger", "all"} & set(allow.split()))
    return not {"passenger", "all"} & set(lane.get("disallow", "").split())
