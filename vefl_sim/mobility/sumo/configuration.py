"""A .sumocfg from anywhere: of its options SUMO gets those that read files or change the traffic, and no others.

SUMO itself never reads the configuration, because its options can overwrite any file, log anywhere and open sockets.
"""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import read_file
from vefl_sim.mobility.sumo.programs import file_argument

_MAX_BYTES = 1 << 20
_NET_FILE = ("net-file", "net", "n")
_INPUTS = (
    *_NET_FILE, "route-files", "routes", "r", "additional-files", "additional", "a", "weight-files", "weights", "w",
    "load-state", "device.fcd-replay.files", "device.fcd-replay.file",
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
"""Options that change the traffic, except those whose last word says that they name a file."""
_NAMES_A_FILE = re.compile(r".*[.-](output|files?)")
_WITHOUT_EFFECT = re.compile(
    r"""step-length|seed|srand|random|abs-rand|time-to-teleport|collision\.action|route-steps|s
    |verbose|v|print-options|no-warnings|W|suppress-warnings|aggregate-warnings|log\.(timestamps|processid)|language
    |(no-)?duration-log(\..+)?|t|no-step-log|step-log\.period|xml-validation(\..+)?|X
    |human-readable-time|H|precision(\.geo)?
    |gui-settings-file|g|quit-on-end|Q|game(\.mode)?|G|start|S|delay|d|breakpoints|B|demo|D|disable-textures|T
    |registry-viewport|window-(size|pos)|tracker-interval|osg-view""",
    re.VERBOSE,
)
"""Options that are left out: the run sets them itself, or they concern only what SUMO prints and sumo-gui shows."""


@dataclass(frozen=True)
class Configuration:
    """The options of a .sumocfg, all of which are harmless."""

    path: Path
    options: tuple[tuple[str, str], ...]

    @property
    def net(self) -> Path:
        """The file of its network."""
        return next(self._named(value)[0] for option, value in self.options if option in _NET_FILE)

    @cached_property
    def files(self) -> list[Path]:
        """All input files that it names; they exist, and their content is not checked yet."""
        return [file for option, value in self.options if option in _INPUTS for file in self._named(value)]

    def arguments(self) -> tuple[str, ...]:
        """The options as arguments for SUMO; each is one word, so that no value can be taken for an option."""
        return tuple(f"--{option}={self._argument(option, value)}" for option, value in self.options)

    def _argument(self, option: str, value: str) -> str:
        return ",".join(map(file_argument, self._named(value))) if option in _INPUTS else value

    def _named(self, value: str) -> list[Path]:
        """Files relative to the folder of the configuration, separated by commas."""
        names = filter(None, (name.strip() for name in os.path.expandvars(value).split(",")))
        return [self._existing(self.path.parent / name) for name in names]

    def _existing(self, file: Path) -> Path:
        if not os.path.isfile(file):
            raise ExperimentError(f"{_label(self.path)} names {file}, and there is no such file.")
        file_argument(file)  # refuses a name that SUMO would take for another one
        return file


def read_configuration(path: Path) -> Configuration:
    """Read a .sumocfg; an ExperimentError names the first option that SUMO must not get."""
    options = [(option, value) for option, value in _elements(path) if value]
    for option, value in options:
        known = _TRAFFIC.fullmatch(option) and not _NAMES_A_FILE.fullmatch(option)
        if option not in _INPUTS and not known and not _WITHOUT_EFFECT.fullmatch(option):
            raise ExperimentError(
                f'{_label(path)} sets {option} = "{value}", and only options that read files or change the traffic '
                "are passed to SUMO: remove it."
            )
    passed = [(option, value) for option, value in options if not _WITHOUT_EFFECT.fullmatch(option)]
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
