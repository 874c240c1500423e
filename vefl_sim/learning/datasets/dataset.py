"""Labelled images in the form that every source of data returns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.memory import require_memory


@dataclass(frozen=True)
class Dataset:
    """A training and a test set. Images stay uint8 in memory; the learner scales them where it uses them."""

    name: str
    train_images: NDArray[np.uint8]  # [samples, height, width, channels]
    train_labels: NDArray[np.int32]  # [samples], 0 … classes − 1
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int32]
    classes: int
    train_groups: NDArray[np.int64] | None = None  # [samples], group of each; a group stays with one CV
    class_names: tuple[str, ...] | None = None  # one for each class

    def __post_init__(self) -> None:
        """Refuse a wrong user-defined data set here, before it causes a bad accuracy or errors in the learner."""
        self._check_split("train", self.train_images, self.train_labels)
        self._check_split("test", self.test_images, self.test_labels)
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            shapes = f"{self.train_images.shape[1:]} and {self.test_images.shape[1:]}"
            raise ValueError(f"{self.name} has training and test images of different shapes, {shapes}")
        if self.train_groups is not None:
            self._check_length("train_groups", self.train_groups, self.train_images)
        names = self.class_names
        if names is not None and (len(names) != self.classes or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"{self.name}: class_names must be {self.classes} texts, one for each class")

    def _check_split(self, split: str, images: NDArray[np.uint8], labels: NDArray[np.int32]) -> None:
        if not _has_axes(images, 4) or images.dtype != np.uint8:
            raise ValueError(f"{self.name}: {split}_images must be uint8 [samples, height, width, channels]")
        if not _has_axes(labels, 1) or labels.dtype.kind not in "iu":
            raise ValueError(f"{self.name}: {split}_labels must be integers [samples]")
        self._check_length(f"{split}_labels", labels, images)
        if not len(labels):
            raise ValueError(f"{self.name} has no {split} samples")
        if labels.min() < 0 or labels.max() >= self.classes:
            raise ValueError(
                f"{self.name}: {split}_labels go from {labels.min()} to {labels.max()}, but with {self.classes} "
                f"classes they must be in 0 … {self.classes - 1}"
            )

    def _check_length(self, key: str, numbers: NDArray[np.integer], images: NDArray[np.uint8]) -> None:
        """Refuse labels or groups without an image, which would otherwise be ignored silently."""
        if len(numbers) != len(images):
            raise ValueError(f"{self.name} has {len(images)} images and {len(numbers)} {key} for them")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of one image."""
        _, height, width, channels = self.train_images.shape
        return height, width, channels

    @property
    def values_per_sample(self) -> int:
        """Numbers in one image, h·w·c; D_v counts `data.bits_per_value` bits for each."""
        return int(np.prod(self.image_shape))


def empty_pictures(samples: int, image_px: int) -> NDArray[np.uint8]:
    """An array for RGB pictures, [samples, image_px, image_px, 3]; BadInput if they need more memory than there is."""
    shape = (samples, image_px, image_px, 3)
    require_memory(
        2 * np.prod(shape, dtype=np.float64),  # the learner copies them
        f"{samples} pictures of {image_px} × {image_px} pixels",
        "lower data.train_samples, data.test_samples or data.image_px",
    )
    return np.empty(shape, np.uint8)


def _has_axes(value: object, axes: int) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == axes
