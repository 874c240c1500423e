"""User-defined parts for examples worked out by hand: cars on given paths, data and a model of known size."""

from collections.abc import Callable

import flax.linen as nn
import numpy as np

from vefl_sim.core.clock import to_ns
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.mobility.scene import Scene

Path = Callable[[float], tuple[float, float] | None]  # seconds -> position in metres; None while the car is absent


class ScriptedCars:
    """Cars with the numbers 1, 2, … on given paths."""

    paths: tuple[Path, ...] = ()

    def __init__(self, experiment: Experiment, streams: Streams) -> None:
        self.step_ns = to_ns(experiment.mobility.step_s)
        self._steps = 0

    def scene(self) -> Scene:
        time_ns = self._steps * self.step_ns
        positions = [(number, path(time_ns / 1e9)) for number, path in enumerate(self.paths, start=1)]
        present = [(number, *position) for number, position in positions if position is not None]
        rows = np.array(present, dtype=np.float64).reshape(-1, 3)
        count = len(rows)
        return Scene(
            time_ns, rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], np.zeros(count), np.ones(count, np.bool_)
        )

    def advance(self) -> Scene:
        self._steps += 1
        return self.scene()


class ThreeCars(ScriptedCars):
    """The golden example: one parked car, one that drives off after a second, one that leaves coverage at 2/3 s."""

    paths = (
        lambda s: (100.0, 0.0),
        lambda s: (0.0, 100.0 + 100.0 * max(0.0, s - 1.0)),
        lambda s: (480.0 + 30.0 * s, 0.0),
    )


class OneArrives(ScriptedCars):
    """Two parked cars, and one whose trip ends 480 m from the gNB; it is missing from the scene at 0.6 s."""

    paths = (
        lambda s: (100.0, 0.0),
        lambda s: (0.0, 100.0),
        lambda s: (480.0, 0.0) if s < 0.55 else None,
    )


class OneComesIn(ScriptedCars):
    """The golden example without rounds: two parked cars, and one that enters coverage at 0.6 s."""

    paths = (
        lambda s: (100.0, 0.0),
        lambda s: (0.0, 190.0),
        lambda s: (518.0 - 30.0 * s, 0.0),
    )


def sixty_samples(experiment: Experiment, streams: Streams) -> Dataset:
    """60 training images of 10×10 in one class: 20 for each of three cars if the minimum is 20."""
    return Dataset(
        name="sixty",
        train_inputs=np.zeros((60, 10, 10, 1), np.uint8),
        train_targets=np.zeros(60, np.int32),
        test_inputs=np.zeros((10, 10, 10, 1), np.uint8),
        test_targets=np.zeros(10, np.int32),
        classes=10,
    )


class _ThousandWeights(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, images):  # type: ignore[no-untyped-def]
        return nn.Dense(self.classes, use_bias=False)(images.reshape(len(images), -1))


def thousand_weights(classes: int) -> nn.Module:
    """A linear model with 10 × 10 × 10 = 1000 parameters."""
    return _ThousandWeights(classes)


def sixty_numbers(experiment: Experiment, streams: Streams) -> Dataset:
    """The same images, each with a number to be predicted."""
    return Dataset(
        name="sixty numbers",
        train_inputs=np.zeros((60, 10, 10, 1), np.uint8),
        train_targets=np.linspace(0.0, 1.0, 60, dtype=np.float32)[:, None],
        test_inputs=np.zeros((10, 10, 10, 1), np.uint8),
        test_targets=np.ones((10, 1), np.float32),
    )
