"""Copies of SUMO's input files in which detectors and the like write nothing."""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from vefl_sim.core.files import explain_write_errors, open_unpacked
from vefl_sim.core.xml import XmlParser
from vefl_sim.mobility.sumo.foreign_files import INCLUDES, NOWHERE, OUTPUTS, ForeignFile, identity, names_a_file
from vefl_sim.mobility.sumo.programs import file_argument

_CHUNK_BYTES = 1 << 16


def copy_without_outputs(files: Mapping[Path, ForeignFile], folder: Path) -> dict[Path, Path]:
    """Copy the files that write others, and those that include them; return which file SUMO reads instead of which.

    The detectors stay, because signals may need them.
    """
    copied = {key for key, file in files.items() if file.writes}
    before = -1
    while before < len(copied):
        before = len(copied)
        copied |= {key for key, file in files.items() if copied & set(map(identity, file.included))}
    copies = {key: folder / f"input{number}.xml" for number, key in enumerate(files, 1) if key in copied}
    with explain_write_errors(folder):
        for key, copy in copies.items():
            _Copy(files[key].path, copies).write(copy)
    return copies


class _Copy:
    """Writes the elements of a file again; SUMO's input files have no text between them."""

    def __init__(self, path: Path, copies: Mapping[Path, Path]) -> None:
        self._path, self._copies, self._text = path, copies, list[str]()

    def write(self, copy: Path) -> None:
        """Write the copy, in UTF-8 and not packed."""
        xml = XmlParser(self._start, lambda tag: self._text.append(f"</{tag}>\n"))
        with open_unpacked(self._path) as source, copy.open("w", encoding="utf-8") as target:
            piece = b"any"
            while piece:
                piece = source.read(_CHUNK_BYTES)
                xml.feed(piece)
                target.writelines(self._text)
                self._text.clear()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        values = {name: self._value(tag, name, value) for name, value in attributes.items()}
        kept = [f" {name}={quoteattr(value)}" for name, value in values.items() if value is not None]
        self._text.append(f"<{tag}{''.join(kept)}>")

    def _value(self, tag: str, name: str, value: str) -> str | None:
        """The value of an attribute in the copy; None for one that is left out."""
        if not names_a_file(name) or value in NOWHERE:
            return value
        if INCLUDES.get(tag) == name:
            path = self._path.parent / value
            return file_argument(self._copies.get(identity(path), path))
        return "NUL" if OUTPUTS.get(tag) == name else None
