"""Files from anywhere, checked before one of SUMO's programs reads them: they can write no file and stay bounded.

SUMO opens whatever file its input names as an output, so nothing in a file may name one, neither for a detector nor for
a device. Detectors and the like are allowed in all files but the network and maps, which name no files at all; SUMO
then gets copies in which they write nothing.
"""

import os
import re
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import quoteattr

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import explain_write_errors, open_unpacked
from vefl_sim.core.xml import BadXml, XmlParser
from vefl_sim.mobility.sumo.programs import file_argument

MAX_BYTES = 1 << 31  # of all files together, unpacked; a file that is included twice counts twice
_MAX_RATIO, _SMALL_BYTES = 100, 1 << 26  # of unpacked to packed bytes, beyond 64 MiB
MAX_ELEMENTS = 10_000_000  # of all files together
_ENCODINGS = ("utf-8", "utf-16", "us-ascii", "ascii", "iso-8859-1")  # SUMO's parser reads them exactly as ours does
_INCLUDES = {"include": "href", "rerouter": "file", "variableSpeedSign": "file"}
"""Elements that name another input file, and in which attribute."""
_DETECTORS = (
    "e1Detector", "inductionLoop", "instantInductionLoop", "e2Detector", "laneAreaDetector", "e3Detector",
    "entryExitDetector", "edgeData", "laneData", "routeProbe", "vTypeProbe",
)  # fmt: skip
_OUTPUTS = dict.fromkeys(_DETECTORS, "file") | {"calibrator": "output", "timedEvent": "dest"}
"""Elements that name an output file, and in which attribute."""
_NOWHERE = ("NUL", "nul", "/dev/null")
_PICTURES = ("imgFile", "osgFile")  # only for sumo-gui
_SIGNALS = ("static", "actuated", "delay_based", "NEMA", "rail_signal", "rail_crossing", "off")


def _names_a_file(attribute: str) -> bool:
    """Whether an attribute, by its name, may name a file to read or to write."""
    return attribute.lower().endswith(("file", "output", "dest", "href")) and attribute not in _PICTURES


def identity(path: Path) -> Path:
    """Equal for two paths only if they are the same file, and the files named in it, relative to its folder, too."""
    return path.parent.resolve() / path.name


def require_harmless(
    files: Iterable[Path], alone: Path | None = None, label: str | None = None
) -> dict[Path, "ForeignFile"]:
    """All files that SUMO would read, also by <include>, by their identity.

    An ExperimentError if one could write a file, beyond the outputs of detectors, or if they are too large, where each
    counts as often as SUMO would read it. `alone` is the one that may name no others, a network or a map; `label` names
    the files in error messages, if not their path.
    """
    files, found = [*files], dict[Path, ForeignFile]()
    left_bytes, left_elements = MAX_BYTES, MAX_ELEMENTS
    pending = deque((identity(path), path) for path in files)
    while pending:
        key, path = pending.popleft()
        if key not in found:
            found[key] = ForeignFile(path, label or str(path), left_elements, path == alone)
            found[key].read(left_bytes)
        left_bytes, left_elements = left_bytes - found[key].bytes, left_elements - found[key].elements
        if left_bytes < 0 or left_elements < 0:
            raise ExperimentError(
                f"The files that {', '.join(map(str, files[:5]))} include have, each time that they are included, more "
                f"than {MAX_BYTES >> 30} GB or {MAX_ELEMENTS} elements: include them less often."
            )
        pending.extend((inner, inner) for inner in found[key].included)
    return found


