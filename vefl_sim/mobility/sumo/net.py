"""The streets of a SUMO network that cars may use, with what is needed to check, measure and draw it."""

import hashlib
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_unpacked
from vefl_sim.core.xml import XmlParser
from vefl_sim.mobility.sumo.foreign_files import MAX_BYTES

Position = tuple[float, float]

MAX_POINTS = 10_000_000  # in all shapes; each needs 25 bytes of memory, and 160 while lengths in coverage are computed
_POINTS_PER_STREET, _POINTS_PER_JUNCTION = 20, 10  # that need as much memory as a street without points
_MOST_M = 5e7  # of a length or coordinate: once around the Earth is 4e7


@dataclass(frozen=True)
class Street:
    """One direction of a street between two junctions."""

    name: str
    lanes: int
    length_m: float
    limit_mps: float
    points_m: Floats  # (n, 2), shape of its first lane
    ends: tuple[str, str]  # names of the junctions at its start and end


@dataclass(frozen=True)
class Net:
    """Streets and junctions, in the coordinates of the network; two are equal if their files have the same elements."""

    digest: str
    path: Path = field(compare=False)
    streets: list[Street] = field(compare=False)
    junctions_m: dict[str, Position] = field(compare=False)  # without dead ends
    signals_m: Floats = field(compare=False)  # (n, 2), positions of the junctions with traffic lights
    has_degrees: bool = field(compare=False)  # whether it has a geographic projection

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
    reader = _NetReader(label)
    try:
        with open_unpacked(path, MAX_BYTES) as file:
            XmlParser(reader.start, reader.end).read(file)
    except (OSError, EOFError, zlib.error, ValueError, LookupError) as error:
        raise ExperimentError(
            f"{label} is not a network of SUMO, or it is incomplete ({error}): write it again."
        ) from None
    if not reader.streets:
        raise ExperimentError(
            f"{label} is not a network of SUMO, or has no street that cars may use: choose a larger or another part of "
            "the map."
        )
    signals_m = np.array(reader.signals).reshape(-1, 2)
    return Net(reader.digest.hexdigest(), path, reader.streets, reader.junctions, signals_m, reader.has_degrees)


class _NetReader:
    """What `Net` needs of the elements of a network; the digest is of all elements, not of comments with a date."""

    def __init__(self, label: str) -> None:
        self.has_degrees = False
        self.streets, self.junctions, self.signals = list[Street](), dict[str, Position](), list[Position]()
        self.digest = hashlib.sha256()
        self._label, self._points = label, 0
        self._edge: dict[str, str] = {}
        self._lane: dict[str, str] | None = None  # the first lane of the edge that cars may use
        self._lanes = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Read the attributes of an element."""
        self.digest.update(f"{tag} {attributes}".encode(errors="surrogatepass"))
        if tag == "edge":
            self._edge, self._lane, self._lanes = attributes, None, 0
        elif tag == "lane" and _allows_cars(attributes):
            self._lane, self._lanes = self._lane or attributes, self._lanes + 1
        elif tag == "junction" and attributes.get("type") not in ("internal", "dead_end"):
            place = self.junctions[attributes["id"]] = _metres(attributes["x"]), _metres(attributes["y"])
            self.signals += [place] if attributes.get("type", "").startswith("traffic_light") else []
            self._count(_POINTS_PER_JUNCTION)
        elif tag == "location":
            self.has_degrees = attributes.get("projParameter", "!") not in ("!", "-", ".")

    def end(self, tag: str) -> None:
        """Add a street after the last of its lanes."""
        if tag != "edge" or self._lane is None or self._edge.get("function", "normal") not in ("normal", "connector"):
            return
        points = np.array([[_metres(value) for value in p.split(",")[:2]] for p in self._lane["shape"].split()])
        if points.ndim != 2 or points.shape[0] < 2:
            raise ValueError(f"lane {self._lane.get('id')} has no shape")
        length_m, limit_mps = _metres(self._lane["length"]), float(self._lane["speed"])
        ends = self._edge.get("from", ""), self._edge.get("to", "")
        self.streets.append(Street(self._edge["id"], self._lanes, length_m, limit_mps, points, ends))
        self._count(len(points) + _POINTS_PER_STREET)

    def _count(self, points: int) -> None:
        self._points += points
        if self._points > MAX_POINTS:
            raise ExperimentError(f"{self._label} has too many streets: use at most {MAX_POINTS // 25} of them.")


def _metres(text: str) -> float:
    """A length or coordinate; squares of larger ones could overflow."""
    if not abs(metres := float(text)) <= _MOST_M:
        raise ValueError(f"{text} m is farther than around the Earth")
    return metres


def _allows_cars(lane: dict[str, str]) -> bool:
    if allow := lane.get("allow"):
        return bool({"passenger", "all"} & set(allow.split()))
    return not {"passenger", "all"} & set(lane.get("disallow", "").split())
