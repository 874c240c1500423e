"""Samples with their targets, in the form that every source of data returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.memory import require_memory

Inputs = NDArray[Any]
"""[samples, …]: uint8 are pixels, which the learner scales where it uses them; other numbers are used as they are."""
Targets = NDArray[Any]
"""[samples] class numbers 0 … classes − 1, or [samples, …] numbers to be predicted."""


@dataclass(frozen=True)
class Dataset:
    """A training and a test set. With `classes` it is a classification, without a regression."""

    name: str
    train_inputs: Inputs
    train_targets: Targets
    test_inputs: Inputs
    test_targets: Targets
    classes: int | None = None  # None: targets are numbers
    train_groups: NDArray[np.int64] | None = None  # [samples], group of each; a group stays with one CV
    class_names: tuple[str, ...] | None = None  # one for each class
    train_vehicles: NDArray[np.int64] | None = (
        None  # [samples], vehicle that recorded each; for `data.partition = "own"`
    )

    def __post_init__(self) -> None:
        """Refuse a wrong user-defined data set here, before it causes a bad accuracy or errors in the learner."""
        for split, inputs, targets in self._splits():
            self._check_inputs(split, inputs)
            (self._check_numbers if self.classes is None else self._check_labels)(split, targets)
            self._check_length(f"{split}_targets", targets, inputs)
            if not len(targets):
                raise ValueError(f"{self.name} has no {split} samples")
        self._check_same("inputs", self.train_inputs, self.test_inputs)
        self._check_same("targets", self.train_targets, self.test_targets)
        for key, numbers in (("train_groups", self.train_groups), ("train_vehicles", self.train_vehicles)):
            if numbers is not None:
                self._check_length(key, numbers, self.train_inputs)
        names = self.class_names
        if names is not None and (len(names) != self.classes or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"{self.name}: class_names must be {self.classes or 'no'} texts, one for each class")

    def _splits(self) -> tuple[tuple[str, Inputs, Targets], ...]:
        return ("train", self.train_inputs, self.train_targets), ("test", self.test_inputs, self.test_targets)

    def _check_inputs(self, split: str, inputs: Inputs) -> None:
        if not _has_axes(inputs, 2) or inputs.dtype.kind not in "fiub":
            raise ValueError(f"{self.name}: {split}_inputs must be an array of numbers [samples, …]")
        if not _all_finite(inputs):
            raise ValueError(f"{self.name}: {split}_inputs have values that are not finite")
        large = inputs.dtype.kind in "iu" and inputs.dtype.itemsize >= 4 and inputs.size
        if large and (inputs.min() < -(2**31) or inputs.max() >= 2**31):
            raise ValueError(f"{self.name}: {split}_inputs have integers of more than 32 bits, which JAX does not hold")

    def _check_labels(self, split: str, labels: Targets) -> None:
        if not _has_axes(labels, 1) or labels.ndim > 1 or labels.dtype.kind not in "iu":
            raise ValueError(f"{self.name}: {split}_targets must be integers [samples], because there are classes")
        if len(labels) and (labels.min() < 0 or labels.max() >= self.classes):
            raise ValueError(
                f"{self.name}: {split}_targets go from {labels.min()} to {labels.max()}, but with {self.classes} "
                f"classes they must be in 0 … {self.classes and self.classes - 1}"
            )

    def _check_numbers(self, split: str, numbers: Targets) -> None:
        if not _has_axes(numbers, 1) or numbers.dtype.kind not in "fiu":
            raise ValueError(f"{self.name}: {split}_targets must be an array of numbers [samples, …]")
        if numbers.dtype.kind in "iu" and numbers.ndim == 1:
            raise ValueError(
                f"{self.name}: {split}_targets are integers: name the number of classes (classes=…), or convert them "
                "to floats if they are numbers to be predicted"
            )
        if not _all_finite(numbers):
            raise ValueError(f"{self.name}: {split}_targets have values that are not finite")

    def _check_same(self, what: str, train: NDArray[Any], test: NDArray[Any]) -> None:
        if train.shape[1:] != test.shape[1:]:
            raise ValueError(
                f"{self.name} has training and test {what} of different shapes, {train.shape[1:]} and {test.shape[1:]}"
            )
        if what == "inputs" and train.dtype != test.dtype:
            raise ValueError(f"{self.name} has training {what} of type {train.dtype} and test {what} of {test.dtype}")

    def _check_length(self, key: str, numbers: NDArray[Any], inputs: Inputs) -> None:
        """Refuse targets or groups without an input, which would otherwise be ignored silently."""
        if len(numbers) != len(inputs):
            raise ValueError(f"{self.name} has {len(inputs)} inputs and {len(numbers)} {key} for them")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, such as height, width and channels of an image."""
        return self.train_inputs.shape[1:]

    @property
    def outputs(self) -> int:
        """Number of outputs that a network needs: one per class, or one per number of a target."""
        return self.classes if self.classes is not None else int(np.prod(self.train_targets.shape[1:]))

    @property
    def values_per_sample(self) -> int:
        """Numbers in one input, for example h·w·c; D_v counts `data.bits_per_value` bits for each."""
        return int(np.prod(self.input_shape))


def empty_pictures(samples: int, image_px: int) -> NDArray[np.uint8]:
    """Black RGB pictures, [samples, image_px, image_px, 3]; BadInput if they need more memory than there is.

    The system gives memory only to those that are written or copied.
    """
    shape = (samples, image_px, image_px, 3)
    require_memory(
        2 * np.prod(shape, dtype=np.float64),  # the learner copies them
        f"{samples} pictures of {image_px} × {image_px} pixels",
        "lower data.train_samples, data.test_samples or data.image_px",
    )
    return np.zeros(shape, np.uint8)


def _has_axes(value: object, least: int) -> bool:
    return isinstance(value, np.ndarray) and value.ndim >= least


def _all_finite(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())
