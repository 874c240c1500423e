"""The public data sets: their files, how they are downloaded, and whether a folder holds a complete one."""

import hashlib
import logging
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import BadInput, VeflWarning
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.experiment.kinds import DATA_SETS
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.files import UNREADABLE, Damaged, DataLocation, Zip, tar_members
from vefl_sim.learning.datasets.gtsrb import COMPACT, COMPACT_TEST_IMAGE, GTSRB, TRAIN_IMAGE

_TIMEOUT_S = 30.0  # for a server that does not respond


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set, the same on every mirror."""

    name: str
    md5: str
    mirrors: tuple[str, ...]  # addresses of its folder, in the order in which they are tried
    inside: Mapping[str, str] = field(default_factory=dict)  # for a .tar.gz: md5 of the files that are read, by name

    def is_in(self, folder: Path) -> bool:
        """Whether the folder has the file undamaged: as published, or repacked from the published files."""
        path = folder / self.name
        try:
            return _md5(path) == self.md5 or (bool(self.inside) and self._has_published_content(path))
        except (Damaged, *UNREADABLE):  # a file that cannot be read counts as missing
            return False

    def _has_published_content(self, path: Path) -> bool:
        digests = {name: hashlib.md5(content).hexdigest() for name, content in tar_members(path, self.inside)}
        return digests == self.inside


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _files(mirrors: tuple[str, ...], digests: dict[str, str]) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(name, md5, mirrors) for name, md5 in digests.items())


SOURCES: dict[str, tuple[RemoteFile, ...]] = {
    "mnist": _files(
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
    "fashion-mnist": _files(
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",  # has no https
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        {
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
    "cifar10": (
        RemoteFile(
            "cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
            ("https://www.cs.toronto.edu/~kriz/",),
            inside={
                "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
            },
        ),
    ),
    "gtsrb": _files(
        ("https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/",),
        {
            "GTSRB_Final_Training_Images.zip": "f33fd80ac59bff73c82d25ab499e03a3",
            "GTSRB_Final_Test_Images.zip": "c7e4e6327067d32654124b0fe9e82185",
            "GTSRB_Final_Test_GT.zip": "fe31e9c9270bbcd7b84b7f21a9d9d9e5",
        },
    ),
}
"""Files by `data.kind`. Digests are the publishers' md5, which detect damage, but not manipulation."""


def warn_of_other_files(kind: str, folder: Path) -> None:
    """Warn if a folder holds published files of another data set, whose files have the same names."""
    digests = {file.name: _md5(folder / file.name) for file in SOURCES[kind]}
    for other, files in SOURCES.items():
        if other != kind and (found := [file.name for file in files if digests.get(file.name) == file.md5]):
            warnings.warn(
                f'data.kind = "{kind}", but these are the files of {other}: {", ".join(found)} in {folder}. Set '
                f'data.kind = "{other}", or another data.dir.',
                VeflWarning,
                stacklevel=2,
            )


def files_of(kind: str) -> tuple[RemoteFile, ...]:
    """Files to download for a data set."""
    if kind in SOURCES:
        return SOURCES[kind]
    reason = "there is no such data set to download"
    if kind in DATA_SETS and (declared := load_part("data.kind", kind)).any_number | declared.from_traffic:
        reason = "it is recorded in the traffic of a run" if declared.from_traffic else "it is drawn by the program"
    raise BadInput(f"data get {kind}: {reason}; choose one of {', '.join(SOURCES)}.")


def download(files: Sequence[RemoteFile], folder: Path, bar: Callable[[str], Any], retries: int = 3) -> None:
    """Download the files into the folder, except those that it already has undamaged.

    A file is written under a temporary name and renamed when its digest is right, so files in the folder are complete.
    Each mirror is tried 1 + `retries` times. `bar(name)` makes a progress bar as pooch expects it, for each attempt.
    """
    missing = [file for file in files if not file.is_in(folder)]
    if missing:
        _require_writable(folder)
    for file in missing:
        failures = []
        for mirror in file.mirrors:
            if not (failure := _fetch(file, mirror, folder, bar, retries)):
                break
            failures.append(f"{mirror}: {failure}")
        else:
            raise BadInput(
                f"{file.name} could not be downloaded to {folder} ({'; '.join(failures)}): try again later; complete "
                "files are kept."
            )


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}): name another folder with --dir.") from None


