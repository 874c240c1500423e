"""The input file `mobility.file` for SUMO: a configuration, a network, or a map from OpenStreetMap."""

import hashlib
import math
from pathlib import Path

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.playback import digest_of
from vefl_sim.mobility.sumo.configuration import read_configuration
from vefl_sim.mobility.sumo.foreign_files import copy_without_outputs, require_harmless
from vefl_sim.mobility.sumo.net import Net, Position, read_net
from vefl_sim.mobility.sumo.programs import UNVALIDATED, ask, file_argument, run_program

CONFIGURATION = (".sumocfg",)
NET = (".net.xml", ".net.xml.gz")
OSM = (".osm", ".osm.xml", ".osm.gz", ".osm.xml.gz")
_FROM_OSM = (
    "--keep-edges.by-vclass", "passenger", "--remove-edges.isolated",
    "--geometry.remove", "--roundabouts.guess", "--ramps.guess", "--junctions.join", "--no-turnarounds.except-deadend",
    "--tls.guess-signals", "--tls.discard-simple", "--tls.join", "--tls.default-type", "static",
)  # fmt: skip
"""Options of netconvert that SUMO's documentation recommends for OpenStreetMap."""


def map_path(file: str) -> Path:
    """The path of `mobility.file`; an error if it does not exist or SUMO could not read it."""
    path, label = Path(file), f'mobility.file = "{file}"'
    if not path.is_file():
        raise ExperimentError(
            f"{label}: there is no such file; relative paths start at the folder of the experiment's file, or where "
            "you start the run."
        )
    if not path.name.lower().endswith((*CONFIGURATION, *NET, *OSM)):
        raise ExperimentError(f"{label} has an unknown format: it must be .sumocfg, .net.xml(.gz) or .osm(.gz).")
    file_argument(path)  # refuses a name that SUMO would take for another one
    return path


def map_digest(file: str) -> str:
    """SHA-256 of all files that SUMO will read; part of the run's name, so that an edited map gives another run."""
    path = map_path(file)
    if not path.name.lower().endswith(CONFIGURATION):
        return digest_of(path)
    configuration = read_configuration(path)
    named = require_harmless(configuration.files, configuration.net)
    files = [path, *(file.path for file in named.values())]
    return hashlib.sha256(b"".join(bytes.fromhex(digest_of(file)) for file in files)).hexdigest()


def configuration_of(file: str, folder: Path) -> tuple[Net, tuple[str, ...]]:
    """The network of a .sumocfg, and its options for SUMO; files that would write others are copied to `folder`."""
    configuration, label = read_configuration(map_path(file)), f'mobility.file = "{file}"'
    copies = copy_without_outputs(require_harmless(configuration.files, configuration.net), folder)
    net = read_net(configuration.net, f"{configuration.net}, the network of {label},")
    return net, configuration.arguments(copies)


def net_of(file: str, folder: Path) -> Net:
    """The network of a map, which is checked; one converted from an .osm is stored in `folder`."""
    path, label = map_path(file), f'mobility.file = "{file}"'
    if path.name.lower().endswith(OSM):
        path = convert(path, folder / "map.net.xml.gz", label)
    else:
        require_harmless([path], path, label)
    return read_net(path, label)


def convert(source: Path, net: Path, label: str) -> Path:
    """Convert a map from OpenStreetMap, or a network of an older version, to a network of the installed SUMO.

    `label` names the map in error messages.
    """
    is_osm = source.name.lower().endswith(OSM)
    require_harmless([source], None if is_osm else source, label)
    options = ("--osm-files", source, *_FROM_OSM) if is_osm else ("--sumo-net-file", source)
    arguments = (*options, "--output-file", net, "--no-warnings", *UNVALIDATED)
    run_program("netconvert", arguments, f"{label} cannot be converted")
    return net


def gnb_m(experiment: Experiment, net: Net) -> Position:
    """Position of the gNB in the network; an error if no street is in its coverage."""
    mobility, radius_m = experiment.mobility, experiment.radio.coverage_radius_m
    place, key = mobility.origin_m or net.centre_m, "mobility.origin_m"
    if mobility.origin_deg is not None:
        place, key = _from_degrees(net, mobility.origin_deg), "mobility.origin_deg"
    if not math.hypot(*place) < math.inf or not net.metres_within(place, radius_m).any():
        low, high = net.box_m
        raise ExperimentError(
            f"No street of {net.path} is within radio.coverage_radius_m = {radius_m:g} of the gNB at "
            f"[{place[0]:.1f}, {place[1]:.1f}]: set {key}; the streets are from [{low[0]:.0f}, {low[1]:.0f}] "
            f"to [{high[0]:.0f}, {high[1]:.0f}]."
        )
    return place


def _from_degrees(net: Net, degrees: Position) -> Position:
    """Convert latitude and longitude to the coordinates of the network, with SUMO."""
    if not net.has_degrees:
        raise ExperimentError(
            f"{net.path} has no geographic coordinates: set mobility.origin_m instead of mobility.origin_deg."
        )
    latitude, longitude = degrees
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise ExperimentError(
            f"mobility.origin_deg = [{latitude:g}, {longitude:g}] is not a latitude and a longitude: correct it."
        )
    question = f"*libsumo.simulation.convertGeo({longitude!r}, {latitude!r}, True)"
    x_m, y_m = ask(question, ("--net-file", file_argument(net.path)), str(net.path)).split()
    return float(x_m), float(y_m)
