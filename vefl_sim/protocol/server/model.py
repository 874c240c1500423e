"""The global model ω: the only place where delivered updates are trained, decoded and aggregated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vefl_sim.core.clock import Stopwatch
from vefl_sim.core.errors import RunFailed
from vefl_sim.learning.codecs import Coding
from vefl_sim.learning.learner import Evaluation, Learner, Local, LocalJob, Model, Start
from vefl_sim.learning.trees import cast_like, misfit, plain, tree_map
from vefl_sim.protocol.messages import TrainOrder, Update
from vefl_sim.protocol.server.orders import checked_local
from vefl_sim.schemes.scheme import Aggregated, LocalUpdate


@dataclass
class GlobalModel:
    """The server's model. Each step makes a new version of it from updates that CVs have delivered."""

    learner: Learner
    scheme: Any  # Scheme or AsynchronousScheme
    stopwatch: Stopwatch
    averages: bool = False  # the next version is a weighted sum of local models, not a step from this version
    coding: Coding | None = None  # None: updates arrive as they are
    parameters: Model = None  # ω
    version: int = 0  # number of steps so far
    evaluation: Evaluation | None = None  # after the last round; None if it was not evaluated

    def start(self) -> None:
        """Draw the initial model ω_0; a model that was restored from a checkpoint stays. The scheme is told of it."""
        if self.parameters is None:
            self.parameters = self.learner.initial_model()
        if self.is_learnt and self.scheme.begin:
            self.scheme.begin(self.parameters)

    @property
    def is_learnt(self) -> bool:
        """Whether there is a model at all (`learning.kind`)."""
        return self.parameters is not None

    def start_of(self, order: TrainOrder) -> Start:
        """What a CV trains from if it gets an order now: this version, and what the scheme lets it minimise."""
        local = self.scheme.local if self.is_learnt else None
        return Start(self.parameters, checked_local(local(order.cv), self.parameters) if local else Local())

    def step(self, updates: Sequence[Update], weights: Sequence[float]) -> list[float]:
        """Compute the local training of these updates in one call, and aggregate them to the next version.

        Local training is lazy: an update that was lost is never computed. Returns the weights that were applied.
        """
        with self.stopwatch("train"):
            weights = self._step(updates, weights)
        if self.scheme.memory:
            self.scheme.memory = plain(self.scheme.memory)  # without arrays of JAX, as it is after a checkpoint
        return weights

    def _step(self, updates: Sequence[Update], weights: Sequence[float]) -> list[float]:
        starts, orders = [update.start.model for update in updates], [update.outcome.order for update in updates]
        jobs = [
            LocalJob(order.cv, order.iterations, order.number, update.start.local)
            for order, update in zip(orders, updates, strict=True)
        ]
        trained = self.learner.train(starts, jobs)
        if self.coding and self.is_learnt:
            sent = zip(orders, starts, trained, strict=True)
            trained = [self.coding.transmit(order.cv, order.number, start, model) for order, start, model in sent]
        aggregated = self._aggregate(updates, trained, weights)
        if aggregated is not None:
            self.parameters, weights = aggregated
        elif self.averages:
            self.parameters = self.learner.average(trained, weights)
        else:
            self.parameters = self.learner.combine(self.parameters, starts, trained, weights)
        self.version += 1
        return list(weights)

    def train(self, job: LocalJob) -> None:
        """Train the model itself, on the samples of one job: centralized training."""
        with self.stopwatch("train"):
            [self.parameters] = self.learner.train([self.parameters], [job])
        self.version += 1

    def evaluate(self, is_due: bool) -> Evaluation | None:
        """Accuracy and loss on the test set; None if it is not due, or if nothing is learnt."""
        self.evaluation = None
        if is_due:
            with self.stopwatch("evaluate"):
                self.evaluation = self.learner.evaluate(self.parameters)
        return self.evaluation

    def _view(self, update: Update, trained: Model, weight: float) -> LocalUpdate:
        """An update as the scheme sees it."""
        outcome, order = update.outcome, update.outcome.order
        return LocalUpdate(
            cv=order.cv,
            model=tree_map(np.asarray, trained),
            start=tree_map(np.asarray, update.start.model),
            weight=weight,
            samples=order.samples,
            iterations=order.iterations,
            staleness=0 if order.version is None else self.version - order.version,
            delay_s=(outcome.end_ns - order.ordered_ns) / 1e9,
            losses=partial(self.learner.local_loss, cv=order.cv),
        )

    def _aggregate(
        self, updates: Sequence[Update], trained: Sequence[Model], weights: Sequence[float]
    ) -> tuple[Model, Sequence[float]] | None:
        """The next version that the scheme computes, and the weights that it reports; None: it leaves that to us."""
        if self.scheme.aggregate_updates is None or not self.is_learnt:
            return None
        views = [*map(self._view, updates, trained, weights)]
        returned = self.scheme.aggregate_updates(views, tree_map(np.asarray, self.parameters))
        if returned is None:
            return None
        if isinstance(returned, Aggregated):
            returned, weights = returned.model, np.asarray(returned.weights, np.float64).tolist()
        fault = misfit(returned, self.parameters)
        if fault is None and len(weights) != len(views):
            fault = f"it has {len(weights)} weights for {len(views)} updates"
        if fault:
            raise RunFailed(f"scheme.kind: aggregate_updates() must return a model like the one it is given: {fault}.")
        return self.learner.model_of(self.learner.arrays_of(cast_like(returned, self.parameters))), weights
