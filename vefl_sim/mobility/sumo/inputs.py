"""What `mobility.file` names for SUMO: a configuration, a net, or a map of OpenStreetMap."""

import gzip
import hashlib
import math
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.sumo.net import Net, Position, read_net
from vefl_sim.mobility.sumo.process import running
from vefl_sim.mobility.sumo.programs import run_program

CONFIGURATION = (".sumocfg",)
NET = (".net.xml", ".net.xml.gz")
OSM = (".osm", ".osm.xml", ".osm.gz", ".osm.xml.gz")
_NET_FILE = ("net-file", "net", "n")
_INPUTS = (
    *_NET_FILE, "route-files", "routes", "r", "additional-files", "additional", "a", "weight-files", "weights", "w",
    "load-state", "astar.all-distances", "astar.landmark-distances", "device.fcd-replay.files",
    "device.fcd-replay.file",
)  # fmt: skip
"""Options that name files which SUMO reads, by all their names."""
_OURS = ("remote-port", "num-clients")
_NAMES_ANOTHER = re.compile(
    rb"""<(?:include\b[^>]*?\bhref|(?:rerouter|variableSpeedSign)\b[^>]*?\bfile)\s*=\s*["']([^"']+)"""
)
_NETCONVERT = (
    "--keep-edges.by-vclass", "passenger", "--remove-edges.isolated",
    "--geometry.remove", "--roundabouts.guess", "--ramps.guess", "--junctions.join", "--no-turnarounds.except-deadend",
    "--tls.guess-signals", "--tls.discard-simple", "--tls.join", "--tls.default-type", "static", "--no-warnings",
)  # fmt: skip
"""What SUMO's own handbook recommends for OpenStreetMap."""


def map_path(file: str) -> Path:
    """The file itself; a sentence if there is none, or if SUMO could not take it."""
    path, message = Path(file), f'mobility.file = "{file}"'
    if not path.is_file():
        raise ExperimentError(
            f"{message}: there is no such file; paths start at the experiment's file, or where you start the run."
        )
    if not path.name.lower().endswith((*CONFIGURATION, *NET, *OSM)):
        raise ExperimentError(f"{message} is of an unknown format: it must be .sumocfg, .net.xml(.gz) or .osm(.gz).")
    if "," in file:
        raise ExperimentError(f"{message} has a comma, at which SUMO would cut it: rename the file or the folder.")
    return path


def map_digest(file: str) -> str:
    """SHA-256 of everything that SUMO will read, so that an edited map or demand makes another run."""
    path = map_path(file)
    if not path.name.lower().endswith(CONFIGURATION):
        return hashlib.sha256(_content(path)).hexdigest()
    all_of_it, seen, left = hashlib.sha256(), set[Path](), [path, *_named_in(path)]
    while left:
        file_ = left.pop(0)
        if file_.resolve() in seen:
            continue
        seen.add(file_.resolve())
        content = _content(file_)
        all_of_it.update(hashlib.sha256(content).digest())
        left += _included(file_, content)
    return all_of_it.hexdigest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def _included(path: Path, content: bytes) -> list[Path]:
    """Files that a file of routes or the like names, as far as they are there; the rest SUMO will tell."""
    if path.suffix.lower() == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return []  # SUMO will tell that, too
    named = [path.parent / os.fsdecode(name) for name in _NAMES_ANOTHER.findall(content)]
    return [file for file in named if file.is_file()]


def net_of(file: str, folder: Path) -> Net:
    """The net of the input. One made from an .osm is kept in the folder."""
    path, message = map_path(file), f'mobility.file = "{file}"'
    if path.name.lower().endswith(OSM):
        path = convert(path, folder / "map.net.xml.gz", message)
    elif path.name.lower().endswith(CONFIGURATION):
        path = next(_named_in(path, _NET_FILE))
        message = f"{path}, the net of {message},"
    return read_net(path, message)


def convert(osm: Path, net: Path, message: str) -> Path:
    """Make a net of a map of OpenStreetMap."""
    if fault := _no_map(osm):
        raise ExperimentError(f"{message} {fault}.")
    run_program("netconvert", ("--osm-files", osm, "--output-file", net, *_NETCONVERT), f"{message} gives no net")
    return net


