"""Writes the files that show runs: pages, pictures, tables and timelines, each complete or not at all."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from vefl_sim.core.errors import BadInput, CannotWrite
from vefl_sim.core.files import atomic_file

if TYPE_CHECKING:  # takes time to import
    from matplotlib.figure import Figure

_NO_METADATA = {
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
"""By ending of a picture: what is left out, so that the same runs give the same files."""


def write_file(path: Path, content: bytes, *, example: str = "report.html") -> Path:
    """Write a file and return its path; raises BadInput if that is not possible."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, for example {path / example}.")
    try:
        with atomic_file(path) as partial:
            partial.write_bytes(content)
    except CannotWrite as error:
        reason = getattr(error.__cause__, "strerror", None) or error.__cause__
        raise BadInput(f"{path} cannot be written ({reason}): choose another file or folder.") from None
    return path


def write_files(content: Mapping[str, bytes], name: str, folder: Path) -> Iterator[Path]:
    """Write files by the ending of their names into a folder, which is created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}): choose another folder.") from None
    for ending, data in content.items():
        yield write_file(folder / f"{name}{ending}", data)


def require_ending(path: Path, what: str, endings: tuple[str, ...]) -> None:
    """Refuse a name with another ending, so that no table and no experiment is ever overwritten."""
    if not path.name.lower().endswith(endings):
        raise BadInput(f"{path} cannot be written: the name of a {what} must end with {' or '.join(endings)}.")


def picture(figure: "Figure", ending: str, dpi: int = 130) -> bytes:
    """A figure as the content of a file with this ending."""
    file = BytesIO()
    figure.savefig(file, format=ending[1:], dpi=dpi, metadata=_NO_METADATA[ending])
    return file.getvalue()


def pictures(figure: "Figure", dpi: int = 200) -> dict[str, bytes]:
    """A figure as PDF and PNG, by ending."""
    return {ending: picture(figure, ending, dpi) for ending in (".pdf", ".png")}
