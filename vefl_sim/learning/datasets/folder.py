"""`folder`: user-defined images, as `<split>/<class>/<image>` in a folder or a zip; splits are train and test.

Classes are numbered in the order of their names. Both splits may lie in one more folder, as in many zips.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import DataTable, Experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import (
    SUFFIXES,
    Damaged,
    DataLocation,
    Folder,
    Zip,
    errors_as_sentence,
    read_pictures,
)
from vefl_sim.learning.datasets.kinds import DataKind, Subsets

_SPLITS = ("train", "test")


def folder(data: DataTable, rng: np.random.Generator) -> Dataset:
    """Read the images in the folder or zip that `data.dir` names."""
    location, subsets = DataLocation.of(data), Subsets(data, rng)
    path = location.folder
    if not os.path.exists(path):  # also False if there can be no such path
        raise ExperimentError(f"data.dir = {str(path)!r}: there is no such folder or zip.")
    with errors_as_sentence(path, "correct it"), nullcontext(Folder(path)) if path.is_dir() else Zip(path) as archive:
        train, test = _labelled([name for name in archive.names() if name.lower().endswith(SUFFIXES)])
        classes = sorted({label for label, _ in train})
        if unknown := {label for label, _ in test} - set(classes):
            raise Damaged(f"has a class {min(unknown)} in test that is not in train")
        train = [train[number] for number in subsets.train(len(train))]
        test = [test[number] for number in subsets.test(len(test))]
        inputs = [read_pictures(archive, [name for _, name in images], data.image_px) for images in (train, test)]
    targets = [np.array([classes.index(label) for label, _ in images], np.int32) for images in (train, test)]
    return Dataset("folder", inputs[0], targets[0], inputs[1], targets[1], len(classes), class_names=tuple(classes))


def _labelled(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Class and name of each image of the training set, and of the test set."""
    tops = {name.split("/")[0] for name in names}
    depth = 0 if tops & set(_SPLITS) or len(tops) != 1 else 1
    images: dict[str, list[tuple[str, str]]] = {split: [] for split in _SPLITS}
    for name in names:
        parts = name.split("/")[depth:]
        if len(parts) != 3 or parts[0] not in _SPLITS:
            raise Damaged(f"has an image {name}, which is not at train/<class>/<image> or test/<class>/<image>")
        images[parts[0]].append((parts[1], name))
    if empty := [split for split in _SPLITS if not images[split]]:
        raise Damaged(f"has no images at {empty[0]}/<class>/<image>")
    return [images[split] for split in _SPLITS]


def _contradictions(experiment: Experiment) -> Iterator[str]:
    if not experiment.data.dir:
        yield 'data.kind = "folder" needs data.dir: name a folder, or a .zip, of train/<class>/<image> and test/….'


FOLDER = DataKind(folder, unused_keys=("data.horizon_s",), contradictions=_contradictions, own_files=True)
