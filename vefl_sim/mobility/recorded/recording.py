"""Recordings of traffic: finding their files, and reading the frames of every supported format."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import open_file
from vefl_sim.core.parquet import ParquetFile
from vefl_sim.mobility.recorded.fcd import fcd_table_frames, xml_frames
from vefl_sim.mobility.recorded.frame import Frame, RecordingFile
from vefl_sim.mobility.recorded.register import VehicleNumbers
from vefl_sim.mobility.recorded.trajectory import is_own, own_frames


def recording_path(file: str) -> Path:
    """The file that `mobility.file` names: the file itself, or the `mobility` table of a run directory."""
    path = Path(file)
    table = path / "tables" / "mobility.parquet"
    if path.is_dir() and not table.is_file():
        raise ExperimentError(
            f'mobility.file = "{file}" is a directory, but not a run directory: it has no tables/mobility.parquet.'
        )
    if not path.exists():
        where = "relative paths start at the folder of the experiment's file, or where you start the run"
        raise ExperimentError(f'mobility.file = "{file}": there is no such file or run directory; {where}.')
    return table if path.is_dir() else path


def recording_digest(file: str) -> str:
    """SHA-256 of a recording; part of the run's name, so that an edited recording gives another run."""
    path = recording_path(file)
    try:
        with open_file(path) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def source(path: Path) -> RecordingFile:
    """The file with the unit of its places: rows of a table, lines of XML."""
    return RecordingFile(path, "row" if path.suffix.lower() == ".parquet" else "line")


def has_connected(path: Path) -> bool:
    """Whether the recording itself marks which vehicles are connected."""
    return path.suffix.lower() == ".parquet" and is_own(ParquetFile(path))


def frames(path: Path, register: VehicleNumbers) -> Iterator[Frame]:
    """Iterate over the recorded frames in the order of the file, reading lazily."""
    name = path.name.lower()
    if name.endswith((".xml", ".xml.gz")):
        return xml_frames(path, register)
    if not name.endswith(".parquet"):
        raise ExperimentError(
            f'mobility.file = "{path}" has an unknown format: it must end in .parquet, .xml or .xml.gz.'
        )
    table = ParquetFile(path)
    return own_frames(table) if is_own(table) else fcd_table_frames(table, register)
