from typing import Any

import numpy as np
import pytest

from vefl_sim.learning.datasets.dataset import Dataset


def test_a_sample_has_height_times_width_times_channels_values() -> None:
    images, labels = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)
    dataset = Dataset("tiny", images, labels, images[:1], labels[:1], classes=4)
    assert dataset.input_shape == (5, 7, 2)
    assert dataset.values_per_sample == 70


@pytest.mark.parametrize(("labels", "groups", "test_targets"), [(2, 3, 1), (3, 2, 1), (3, 3, 0), (4, None, 1)])
def test_every_image_has_one_label_and_one_group(labels: int, groups: int | None, test_targets: int) -> None:
    images = np.zeros((3, 5, 7, 2), np.uint8)
    numbers = None if groups is None else np.zeros(groups, np.int64)
    with pytest.raises(ValueError, match=r"inputs and . (train_targets|train_groups|test_targets) for them"):
        Dataset("tiny", images, np.zeros(labels, np.int32), images[:1], np.zeros(test_targets, np.int32), 4, numbers)


IMAGES, LABELS = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"train_inputs": IMAGES[:, 0, 0, 0]}, r"train_inputs must be an array of numbers \[samples, …\]"),
        ({"train_inputs": IMAGES.astype(str)}, r"train_inputs must be an array of numbers \[samples, …\]"),
        ({"train_inputs": IMAGES.tolist()}, r"train_inputs must be an array of numbers \[samples, …\]"),
        ({"test_inputs": IMAGES / 255}, "training inputs of type uint8 and test inputs of float64"),
        ({"train_inputs": np.full(IMAGES.shape, np.nan)}, "train_inputs have values that are not finite"),
        ({"train_targets": LABELS / 2}, "train_targets must be integers"),
        ({"test_targets": LABELS[:, np.newaxis]}, "test_targets must be integers"),
        ({"test_targets": [0, 0, 0]}, "test_targets must be integers"),
        ({"train_targets": LABELS - 1}, "train_targets go from -1 to -1, but with 4 classes they must be in 0 … 3"),
        ({"test_targets": LABELS + 4}, "test_targets go from 4 to 4"),
        ({"test_inputs": IMAGES[:, 1:]}, r"different shapes, \(5, 7, 2\) and \(4, 7, 2\)"),
        ({"test_inputs": IMAGES[:0], "test_targets": LABELS[:0]}, "tiny has no test samples"),
        ({"train_inputs": IMAGES[:0], "train_targets": LABELS[:0]}, "tiny has no train samples"),
        ({"class_names": ("a", "b", "c")}, "class_names must be 4 texts"),
        ({"class_names": ("a", "b", "c", 4)}, "class_names must be 4 texts"),
    ],
)
def test_a_wrong_array_is_named_in_the_error(wrong: dict[str, Any], words: str) -> None:
    right = {"train_inputs": IMAGES, "train_targets": LABELS, "test_inputs": IMAGES, "test_targets": LABELS}
    Dataset("tiny", **right, classes=4, class_names=("a", "b", "c", "d"))
    with pytest.raises(ValueError, match=words):
        Dataset("tiny", **(right | wrong), classes=4)


NUMBERS = np.arange(6, dtype=np.float32).reshape(3, 2)
REGRESSION = {"train_inputs": NUMBERS, "train_targets": NUMBERS, "test_inputs": NUMBERS, "test_targets": NUMBERS}


def test_without_classes_targets_are_numbers_of_any_shape() -> None:
    assert Dataset("tiny", **REGRESSION).outputs == 2
    assert Dataset("tiny", NUMBERS, NUMBERS[:, 0], NUMBERS, NUMBERS[:, 0]).outputs == 1
    assert Dataset("tiny", IMAGES, LABELS, IMAGES, LABELS, classes=4).outputs == 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"train_inputs": np.full((3, 2), 2**40)}, "train_inputs have integers of more than 32 bits"),
        (
            {"train_targets": LABELS},
            r"train_targets are integers: name the number of classes \(classes=…\), or convert",
        ),
        ({"test_targets": NUMBERS * np.nan}, "test_targets have values that are not finite"),
        ({"test_targets": NUMBERS[:, :1]}, r"training and test targets of different shapes, \(2,\) and \(1,\)"),
        ({"train_targets": NUMBERS[1:]}, "3 inputs and 2 train_targets"),
        ({"train_vehicles": LABELS[1:]}, "3 inputs and 2 train_vehicles"),
        ({"class_names": ("a",)}, "class_names must be no texts"),
    ],
)
def test_a_wrong_array_of_a_regression_is_named_in_the_error(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Dataset("tiny", **(REGRESSION | wrong))
