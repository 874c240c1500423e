"""A .sumocfg from anywhere: of its options SUMO gets those that read files or change the traffic, and no others.

SUMO itself never reads the configuration, because its options can overwrite any file, log anywhere and open sockets.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import read_file
from vefl_sim.mobility.sumo.foreign_files import identity
from vefl_sim.mobility.sumo.programs import file_argument

_MAX_BYTES = 1 << 20
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
"""Options that change the traffic and name no file; those below are left out before."""
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


@dataclass(frozen=True)
class Configuration:
    """The options of a .sumocfg, all of which are harmless."""

    path: Path
    options: tuple[tuple[str, str], ...]

    @property
    def net(self) -> Path:
        """The file of its network."""
        return next(self._named(option, value)[0] for option, value in self.options if option in _NET_FILE)

    @cached_property
    def files(self) -> list[Path]:
        """All input files that it names; they exist, and their content is not checked yet."""
        return [file for option, value in self.options if option in _INPUTS for file in self._named(option, value)]

    def arguments(self, copies: Mapping[Path, Path] | None = None) -> tuple[str, ...]:
        """The options as arguments for SUMO; each is one word, so that no value can be taken for an option.

        `copies` are read instead of the files, which are known by their identity.
        """
        return tuple(f"--{option}={self._argument(option, value, copies or {})}" for option, value in self.options)

    def _argument(self, option: str, value: str, copies: Mapping[Path, Path]) -> str:
        if option not in _INPUTS:
            return value
        return ",".join(file_argument(copies.get(identity(file), file)) for file in self._named(option, value))

    def _named(self, option: str, value: str) -> list[Path]:
        """Files relative to the folder of the configuration; separated by commas, if the option takes several."""
        value = os.path.expandvars(value)
        names = filter(None, (name.strip() for name in ([value] if option in _ONE_FILE else value.split(","))))
        return [self._existing(self.path.parent / name) for name in names]

    def _existing(self, file: Path) -> Path:
        if not os.path.isfile(file):
            raise ExperimentError(f"{_label(self.path)} names {file}, and there is no such file.")
        file_argument(file)  # refuses a name that SUMO would take for another one
        return file


def read_configuration(path: Path) -> Configuration:
    """Read a .sumocfg; an ExperimentError names all options that are unknown, or that SUMO must not get."""
    options = [(option, value) for option, value in _elements(path) if value]
    passed = [(option, value) for option, value in options if option in _INPUTS or not _LEFT_OUT.fullmatch(option)]
    if problems := [
        f'{_label(path)} sets {option} = "{value}", and only options that read files or change the traffic '
        "are passed to SUMO: remove it."
        for option, value in passed
        if option not in _INPUTS and not _TRAFFIC.fullmatch(option)
    ]:
        raise ExperimentError(problems)
    configuration = Configuration(path, tuple(passed))
    if not any(option in _NET_FILE for option, _ in passed):
        raise ExperimentError(f"{_label(path)} is not a configuration of SUMO: it names no net-file.")
    return configuration


def _label(path: Path) -> str:
    return f'mobility.file = "{path}"'


def _elements(path: Path) -> list[tuple[str, str]]:
    """Every element with its value, which is an attribute or text; sections have none."""
    try:
        root = ElementTree.fromstring(read_file(path, _MAX_BYTES))
    except OSError as error:
        raise ExperimentError(f"{_label(path)} cannot be read: {error.strerror}.") from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: errors of the encoding
        raise ExperimentError(f"{_label(path)} is not a configuration of SUMO ({error}): correct it.") from None
    return [(e.tag, (e.get("value") or e.get("v") or e.text or "").strip()) for e in root.iter()]
