"""The interface of machine learning to the rest of the simulator. Importing this file does not import JAX."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import NamedArrays
from vefl_sim.core.state import NOT_SAVED

Model = Any
"""Parameters of a network: a pytree of arrays, or None when nothing is learnt."""


@dataclass(frozen=True)
class Local:
    """What a CV minimises, F_v(ω) + (μ/2)·‖ω − ω_k‖² + ⟨slope, ω⟩, and how its steps are corrected.

    Vectors are trees like the model; None: there is none.
    """

    proximal_mu: float | None = None  # μ; None: that of the scheme
    slope: Model = None  # is added to every gradient
    drift: Model = None  # every step moves by −δ·drift besides the optimizer's step, that is, without its momentum


@dataclass(frozen=True)
class Start:
    """What a CV trains from, fixed when it gets its order: the model, and what it minimises."""

    model: Model  # ω_k
    local: Local = Local()


@dataclass(frozen=True)
class LocalJob:
    """Local training of one CV whose result is needed."""

    cv: int
    iterations: int  # l_v
    number: int = 0  # of the training order; with the CV it determines the order of mini-batches
    local: Local = field(default=Local(), compare=False)  # what the CV minimises


@dataclass(frozen=True)
class LocalLoss:
    """Loss of a model on the samples of a CV."""

    mean: float
    root_mean_square: float  # over the samples


@dataclass(frozen=True)
class Evaluation:
    """Accuracy and loss of a model on the test set."""

    accuracy: float | None  # None if the data set has no classes
    loss: float  # mean of `learning.loss`: of the cross-entropy in nats, of the squared error, …
    counts: NDArray[np.int64] | None = field(default=None, compare=False, metadata=NOT_SAVED)
    """Test samples by true class (row) and predicted class (column); None if the learner does not count them."""

    @property
    def score(self) -> float:
        """A number that is higher for a better model: the accuracy, or without classes the negative loss."""
        return self.accuracy if self.accuracy is not None else -self.loss


@dataclass
class Learner:
    """Trains, combines and evaluates models; the same arguments give the same result, bit for bit.

    As it is, it learns nothing (`learning.kind = "none"`): models are None. Those that learn override all methods.
    """

    parameters: int  # M, the number of parameters of a model, with its statistics
    statistics: int = 0  # how many of them are statistics of the network (BatchNorm's), which are not trained

    def rehearse(self) -> None:
        """Do once and in vain what a round does, so that everything is compiled."""

    def initial_model(self) -> Model:
        """Initial model ω_0."""
        return None

    def train(self, starts: Sequence[Model], jobs: Sequence[LocalJob]) -> list[Model]:
        """Trained model ω_{v,k+1} of each job, in the order of the jobs; job i starts from the model starts[i]."""
        return [None] * len(jobs)

    def local_loss(self, model: Model, cv: int) -> LocalLoss:
        """Loss of a model on the samples that a CV holds, without the proximal and other terms."""
        return LocalLoss(0.0, 0.0)

    def combine(
        self, model: Model, starts: Sequence[Model], updates: Sequence[Model], weights: Sequence[float]
    ) -> Model:
        """model + Σ weight · (update − start), summed in the given order; an update was trained from its start."""
        return None

    def average(self, updates: Sequence[Model], weights: Sequence[float]) -> Model:
        """Σ weight · update, summed in the given order; weights that sum to less than one shrink the model."""
        return None

    def evaluate(self, model: Model) -> Evaluation | None:
        """Accuracy and loss on the test set; None if nothing is learnt."""
        return None

    def arrays_of(self, model: Model) -> NamedArrays:
        """A model as arrays named by their paths, such as params.Conv_0.kernel, to be saved in a file."""
        return {}

    def model_of(self, arrays: NamedArrays) -> Model:
        """Rebuild the model from the arrays that `arrays_of` returned, bit for bit."""
        return None