def _no_map(path: Path) -> str | None:
    """What a file is that went wrong on its way: netconvert would only say that it is no XML."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            start = file.read(400).removeprefix(b"\xef\xbb\xbf").strip()
    except (OSError, EOFError, zlib.error):
        return "is no gzip file, or only the beginning of one: download it again"
    if not start:
        return "is empty: download it again"
    if start.startswith(b"PK"):
        return "is a zip file: unpack it"
    if b"<html" in start.lower():
        return "is a web page, not a map: download it again"
    if not start.startswith(b"<"):
        return f"is not a map but the text {start.splitlines()[0][:80].decode(errors='replace')!r}"
    return None


def renew(old: Path, net: Path, message: str) -> Path:
    """The same net as this version of SUMO writes it."""
    run_program(
        "netconvert", ("--sumo-net-file", old, "--output-file", net, "--no-warnings"), f"{message} cannot be renewed"
    )
    return net


def gnb_m(experiment: Experiment, net: Net) -> Position:
    """Where the gNB stands in the net, which must have a street within its coverage."""
    mobility, radius_m = experiment.mobility, experiment.radio.coverage_radius_m
    place, said = mobility.origin_m or net.centre_m, "mobility.origin_m"
    if mobility.origin_deg is not None:
        place, said = _from_degrees(net, mobility.origin_deg), "mobility.origin_deg"
    if not math.hypot(*place) < math.inf or not net.metres_within(place, radius_m).any():
        low, high = net.box_m
        raise ExperimentError(
            f"No street of {net.path} is within radio.coverage_radius_m = {radius_m:g} of the gNB at "
            f"[{place[0]:.1f}, {place[1]:.1f}]: set {said}; the streets are from [{low[0]:.0f}, {low[1]:.0f}] "
            f"to [{high[0]:.0f}, {high[1]:.0f}]."
        )
    return place


def _from_degrees(net: Net, degrees: Position) -> Position:
    """Latitude and longitude in the net's own projection, by SUMO itself."""
    if not net.has_degrees:
        raise ExperimentError(f"{net.path} does not know its place on the earth: set mobility.origin_m instead.")
    latitude, longitude = degrees
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise ExperimentError(f"mobility.origin_deg = [{latitude:g}, {longitude:g}] is not a latitude and a longitude.")
    with running("traci", ("--net-file", str(net.path))) as sumo:
        x_m, y_m = sumo.simulation.convertGeo(longitude, latitude, True)
    return float(x_m), float(y_m)


def _named_in(configuration: Path, options: tuple[str, ...] = _INPUTS) -> Iterator[Path]:
    """Files that a .sumocfg names, which are relative to it."""
    message = f'mobility.file = "{configuration}"'
    given = _given_in(configuration, message)
    if not any(option in _NET_FILE for option, _ in given):
        raise ExperimentError(f"{message} is not a configuration of SUMO: it names no net-file.")
    for option, value in given:
        if option not in options:
            continue
        for name in filter(None, (name.strip() for name in os.path.expandvars(value).split(","))):
            path = configuration.parent / name
            if not path.is_file():
                raise ExperimentError(f"{message} names {path}, and there is no such file.")
            yield path


def _given_in(configuration: Path, message: str) -> list[tuple[str, str]]:
    """All options of a .sumocfg, but for those with which SUMO would wait for somebody else to connect."""
    try:
        root = ElementTree.parse(configuration).getroot()
    except (OSError, ElementTree.ParseError, LookupError, ValueError) as error:  # the latter: of the encoding
        raise ExperimentError(f"{message} is not a configuration of SUMO ({error}): correct it.") from None
    given = [(e.tag, (e.get("value") or e.get("v") or e.text or "").strip()) for e in root.iter()]
    for option, value in given:
        if option in _OURS and value:
            raise ExperimentError(f"{message} sets {option}, with which SUMO would wait for another client: remove it.")
    return given
