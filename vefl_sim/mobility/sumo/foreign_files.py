"""Files from anywhere, checked before one of SUMO's programs reads them: they can write no file and stay bounded.

SUMO opens whatever file its input names as an output, so nothing in a file may name one, neither for a detector nor for
a device. SUMO reads the same elements in every file: a network may hold detectors, too.
"""

import errno
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_unpacked
from vefl_sim.core.xml import BadXml, XmlParser
from vefl_sim.mobility.sumo.programs import file_argument

MAX_BYTES = 1 << 31  # of all files together, unpacked; the network of Berlin has 1.4e8, a day of its traffic 1.5e9
MAX_RATIO, _SMALL_BYTES = 100, 1 << 26  # of unpacked to packed bytes, beyond 64 MiB; XML has 5 to 30
MAX_ELEMENTS = 10_000_000  # a day of Berlin has 5 million
_CHUNK_BYTES, _MANY = 1 << 16, 1000
_ENCODINGS = ("utf-8", "utf-16", "us-ascii", "ascii", "iso-8859-1")  # SUMO's parser reads them exactly as ours does
_INCLUDES = {"include": "href", "rerouter": "file", "variableSpeedSign": "file"}
"""Elements that name another input file, and in which attribute."""
_NOWHERE = ("NUL", "nul", "/dev/null")
_PICTURES = ("imgFile", "osgFile")  # only for sumo-gui
_SIGNALS = ("static", "actuated", "delay_based", "NEMA", "rail_signal", "rail_crossing", "off")


def require_harmless(files: Iterable[Path], label: str | None = None) -> list[Path]:
    """All files that SUMO would read, also by <include>; an ExperimentError if one could write a file or is too large.

    `label` names the files in error messages, if not their path. Each file may be included once only, because files
    that include each other grow without bound.
    """
    budget, found = _Budget(), {path.resolve(): path for path in files}
    pending = [*found.values()]
    while pending:
        path = pending.pop(0)
        for included in _Check(path, label or str(path), budget).included():
            if included.resolve() in found:
                raise ExperimentError(f"{included} is included twice, or includes itself: include it once.")
            found[included.resolve()] = included
            pending.append(included)
    return [*found.values()]


class _Budget:
    """What may still be read of all files together."""

    def __init__(self) -> None:
        self.bytes, self.elements = MAX_BYTES, MAX_ELEMENTS


class _Check:
    """The check of one file."""

    def __init__(self, path: Path, label: str, budget: _Budget) -> None:
        self._path, self._label, self._budget = path, label, budget
        self._included: list[Path] = []
        self._plain: set[str] = set()  # attributes that name no file; a cache, because most elements have only these
        self._xml = XmlParser(self._start)

    def included(self) -> list[Path]:
        """Read the file to its end and return the files that it includes."""
        try:
            most_bytes = _SMALL_BYTES + MAX_RATIO * self._path.stat().st_size
            with open_unpacked(self._path, min(most_bytes, self._budget.bytes)) as file:
                piece = b"any"
                while piece:
                    piece = file.read(_CHUNK_BYTES)
                    self._budget.bytes -= len(piece)
                    self._xml.feed(piece)
        except BadXml as error:
            raise ExperimentError(f"{self._label}, line {error.line}: it {error.fault}: write it again.") from None
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            if getattr(error, "errno", None) == errno.EFBIG and self._budget.bytes < most_bytes:
                reason = f"with the files named before it has more than {MAX_BYTES >> 30} GB"
            raise ExperimentError(f"{self._label} cannot be read: {str(reason).rstrip('.')}.") from None
        return self._included

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._budget.elements -= 1
        if self._budget.elements < 0:
            raise self._problem(f"there are more than {MAX_ELEMENTS} elements: use a smaller part of the map")
        if self._xml.encoding not in _ENCODINGS:
            raise self._problem(f"the encoding {self._xml.encoding} is refused: write it in UTF-8")
        if not self._plain.issuperset(attributes):
            for name, value in attributes.items():
                if name.lower().endswith(("file", "output", "dest", "href")) and name not in _PICTURES:
                    self._check_file(tag, name, value)
                elif len(self._plain) < _MANY:
                    self._plain.add(name)
        if tag == "param":
            self._check_parameter(attributes.get("key", ""), attributes.get("value", ""))
        elif tag == "tlLogic" and (kind := attributes.get("type", "static")) not in _SIGNALS:
            raise self._problem(f'a signal has the type "{kind}": choose one of {", ".join(_SIGNALS)}')

    def _check_file(self, tag: str, name: str, value: str) -> None:
        """Accept an input file, which is checked later, and an output that goes nowhere."""
        if value in _NOWHERE:
            return
        if _INCLUDES.get(tag) != name:
            raise self._problem(f'<{tag}> would write the file {name}="{value}": set it to "NUL", or remove it')
        path = self._path.parent / value
        if not os.path.isfile(path):
            raise self._problem(f"<{tag}> names {path}, and there is no such file: correct it")
        file_argument(path)  # refuses a name that SUMO would take for another one
        self._included.append(path)

    def _check_parameter(self, key: str, value: str) -> None:
        """Refuse parameters that let signals or devices write files; a device for SSM always does."""
        name = key.lower()
        if "ssm" in name or (name.endswith(("file", "output")) and value not in _NOWHERE):
            raise self._problem(f'the parameter {key} = "{value}" would write a file: remove it')

    def _problem(self, sentence: str) -> ExperimentError:
        return ExperimentError(f"{self._label}, line {self._xml.line}: {sentence}.")
