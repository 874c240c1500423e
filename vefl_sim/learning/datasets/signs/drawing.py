"""`signs`: traffic signs drawn by the program, so that a run needs no download.

Any number of images of any size, determined by the random generator. A linear model on the pixels stays
near an accuracy of 0.65 where the paper's CNN reaches 0.97 (10,000 images of 28 × 28).
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.learning.datasets.dataset import Dataset, empty_pictures
from vefl_sim.learning.datasets.kinds import DataKind
from vefl_sim.learning.datasets.signs.faces import FACES
from vefl_sim.learning.datasets.signs.photo import CHUNK, photograph


def signs(
    train_samples: int, test_samples: int, image_px: int, rng: np.random.Generator, *, unseen: bool = False
) -> Dataset:
    """Draw RGB images of the sixteen `FACES`; their numbers differ by at most one.

    Training and test set have separate random streams: the test set stays the same when `train_samples` changes.
    With `unseen` the labels are the same, and the images are left black.
    """
    _keep_freed_memory()
    train_rng, test_rng = rng.spawn(2)
    train = _draw(train_samples, image_px, train_rng, unseen)
    test = _draw(test_samples, image_px, test_rng, unseen)
    return Dataset("signs", *train, *test, classes=len(FACES), class_names=tuple(face.name for face in FACES))


def _draw(
    samples: int, image_px: int, rng: np.random.Generator, unseen: bool
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    labels = rng.permutation(np.arange(samples) % len(FACES)).astype(np.int32)
    images = empty_pictures(samples, image_px)
    if unseen:
        return images, labels
    for label, face in enumerate(FACES):
        members = np.flatnonzero(labels == label)
        for start in range(0, len(members), CHUNK):
            chunk = members[start : start + CHUNK]
            images[chunk] = photograph(face, len(chunk), image_px, rng)
    return images, labels


def _keep_freed_memory() -> None:
    """Free one large array, so that glibc keeps the many small ones freed later instead of unmapping them.

    Its thresholds adapt to the largest block seen freed; without this, page faults take more than half of the time.
    """
    np.empty(2**24, np.uint8)


def _signs(data: DataTable, rng: np.random.Generator, *, unseen: bool = False) -> Dataset:
    train, test = data.train_samples or SIGNS.train_samples, data.test_samples or SIGNS.test_samples
    return signs(train, test, data.image_px, rng, unseen=unseen)


SIGNS = DataKind(
    _signs,
    unused_keys=("data.dir", "data.horizon_s"),
    any_number=True,
    train_samples=12_000,
    test_samples=2_000,
    make_unseen=partial(_signs, unseen=True),
)
