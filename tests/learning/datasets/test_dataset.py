from typing import Any

import numpy as np
import pytest

from vefl_sim.learning.datasets.dataset import Dataset


def test_a_sample_has_height_times_width_times_channels_values() -> None:
    images, labels = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)
    dataset = Dataset("tiny", images, labels, images[:1], labels[:1], classes=4)
    assert dataset.image_shape == (5, 7, 2)
    assert dataset.values_per_sample == 70


@pytest.mark.parametrize(("labels", "groups", "test_labels"), [(2, 3, 1), (3, 2, 1), (3, 3, 0), (4, None, 1)])
def test_every_image_has_one_label_and_one_group(labels: int, groups: int | None, test_labels: int) -> None:
    images = np.zeros((3, 5, 7, 2), np.uint8)
    numbers = None if groups is None else np.zeros(groups, np.int64)
    with pytest.raises(ValueError, match=r"images and . (train_labels|train_groups|test_labels) for them"):
        Dataset("tiny", images, np.zeros(labels, np.int32), images[:1], np.zeros(test_labels, np.int32), 4, numbers)


IMAGES, LABELS = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"train_images": IMAGES[..., 0]}, r"train_images must be uint8 \[samples, height, width, channels\]"),
        ({"test_images": IMAGES / 255}, r"test_images must be uint8 \[samples, height, width, channels\]"),
        ({"train_labels": LABELS / 2}, "train_labels must be integers"),
        ({"test_labels": LABELS[:, np.newaxis]}, "test_labels must be integers"),
        ({"test_labels": [0, 0, 0]}, "test_labels must be integers"),
        ({"train_labels": LABELS - 1}, "train_labels go from -1 to -1, but with 4 classes they must be in 0 … 3"),
        ({"test_labels": LABELS + 4}, "test_labels go from 4 to 4"),
        ({"test_images": IMAGES[:, 1:]}, r"different shapes, \(5, 7, 2\) and \(4, 7, 2\)"),
        ({"test_images": IMAGES[:0], "test_labels": LABELS[:0]}, "tiny has no test samples"),
        ({"train_images": IMAGES[:0], "train_labels": LABELS[:0]}, "tiny has no train samples"),
        ({"class_names": ("a", "b", "c")}, "class_names must be 4 texts"),
        ({"class_names": ("a", "b", "c", 4)}, "class_names must be 4 texts"),
    ],
)
def test_a_wrong_array_is_named_in_the_error(wrong: dict[str, Any], words: str) -> None:
    right = {"train_images": IMAGES, "train_labels": LABELS, "test_images": IMAGES, "test_labels": LABELS}
    Dataset("tiny", **right, classes=4, class_names=("a", "b", "c", "d"))
    with pytest.raises(ValueError, match=words):
        Dataset("tiny", **(right | wrong), classes=4)
