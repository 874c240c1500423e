"""The public data sets: their files, how they are downloaded, and whether a folder holds a complete one."""

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

from vefl_sim.core.errors import BadInput, VeflWarning, first_line
from vefl_sim.core.files import ensure_writable
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.learning.datasets.files import UNREADABLE, Damaged, DataLocation, tar_members

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
            if _md5(path) == self.md5:
                return True
            members = tar_members(path, self.inside) if self.inside else {}
        except (Damaged, *UNREADABLE):  # a file that cannot be read counts as missing
            return False
        digests = {name: hashlib.md5(content).hexdigest() for name, content in members.items()}
        return bool(members) and digests == self.inside


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
    if kind not in SOURCES:
        raise BadInput(f"data get {kind}: there is no such data set to download; choose one of {', '.join(SOURCES)}.")
    return SOURCES[kind]


_COMPACT = _files(
    (),
    {
        "gtsrb-32x32-train-jpeg.zip": "7faeed8e91f6305aedc4437ae7ed68cf",
        "gtsrb-32x32-test-jpeg.zip": "d9fa93b555d52914c910002bc954f724",
    },
)
"""The images of GTSRB as small JPEG, for developers; `data get` downloads the official zips."""

Shown = Callable[[str, int | None], Callable[[int], None]]
"""`shown(name, size)`: shows an attempt to download so many bytes; what it returns is called with those received."""


def download(files: Sequence[RemoteFile], folder: Path, shown: Shown, retries: int = 3) -> None:
    """Download the files into the folder, except those that it already has undamaged.

    A file is written under a temporary name and renamed when its digest is right, so files in the folder are complete.
    Each mirror is tried 1 + `retries` times.
    """
    missing = [file for file in files if not file.is_in(folder)]
    if missing and not ensure_writable(folder):
        raise BadInput(f"{folder} cannot be written: name another folder with --dir.")
    for file in missing:
        failures = {}
        for mirror, attempt in product(file.mirrors, range(1 + retries)):
            time.sleep(min(attempt, 10))
            if not (failure := _fetch(file, mirror, folder, shown)):
                break
            failures[mirror] = f"{mirror}: {failure}"
        else:
            raise BadInput(
                f"{file.name} could not be downloaded to {folder} ({'; '.join(failures.values())}): try again later; "
                "complete files are kept."
            )


def _fetch(file: RemoteFile, mirror: str, folder: Path, shown: Shown) -> str:
    """Download a file from one mirror; return why it failed, or an empty string."""
    import requests

    identity = {"Accept-Encoding": "identity"}  # otherwise a server may decompress a .gz file
    part = folder / f".{file.name}.part"
    try:
        with requests.get(mirror + file.name, headers=identity, stream=True, timeout=_TIMEOUT_S) as response:
            response.raise_for_status()
            size = response.headers.get("Content-Length", "")
            received = shown(file.name, int(size) if size.isdecimal() else None)
            with part.open("wb") as out:
                for chunk in response.iter_content(1 << 16):
                    out.write(chunk)
                    received(len(chunk))
        if _md5(part) != file.md5:
            return "the digest of the file is wrong"
        part.replace(folder / file.name)
    except OSError as error:  # errors of requests are OSErrors
        return f"{type(error).__name__}, {first_line(error)[:120]}"  # without nested objects of network libraries
    finally:
        part.unlink(missing_ok=True)
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
    files, form = SOURCES[kind], ""
    if kind == "gtsrb" and not _present(folder, files) and _present(folder, _COMPACT):
        files, form = _COMPACT, ", in compact form"
    present, state = _present(folder, files), "complete"
    if not present:
        state = "not there"
    elif len(present) < len(files):
        state = f"incomplete, without {', '.join(file.name for file in files if file not in present)}"
    elif wrong := [file.name for file in files if not file.is_in(folder)]:
        state = f"damaged, wrong digest of {', '.join(wrong)}"
    return Holding(kind, folder, state + form, sum((folder / file.name).stat().st_size for file in present))


def _present(folder: Path, files: Sequence[RemoteFile]) -> list[RemoteFile]:
    return [file for file in files if (folder / file.name).is_file()]
