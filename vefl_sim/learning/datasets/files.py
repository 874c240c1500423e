"""The files of a data set, which may come from a stranger: where they are, and how they are read.

Files are read from a folder, a zip or a .tar.gz. Nothing is ever unpacked to disk, and sizes are limited. What is
missing or damaged is reported in one sentence that names the file and the fix.
"""

import csv
import gzip
import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from vefl_sim.core.errors import ExperimentError, first_line
from vefl_sim.core.files import Bounded, cache_directory, open_file
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.dataset import empty_pictures

SUFFIXES = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp", ".gif", ".webp")
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "WEBP")
_MAX_PIXELS = 1 << 25  # decoded and turned upright, this many need 0.8 GB
_MAX_BYTES = 1 << 25  # of one file; a photograph of 20 megapixels has about 10 MB, a batch of CIFAR-10 31 million
_MAX_TAR_BYTES = 1 << 28  # that of CIFAR-10 unpacks to 184 million bytes
_MAX_DEPTH = 8  # of folders in a folder; links may lead in a circle


class Damaged(Exception):
    """A file without the expected content; its text completes a sentence that begins with "it"."""


UNREADABLE = (
    OSError, EOFError, RuntimeError, ValueError, OverflowError, MemoryError, struct.error, zlib.error,
    zipfile.BadZipFile, tarfile.TarError, csv.Error,
)  # fmt: skip
"""Errors that the readers of the standard library raise on a truncated or corrupted file."""


def downloads() -> Path:
    """The folder where `data get` without --dir creates a folder for each data set."""
    return cache_directory(os.environ) / "data"


@contextmanager
def errors_as_sentence(path: Path, fix: str) -> Iterator[None]:
    """Turn errors in reading a file into an ExperimentError of one sentence that names the file and the fix."""
    try:
        yield
    except Damaged as error:
        raise ExperimentError(f"{path} cannot be used: it {error}; {fix}.") from None
    except UNREADABLE as error:
        raise ExperimentError(f"{path} cannot be read ({first_line(error)}); {fix}.") from None


@dataclass(frozen=True)
class DataLocation:
    """The folder of one data set."""

    kind: str
    folder: Path
    chosen: bool  # whether the user named the folder in data.dir

    @classmethod
    def of(cls, data: DataTable) -> "DataLocation":
        """The folder `data.dir` of an experiment, or the download folder of its data set."""
        folder = Path(os.path.expanduser(data.dir)) if data.dir else downloads() / data.kind
        return cls(data.kind, folder, bool(data.dir))

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Path of a file; errors while it is read become one sentence with the fix."""
        path, get = self.folder / name, f'"python -m vefl_sim data get {self.kind}"'
        fix = f"replace it, or download it again with {get}" + " and leave data.dir empty" * self.chosen
        with errors_as_sentence(path, fix):
            if not path.is_file():
                other = "and leave data.dir empty" if self.chosen else "or name its folder in data.dir"
                raise ExperimentError(
                    f'data.kind = "{self.kind}": {name} is not in {self.folder}{" (data.dir)" * self.chosen}: get it '
                    f"with {get} {other}."
                )
            yield path

    def has(self, name: str) -> bool:
        """Whether the folder has a file of this name."""
        return os.path.isfile(self.folder / name)  # False also for a folder without read permission


class Folder:
    """The files in a user-defined folder and its subfolders, by their names with slashes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Names of all files except hidden ones, sorted; links are followed, because images are often linked."""
        return sorted(path.relative_to(self._path).as_posix() for path in self._files(self._path, _MAX_DEPTH))

    def read(self, name: str) -> bytes:
        """Content of a file."""
        with open_file(self._path / name) as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise Damaged(f"has a file {name} of more than {_MAX_BYTES >> 20} MB")
        return content

    def _files(self, folder: Path, depth: int) -> Iterator[Path]:
        if not depth:
            raise Damaged(f"has more than {_MAX_DEPTH} folders inside of each other, or a link to a folder around it")
        for path in folder.iterdir():
            if not _hidden(path.name):
                yield from self._files(path, depth - 1) if path.is_dir() else [path]


class Zip(zipfile.ZipFile):
    """The files in a zip, read by their names; the paths in it are never used."""

    def __init__(self, path: Path) -> None:
        open_file(path).close()  # refuses a device, which zipfile would read without end
        super().__init__(path)
        members = [member for member in self.infolist() if not member.filename.endswith("/")]
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack without a limit
                raise Damaged(f"has a file {member.filename} that is neither stored nor deflated")
            if member.file_size > _MAX_BYTES:
                raise Damaged(f"has a file {member.filename} that unpacks to more than {_MAX_BYTES >> 20} MB")
        self._names = [member.filename for member in members]

    def names(self) -> list[str]:
        """Names of all files except hidden ones, sorted."""
        return sorted(name for name in self._names if not _hidden(name))


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def tar_members(path: Path, names: Collection[str]) -> dict[str, bytes]:
    """The wanted files in a .tar.gz, by their names; others are skipped, and the paths in it are never used."""
    members = {}
    with open_file(path) as packed, gzip.GzipFile(fileobj=packed) as file:
        stream = Bounded(file, _MAX_TAR_BYTES, str(path))
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if member.isreg() and name in names:
                    if member.issparse() or member.size > _MAX_BYTES:  # a sparse file may announce any size
                        raise Damaged(f"has a file {name} that is sparse or larger than {_MAX_BYTES >> 20} MB")
                    content = archive.extractfile(member)
                    members[name] = content.read() if content else b""
        stream.read()  # to the end, where gzip compares its checksum
    return members


def read_pictures(archive: Folder | Zip, names: Sequence[str], image_px: int) -> NDArray[np.uint8]:
    """Read images as RGB and resize each, uncropped, to a square: [names, image_px, image_px, 3]."""
    images = empty_pictures(len(names), image_px)
    for i, name in enumerate(names):
        images[i] = _picture(name, archive.read(name), image_px)
    return images


def _picture(name: str, content: bytes, image_px: int) -> NDArray[np.uint8]:
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:  # known from the header, before anything is decoded
                raise Damaged(f"has a picture {name} of {image.width} × {image.height} pixels")
            upright = ImageOps.exif_transpose(image)
            return np.asarray(_rgb(name, upright).resize((image_px, image_px), Image.Resampling.BILINEAR))
    except Damaged:
        raise
    except UnidentifiedImageError:
        raise Damaged(f"has a file {name} that is not a picture") from None
    except Exception as error:  # the decoders of the formats raise exceptions of many types
        raise Damaged(f"has a picture {name} that cannot be read ({str(error).rstrip('.')})") from None


def _rgb(name: str, image: Image.Image) -> Image.Image:
    """Convert to 8 bits per colour; Pillow alone would clip 16-bit greys to white, and drop transparency."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):  # the file does not define which value is white
        raise Damaged(f"has a picture {name} with more than 8 bits of grey, which only a PNG may have (16)")
    if image.has_transparency_data:
        black = Image.new("RGBA", image.size, "black")
        return Image.alpha_composite(black, image.convert("RGBA")).convert("RGB")
    return image.convert("RGB")
