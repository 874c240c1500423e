"""What the rest of the simulator asks of machine learning. Importing this file does not import JAX."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Model = Any
"""Parameters of a network: a pytree of arrays, or None when nothing is learnt."""

ModelArrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class LocalJob:
    """Local training that somebody needs the result of."""

    cv: int
    iterations: int  # l_v
    number: int = 0  # of the order; with the CV it decides the order of mini-batches


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on the test set."""

    accuracy: float
    loss: float  # mean cross-entropy, nats


class Learner(Protocol):
    """Trains, combines and evaluates models. Same arguments, same result, bit for bit."""

    @property
    def parameters(self) -> int:
        """M, the number of parameters of a model."""
        ...

    def initial_model(self) -> Model:
        """ω_0."""
        ...

    def train(self, starts: Sequence[Model], jobs: Sequence[LocalJob]) -> list[Model]:
        """ω_{v,k+1} of each job, in the order of the jobs, each from the model it starts with."""
        ...

    def combine(
        self, model: Model, starts: Sequence[Model], updates: Sequence[Model], weights: Sequence[float]
    ) -> Model:
        """model + Σ weight · (update − start), summed in the given order; a start is the model an update began with."""
        ...

    def average(self, updates: Sequence[Model], weights: Sequence[float]) -> Model:
        """Σ weight · update, summed in the given order; weights that sum to less than one shrink the model."""
        ...

    def evaluate(self, model: Model) -> Evaluation | None:
        """Accuracy and loss on the test set; None if nothing is learnt."""
        ...

    def arrays_of(self, model: Model) -> ModelArrays:
        """A model as named arrays, to be kept in a file."""
        ...

    def model_of(self, arrays: ModelArrays) -> Model:
        """The model that these arrays are of, to the last bit."""
        ...


@dataclass(frozen=True)
class NullLearner:
    """Learns nothing (`learning.kind = "none"`): models are None, but have the size of real ones."""

    parameters: int

    def initial_model(self) -> Model:
        """None."""
        return None

    def train(self, starts: Sequence[Model], jobs: Sequence[LocalJob]) -> list[Model]:
        """One None per job."""
        return [None] * len(jobs)

    def combine(
        self, model: Model, starts: Sequence[Model], updates: Sequence[Model], weights: Sequence[float]
    ) -> Model:
        """None."""
        return None

    def average(self, updates: Sequence[Model], weights: Sequence[float]) -> Model:
        """None."""
        return None

    def evaluate(self, model: Model) -> Evaluation | None:
        """None."""
        return None

    def arrays_of(self, model: Model) -> ModelArrays:
        """No arrays."""
        return {}

    def model_of(self, arrays: ModelArrays) -> Model:
        """None."""
        return None
