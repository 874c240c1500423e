"""`folder`: user-defined images, as `<split>/<class>/<image>` in a folder or a zip; splits are train and test.

Classes are numbered in the order of their names. Both splits may lie in one more folder, as in many zips.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files.archive import Folder, Zip
from vefl_sim.learning.datasets.files.location import Damaged, DataLocation, errors_as_sentence
from vefl_sim.learning.datasets.files.picture import SUFFIXES, read_pictures
from vefl_sim.learning.datasets.kinds import DataKind, from_files
from vefl_sim.learning.datasets.subset import Subsets

_SPLITS = ("train", "test")


class ImageFile(NamedTuple):
    """An image file, with the split and the class that its path names."""

    split: str
    label: str
    name: str


def folder(location: DataLocation, subsets: Subsets, image_px: int) -> Dataset:
    """Read the images in the folder or zip that `data.dir` names."""
    path = location.folder
    if not path.exists():
        raise ExperimentError(f"data.dir = {str(path)!r}: there is no such folder or zip.")
    with errors_as_sentence(path, "correct it"), Folder(path) if path.is_dir() else Zip(path) as archive:
        entries = _entries([name for name in archive.names() if name.lower().endswith(SUFFIXES)])
        _require_images(archive.folders(), entries)
        train, test = (_members(entries, split) for split in _SPLITS)
        classes = sorted({entry.label for entry in train})
        if unknown := {entry.label for entry in test} - set(classes):
            raise Damaged(f"has a class {min(unknown)} in test that is not in train")
        number_of = {label: number for number, label in enumerate(classes)}
        train = [train[number] for number in subsets.train(len(train))]
        test = [test[number] for number in subsets.test(len(test))]
        return Dataset(
            "folder",
            read_pictures(archive, [entry.name for entry in train], image_px),
            np.array([number_of[entry.label] for entry in train], np.int32),
            read_pictures(archive, [entry.name for entry in test], image_px),
            np.array([number_of[entry.label] for entry in test], np.int32),
            classes=len(classes),
            class_names=tuple(classes),
        )


def _require_images(folders: Sequence[str], entries: Sequence[ImageFile]) -> None:
    """Refuse a class folder without images: to count it as a class or to ignore it could both be wrong."""
    filled = {str(PurePosixPath(entry.name).parent) for entry in entries}
    depth = max((name.count("/") for name in filled), default=1)
    for name in folders:
        parts = name.split("/")
        if len(parts) == depth + 1 and parts[-2] in _SPLITS and name not in filled:
            raise Damaged(f"has a class folder {name} without images (files that end with {', '.join(SUFFIXES)})")


def _members(entries: Sequence[ImageFile], split: str) -> list[ImageFile]:
    members = [entry for entry in entries if entry.split == split]
    if not members:
        raise Damaged(f"has no images at {split}/<class>/<image>")
    return members


def _entries(names: Sequence[str]) -> list[ImageFile]:
    tops = {name.split("/")[0] for name in names}
    depth = 0 if tops & set(_SPLITS) or len(tops) != 1 else 1
    entries = []
    for name in names:
        parts = name.split("/")[depth:]
        if len(parts) != 3 or parts[0] not in _SPLITS:
            raise Damaged(f"has an image {name}, which is not at train/<class>/<image> or test/<class>/<image>")
        entries.append(ImageFile(parts[0], parts[1], name))
    return entries


def _contradictions(experiment: Experiment) -> Iterator[str]:
    if not experiment.data.dir:
        yield 'data.kind = "folder" needs data.dir: name a folder, or a .zip, of train/<class>/<image> and test/….'


FOLDER = DataKind(
    from_files(folder, "image_px"), unused_keys=("data.horizon_s",), contradictions=_contradictions, own_files=True
)
