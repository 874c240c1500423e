"""A data set refuses arrays that do not fit; a validation set is taken from its training samples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import held_out

IMAGES, LABELS = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)
NUMBERS = np.arange(6, dtype=np.float32).reshape(3, 2)
REGRESSION = {"train_inputs": NUMBERS, "train_targets": NUMBERS, "test_inputs": NUMBERS, "test_targets": NUMBERS}
CLASSES = {"train_inputs": IMAGES, "train_targets": LABELS, "test_inputs": IMAGES, "test_targets": LABELS, "classes": 4}


def test_there_is_an_output_per_class_or_per_number_of_a_target() -> None:
    assert Dataset("tiny", **CLASSES, class_names=tuple("abcd")).outputs == 4
    assert Dataset("tiny", **REGRESSION).outputs == 2
    assert Dataset("tiny", NUMBERS, NUMBERS[:, 0], NUMBERS, NUMBERS[:, 0]).outputs == 1


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (CLASSES, {"train_inputs": IMAGES[:, 0, 0, 0]}, r"train_inputs must be an array of numbers \[samples, …\]"),
        (CLASSES, {"train_inputs": IMAGES.tolist()}, r"train_inputs must be an array of numbers \[samples, …\]"),
        (CLASSES, {"test_inputs": IMAGES / 255}, "training inputs are of type uint8 and test inputs of float64"),
        (CLASSES, {"train_inputs": np.full(IMAGES.shape, np.nan)}, "train_inputs have values that are not finite"),
        (CLASSES, {"train_targets": LABELS / 2}, "train_targets must be integers"),
        (CLASSES, {"test_targets": LABELS[:, np.newaxis]}, "test_targets must be integers"),
        (CLASSES, {"train_targets": LABELS - 1}, "go from -1 to -1, but with 4 classes they must be in 0 … 3"),
        (CLASSES, {"test_inputs": IMAGES[:, 1:]}, r"different shapes, \(5, 7, 2\) and \(4, 7, 2\)"),
        (CLASSES, {"train_groups": LABELS[1:]}, "3 inputs and 2 train_groups"),
        (CLASSES, {"test_inputs": IMAGES[:0], "test_targets": LABELS[:0]}, "there are no test samples"),
        (CLASSES, {"class_names": ("a", "b", "c", 4)}, "class_names must be 4 texts"),
        (REGRESSION, {"train_inputs": np.full((3, 2), 2**40)}, "train_inputs have integers of more than 32 bits"),
        (REGRESSION, {"train_targets": LABELS}, r"are integers: name the number of classes \(classes=…\), or convert"),
        (REGRESSION, {"test_targets": NUMBERS * np.nan}, "test_targets have values that are not finite"),
        (REGRESSION, {"test_targets": NUMBERS[:, :1]}, r"targets have different shapes, \(2,\) and \(1,\)"),
        (REGRESSION, {"train_targets": NUMBERS[1:]}, "3 inputs and 2 train_targets"),
        (REGRESSION, {"class_names": ("a",)}, "class_names must be no texts"),
    ],
)
def test_a_wrong_array_is_named_in_the_error(right: dict[str, Any], wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Dataset("tiny", **(right | wrong))


def numbered(samples: int, groups: np.ndarray | None = None) -> Dataset:
    """Images that hold their own number; those of the test set hold 255."""
    images = np.arange(samples, dtype=np.uint8)[:, None, None, None]
    labels = (np.arange(samples) % 3).astype(np.int32)
    return Dataset("numbered", images, labels, np.full_like(images, 255), labels, 3, groups)


@given(st.integers(2, 200), st.data())
def test_every_sample_is_in_either_training_or_validation_set(samples: int, data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, samples - 1))
    dataset = held_out(numbered(samples), wanted, np.random.default_rng(data.draw(st.integers(0, 99))))
    train, validation = dataset.train_inputs.ravel(), dataset.test_inputs.ravel()
    assert len(validation) == wanted
    assert sorted([*train, *validation]) == list(range(samples))
    assert np.array_equal(dataset.test_targets, validation % 3)
    assert np.array_equal(dataset.train_targets, train % 3)
    with pytest.raises(ExperimentError, match=rf"validation_samples = {samples} leaves none of the {samples} samples"):
        held_out(numbered(samples), samples, np.random.default_rng(1))


@given(st.lists(st.integers(0, 9), min_size=30, max_size=100), st.integers(1, 10))
def test_groups_stay_whole(groups: list[int], wanted: int) -> None:
    numbers = np.array(groups)
    assume(len(set(groups)) >= 5 and np.bincount(numbers).max() <= 15)
    dataset = held_out(numbered(len(groups), numbers), wanted, np.random.default_rng(1))
    out = set(numbers[dataset.test_inputs.ravel()].tolist())
    assert dataset.train_groups is not None
    assert not out & set(dataset.train_groups.tolist())
    assert len(dataset.test_inputs) >= wanted
