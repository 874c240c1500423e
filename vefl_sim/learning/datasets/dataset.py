"""Samples with their targets, in the form that every source of data returns."""

from collections.abc import Iterator
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
    train_vehicles: NDArray[np.int64] | None = None  # [samples], the recorder of each; for `data.partition = "own"`

    def __post_init__(self) -> None:
        """Refuse a wrong user-defined data set here, before it causes a bad accuracy or errors in the learner."""
        if fault := next(self._faults(), None):
            raise ValueError(f"{self.name}: {fault}")

    def _faults(self) -> Iterator[str]:
        """What is wrong, as clauses; each check relies on those before it."""
        for split, inputs, targets in (
            ("train", self.train_inputs, self.train_targets), ("test", self.test_inputs, self.test_targets),
        ):  # fmt: skip
            if not _is_array(inputs, "fiub") or inputs.ndim < 2:
                yield f"{split}_inputs must be an array of numbers [samples, …]"
            if not _all_finite(inputs):
                yield f"{split}_inputs have values that are not finite"
            large = inputs.dtype.kind in "iu" and inputs.dtype.itemsize >= 4 and inputs.size
            if large and (inputs.min() < -(2**31) or inputs.max() >= 2**31):
                yield f"{split}_inputs have integers of more than 32 bits, which JAX does not hold"
            yield from self._faults_of_targets(split, targets)
            if len(targets) != len(inputs):
                yield f"there are {len(inputs)} inputs and {len(targets)} {split}_targets for them"
            if not len(targets):
                yield f"there are no {split} samples"
        for what, train, test in (
            ("inputs", self.train_inputs, self.test_inputs), ("targets", self.train_targets, self.test_targets),
        ):  # fmt: skip
            if train.shape[1:] != test.shape[1:]:
                yield f"training and test {what} have different shapes, {train.shape[1:]} and {test.shape[1:]}"
        if self.train_inputs.dtype != self.test_inputs.dtype:
            yield f"training inputs are of type {self.train_inputs.dtype} and test inputs of {self.test_inputs.dtype}"
        for key, numbers in (("train_groups", self.train_groups), ("train_vehicles", self.train_vehicles)):
            if numbers is not None and len(numbers) != len(self.train_inputs):
                yield f"there are {len(self.train_inputs)} inputs and {len(numbers)} {key} for them"
        names = self.class_names
        if names is not None and (len(names) != self.classes or not all(isinstance(name, str) for name in names)):
            yield f"class_names must be {self.classes or 'no'} texts, one for each class"

    def _faults_of_targets(self, split: str, targets: Targets) -> Iterator[str]:
        if self.classes is None:
            if not _is_array(targets, "fiu"):
                yield f"{split}_targets must be an array of numbers [samples, …]"
            if targets.dtype.kind in "iu" and targets.ndim == 1:
                yield (
                    f"{split}_targets are integers: name the number of classes (classes=…), or convert them to floats "
                    "if they are numbers to be predicted"
                )
            if not _all_finite(targets):
                yield f"{split}_targets have values that are not finite"
            return
        if not _is_array(targets, "iu") or targets.ndim > 1:
            yield f"{split}_targets must be integers [samples], because there are classes"
        if len(targets) and (targets.min() < 0 or targets.max() >= self.classes):
            yield (
                f"{split}_targets go from {targets.min()} to {targets.max()}, but with {self.classes} classes they "
                f"must be in 0 … {self.classes - 1}"
            )

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


def _is_array(value: object, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim >= 1 and value.dtype.kind in kinds


def _all_finite(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())
