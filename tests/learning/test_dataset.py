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
    with pytest.raises(ValueError, match="labels or groups for them"):
        Dataset("tiny", images, np.zeros(labels, np.int32), images[:1], np.zeros(test_labels, np.int32), 4, numbers)