class ForeignFile:
    """A file that SUMO reads, and its check; its size does not count the files that it includes."""

    def __init__(self, path: Path, label: str, most_elements: int, alone: bool) -> None:
        self.path, self.bytes, self.elements = path, 0, 0
        self.included: list[Path] = []  # each by its `identity`
        self.writes = False  # whether it has detectors or the like that name an output
        self._label, self._most_elements, self._alone = label, most_elements, alone
        self._xml = XmlParser(self._start)

    def read(self, left_bytes: int) -> None:
        """Read the file to its end."""
        try:
            most_bytes = _SMALL_BYTES + _MAX_RATIO * self.path.stat().st_size
            with open_unpacked(self.path, min(most_bytes, left_bytes)) as file:
                self._xml.read(file)
        except BadXml as error:
            raise ExperimentError(f"{self._label}, line {error.line}: it {error.fault}: write it again.") from None
        except (OSError, EOFError, zlib.error) as error:
            reason = str(getattr(error, "strerror", None) or error).rstrip(".")
            together = f", or all files together more than {MAX_BYTES >> 30} GB" if left_bytes < most_bytes else ""
            raise ExperimentError(f"{self._label} cannot be read: {reason}{together}.") from None
        self.bytes = self._xml.bytes

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > self._most_elements:
            raise self._problem(f"there are more than {MAX_ELEMENTS} elements: use a smaller part of the map")
        if self._xml.encoding not in _ENCODINGS:
            raise self._problem(f"the encoding {self._xml.encoding} is refused: write it in UTF-8")
        for name, value in attributes.items():
            if _names_a_file(name) and value not in _NOWHERE:
                self._check_file(tag, name, value)
        if tag == "param":
            self._check_parameter(attributes.get("key", ""), attributes.get("value", ""))
        elif tag == "tlLogic" and (kind := attributes.get("type", "static")) not in _SIGNALS:
            raise self._problem(f'a signal has the type "{kind}": choose one of {", ".join(_SIGNALS)}')

    def _check_file(self, tag: str, name: str, value: str) -> None:
        """Accept an input file, which is checked later, and an output, which copies do not have."""
        if self._alone or (_INCLUDES.get(tag) != name and tag not in _OUTPUTS):
            raise self._problem(f'<{tag}> would read or write the file {name}="{value}": set it to "NUL", or remove it')
        if tag in _OUTPUTS:
            self.writes = True
            return
        path = self.path.parent / value
        if not os.path.isfile(path):
            raise self._problem(f"<{tag}> names {path}, and there is no such file: correct it")
        file_argument(path)  # refuses a name that SUMO would take for another one
        self.included.append(identity(path))

    def _check_parameter(self, key: str, value: str) -> None:
        """Refuse parameters that let signals or devices write files; a device for SSM always does."""
        name = key.lower()
        if "ssm" in name.split(".") or (re.search(r"(^|[.-])(file|output)$", name) and value not in _NOWHERE):
            raise self._problem(f'the parameter {key} = "{value}" would write a file: remove it')

    def _problem(self, sentence: str) -> ExperimentError:
        return ExperimentError(f"{self._label}, line {self._xml.line}: {sentence}.")


def copy_without_outputs(files: Mapping[Path, ForeignFile], folder: Path) -> dict[Path, Path]:
    """Copy the files that write others, and those that include them; return which file SUMO reads instead of which.

    The detectors stay, because signals may need them.
    """
    copied = set[Path]()
    while more := {key for key, file in files.items() if file.writes or copied & {*file.included}} - copied:
        copied |= more
    copies = {key: folder / f"input{number}.xml" for number, key in enumerate(files, 1) if key in copied}
    with explain_write_errors(folder):
        for key, copy in copies.items():
            with copy.open("w", encoding="utf-8") as target:
                _copy(files[key].path, copies, target)
    return copies


def _copy(path: Path, copies: Mapping[Path, Path], target: TextIO) -> None:
    """Write the elements of a file again, in UTF-8 and not packed; SUMO's input files have no text between them."""

    def start(tag: str, attributes: dict[str, str]) -> None:
        values = {name: changed(tag, name, value) for name, value in attributes.items()}
        kept = [f" {name}={quoteattr(value)}" for name, value in values.items() if value is not None]
        target.write(f"<{tag}{''.join(kept)}>")

    def changed(tag: str, name: str, value: str) -> str | None:
        """The value of an attribute in the copy; None for one that is left out."""
        if not _names_a_file(name) or value in _NOWHERE:
            return value
        if _INCLUDES.get(tag) == name:
            included = path.parent / value
            return file_argument(copies.get(identity(included), included))
        return "NUL" if _OUTPUTS.get(tag) == name else None

    with open_unpacked(path) as source:
        XmlParser(start, lambda tag: target.write(f"</{tag}>\n")).read(source)