def _fetch(file: RemoteFile, mirror: str, folder: Path, bar: Callable[[str], Any], retries: int) -> str:
    """Download a file from one mirror; return why it failed, or an empty string."""
    import pooch

    def attempt(url: str, output_file: str, source: object) -> None:
        headers = {"Accept-Encoding": "identity"}  # otherwise a server may decompress a .gz file
        once = pooch.HTTPDownloader(bar(file.name), chunk_size=1 << 16, timeout=_TIMEOUT_S, headers=headers)
        once(url, output_file, source)
        Path(output_file).chmod(0o644)  # temporary files are private; the final file is not

    pooch.get_logger().setLevel(logging.WARNING)
    source = pooch.create(folder, mirror, registry={file.name: f"md5:{file.md5}"}, retry_if_failed=retries)
    try:
        source.fetch(file.name, downloader=attempt)
    except OSError as error:  # errors of requests are OSErrors; some of them are also ValueErrors
        message = (error.strerror or str(error)).partition("\n")[0]  # without nested objects of network libraries
        return (
            f"{type(error).__name__}, {message[:117]}…" if len(message) > 117 else f"{type(error).__name__}, {message}"
        )
    except ValueError:  # pooch itself raises it only for a wrong digest
        return "the digest of the file is wrong"
    return ""


@dataclass(frozen=True)
class Holding:
    """Files of one data set on this machine: where, how large, and whether complete."""

    kind: str
    folder: Path
    state: str
    size_bytes: int

    def line(self) -> str:
        """One line of the output of `data list`."""
        size = f"{self.size_bytes / 1e6:.1f} MB" if self.size_bytes else ""
        return f"{self.kind:<14} {size:>9}  {self.folder}  {self.state}"


def inventory(parent: Path) -> list[Holding]:
    """State of all public data sets, each in a folder of its name; the digest of every file is computed."""
    return [_holding(kind, parent / kind) for kind in SOURCES]


def require_whole(data: DataTable) -> None:
    """Raise BadInput if `data.dir` holds a public data set that is incomplete; the digest of every file is computed."""
    if data.dir and data.kind in SOURCES and not _is_whole(data.kind, DataLocation.of(data).folder):
        raise BadInput(
            f'data.dir = "{data.dir}" does not hold all of {data.kind}, so its results cannot be stored: get it '
            f'with "python -m vefl_sim data get {data.kind}" and leave data.dir empty.'
        )


@cache
def _is_whole(kind: str, folder: Path) -> bool:
    return _holding(kind, folder).state.startswith("complete")


def _holding(kind: str, folder: Path) -> Holding:
    names = [file.name for file in SOURCES[kind]]
    is_compact = kind == "gtsrb" and not _present(folder, names) and bool(_present(folder, COMPACT))
    state = compact_state(folder) if is_compact else _state(SOURCES[kind], folder)
    present = _present(folder, COMPACT if is_compact else names)
    return Holding(kind, folder, state, sum((folder / name).stat().st_size for name in present))


def _present(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if (folder / name).is_file()]


def _state(files: Sequence[RemoteFile], folder: Path) -> str:
    names = [file.name for file in files]
    if not (present := _present(folder, names)):
        return "not there"
    if len(present) < len(names):
        return f"incomplete, without {', '.join(name for name in names if name not in present)}"
    if wrong := [file.name for file in files if not file.is_in(folder)]:
        return f"damaged, wrong digest of {', '.join(wrong)}"
    return "complete"


def compact_state(folder: Path) -> str:
    """Whether the compact zips of GTSRB are complete: their digests are not published, so images are counted and read.

    To read an image compares its checksum.
    """
    counts = []
    for name, pattern in zip(COMPACT, (TRAIN_IMAGE, COMPACT_TEST_IMAGE), strict=True):
        if not (folder / name).is_file():
            return f"incomplete, in compact form: without {name}"
        try:
            with Zip(folder / name) as archive:
                images = [image for image in archive.names() if pattern.fullmatch(image)]
                for image in images:
                    archive.read(image)
        except (Damaged, *UNREADABLE):
            return f"damaged, in compact form: {name} cannot be read"
        counts.append(len(images))
    published = [GTSRB.train_samples, GTSRB.test_samples]
    state = "complete" if counts == published else "incomplete"
    train, test = (f"{number} of {every}" for number, every in zip(counts, published, strict=True))
    return f"{state}, in compact form: {train} training and {test} test images"
