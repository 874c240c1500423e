"""A validation set is taken from the training samples, and the test set is not used."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.subset import held_out


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


@given(st.lists(st.integers(0, 9), min_size=30, max_size=100), st.integers(1, 10))
def test_groups_stay_whole(groups: list[int], wanted: int) -> None:
    numbers = np.array(groups)
    assume(len(set(groups)) >= 5 and np.bincount(numbers).max() <= 15)
    dataset = held_out(numbered(len(groups), numbers), wanted, np.random.default_rng(1))
    out = set(numbers[dataset.test_inputs.ravel()].tolist())
    assert dataset.train_groups is not None
    assert not out & set(dataset.train_groups.tolist())
    assert len(dataset.test_inputs) >= wanted


def test_holding_out_all_samples_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"data\.validation_samples = 10 leaves none of the 10 samples"):
        held_out(numbered(10), 10, np.random.default_rng(1))
