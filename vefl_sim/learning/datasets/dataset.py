"""Labelled images, as every source of data hands them over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Dataset:
    """A training and a test set. Images stay uint8 in memory; the learner scales them where it uses them."""

    name: str
    train_images: NDArray[np.uint8]  # [samples, height, width, channels]
    train_labels: NDArray[np.int32]  # [samples], 0 … classes − 1
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int32]
    classes: int
    train_groups: NDArray[np.int64] | None = None  # [samples]; samples of equal number stay with one CV

    def __post_init__(self) -> None:
        """A label or a group that has no image would be lost without a word."""
        for images, numbers in (
            (self.train_images, self.train_labels),
            (self.train_images, self.train_groups),
            (self.test_images, self.test_labels),
        ):
            if numbers is not None and len(numbers) != len(images):
                raise ValueError(f"{self.name} has {len(images)} images and {len(numbers)} labels or groups for them")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of one image."""
        _, height, width, channels = self.train_images.shape
        return height, width, channels

    @property
    def values_per_sample(self) -> int:
        """Numbers in one image, h·w·c; D_v counts `data.bits_per_value` bits for each."""
        return int(np.prod(self.image_shape))
