import numpy as np

from vefl_sim.learning.datasets.dataset import Dataset


def test_a_sample_has_height_times_width_times_channels_values() -> None:
    images, labels = np.zeros((3, 5, 7, 2), np.uint8), np.zeros(3, np.int32)
    dataset = Dataset("tiny", images, labels, images[:1], labels[:1], classes=4)
    assert dataset.image_shape == (5, 7, 2)
    assert dataset.values_per_sample == 70
