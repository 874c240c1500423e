"""The files of the public data sets: names, digests and download addresses."""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vefl_sim.core.errors import VeflWarning
from vefl_sim.learning.datasets.files.location import UNREADABLE, Damaged
from vefl_sim.learning.datasets.files.tar_members import members


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
        digests = {name: hashlib.md5(content).hexdigest() for name, content in members(path, self.inside)}
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
