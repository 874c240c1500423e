"""The input file `mobility.file` for SUMO: a configuration, a network, or a map from OpenStreetMap.

SUMO itself never reads a configuration, because its options can overwrite any file, log anywhere and open sockets. It
gets those options that read files or change the traffic, and no others.
"""

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import read_file
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.playback import digest_of, named_file
from vefl_sim.mobility.sumo.foreign_files import copy_without_outputs, identity, require_harmless
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

_NET_FILE = ("net-file", "net", "n")
_ONE_FILE = (*_NET_FILE, "load-state")
_INPUTS = (
    *_ONE_FILE, "route-files", "routes", "r", "additional-files", "additional", "a", "weight-files", "weights", "w",
    "device.fcd-replay.files", "device.fcd-replay.file",
)  # fmt: skip
"""All names of the options with which a configuration names input files."""
_TRAFFIC = re.compile(
    r"""begin|b|end|e|extrapolate-departpos|step-method\.ballistic|lateral-resolution|no-internal-links|junction-taz
    |load-state\.(offset|remove-vehicles)|weight-attribute|measure|x|threads|thread-rngs|scale|scale-suffix
    |ignore-(junction-blocker|route-errors|accidents)|keep-after-arrival|max-(num-\w+|depart-delay)|random-depart-offset
    |(intermodal-)?collision\..+|time-to-(teleport\..+|impatience)|waiting-time-memory|startup-wait-threshold
    |(sloppy|eager|emergency)-insert|insertion-checks|use-stop-\w+|lanechange\.(duration|overtake-right)
    |(tls|railsignal|default|carfollow|overhead-wire|emergencydecel|parking|ride|mapmatch|weights|persontrip|railway)\..+
    |railsignal-moving-block|slope-centered|pedestrian\.(model|timegap-crossing|striping\..+)
    |routing-(algorithm|threads)|replay-rerouting|with-taz|mesosim|meso[-.].+
    |(person-)?device\.(rerouting|routing|fcd-replay|battery|elechybrid|stationfinder|toc|driverstate|bluelight|taxi
        |glosa|friction)\..+""",
    re.VERBOSE,
)
"""Options that change the traffic and name no file, except those below."""
_LEFT_OUT = re.compile(
    r"""step-length|seed|srand|random|abs-rand|time-to-teleport|collision\.action|route-steps|s
    |verbose|v|print-options|no-warnings|W|suppress-warnings|aggregate-warnings|log\.(timestamps|processid)|language
    |(no-)?duration-log(\..+)?|t|no-step-log|step-log\.period|xml-validation(\..+)?|X
    |human-readable-time|H|precision(\.geo)?
    |gui-settings-file|g|quit-on-end|Q|game(\.mode)?|G|start|S|delay|d|breakpoints|B|demo|D|disable-textures|T
    |registry-viewport|window-(size|pos)|tracker-interval|osg-view|(edge)?data-files|m|alternative-net-file|N|selection-file
    |.+-output(\..+)?|output(-prefix|-suffix|\..+)|(netstate|netstate-dump|ndump|tripinfo|summary|vehroutes|personinfo
    |personroutes|person-fcd|emissions|phemlight)([.-].+)?|dump-(empty-edges|precision)|save-state\..+|write-(license|metadata)
    |l|log|log-file|message-log|error-log|pedestrian\.jupedsim\.(wkt|py)(\..+)?
    |(person-)?device\.((emissions|fcd|tripinfo|vehroute|ssm|btreceiver|btsender|example)\..+|.+\.(output|file))""",
    re.VERBOSE,
)
"""Options that are left out: the run sets them itself, or they concern only what SUMO writes and sumo-gui shows."""


def map_path(file: str) -> Path:
    """The path of `mobility.file`; an error if it does not exist or SUMO could not read it."""
    path = named_file(file, (*CONFIGURATION, *NET, *OSM), ".sumocfg, .net.xml(.gz) or .osm(.gz)")
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
    require_harmless([source], source, label)
    is_osm = source.name.lower().endswith(OSM)
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
    x_m, y_m = ask(("--net-file", file_argument(net.path)), str(net.path), question).split()
    return float(x_m), float(y_m)


@dataclass(frozen=True)
class Configuration:
    """The options of a .sumocfg, all of which are harmless."""

    net: Path
    inputs: dict[str, list[Path]]  # by option; they exist, and their content is not checked yet
    traffic: dict[str, str]  # the other options

    @property
    def files(self) -> list[Path]:
        """All input files."""
        return [file for files in self.inputs.values() for file in files]

    def arguments(self, copies: Mapping[Path, Path]) -> tuple[str, ...]:
        """The options as arguments for SUMO; each is one word, so that no value can be taken for an option.

        `copies` are read instead of the files, which are known by their identity.
        """
        named = {
            option: ",".join(file_argument(copies.get(identity(file), file)) for file in files)
            for option, files in self.inputs.items()
        }
        return tuple(f"--{option}={value}" for option, value in (named | self.traffic).items())


def read_configuration(path: Path) -> Configuration:
    """Read a .sumocfg; an ExperimentError names all options that are unknown, or that SUMO must not get."""
    inputs, traffic, problems = dict[str, list[Path]](), dict[str, str](), list[str]()
    for option, value in _elements(path):
        if option in _INPUTS:
            inputs[option] = _named(path, option, value)
        elif _LEFT_OUT.fullmatch(option):
            continue
        elif _TRAFFIC.fullmatch(option):
            traffic[option] = value
        else:
            problems.append(
                f'{_label(path)} sets {option} = "{value}", and only options that read files or change the traffic '
                "are passed to SUMO: remove it."
            )
    if problems:
        raise ExperimentError(problems)
    nets = [file for option in _NET_FILE for file in inputs.get(option, [])]
    if not nets:
        raise ExperimentError(f"{_label(path)} is not a configuration of SUMO: it names no net-file.")
    return Configuration(nets[0], inputs, traffic)


def _named(configuration: Path, option: str, value: str) -> list[Path]:
    """Files relative to the folder of a configuration; separated by commas, if the option takes several."""
    value = os.path.expandvars(value)
    names = filter(None, (name.strip() for name in ([value] if option in _ONE_FILE else value.split(","))))
    files = [configuration.parent / name for name in names]
    for file in files:
        if not os.path.isfile(file):
            raise ExperimentError(f"{_label(configuration)} names {file}, and there is no such file.")
        file_argument(file)  # refuses a name that SUMO would take for another one
    return files


def _label(path: Path) -> str:
    return f'mobility.file = "{path}"'


def _elements(path: Path) -> list[tuple[str, str]]:
    """Every element that has a value, which is an attribute or text; sections have none."""
    try:
        root = ElementTree.fromstring(read_file(path))
    except OSError as error:
        raise ExperimentError(f"{_label(path)} cannot be read: {error.strerror}.") from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: errors of the encoding
        raise ExperimentError(f"{_label(path)} is not a configuration of SUMO ({error}): correct it.") from None
    values = [(e.tag, (e.get("value") or e.get("v") or e.text or "").strip()) for e in root.iter()]
    return [(option, value) for option, value in values if value]
