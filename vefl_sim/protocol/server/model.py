"""The global model ω: the only place where delivered updates are trained and aggregated."""

from collections.abc import Sequence
from dataclasses import dataclass

from vefl_sim.learning.learner import Evaluation, Learner, LocalJob, Model
from vefl_sim.protocol.messages import Update


@dataclass
class GlobalModel:
    """The server's model. Each step makes a new version of it from updates that CVs have delivered."""

    learner: Learner
    averages: bool = False  # the next version is a weighted sum of local models, not a step from this version
    parameters: Model = None  # ω
    version: int = 0  # number of steps so far

    def start(self) -> None:
        """Draw the initial model ω_0; a model that was restored from a checkpoint stays."""
        if self.parameters is None:
            self.parameters = self.learner.initial_model()

    def step(self, updates: Sequence[Update], weights: Sequence[float]) -> None:
        """Compute the local training of these updates in one call, and aggregate them to the next version.

        Local training is lazy: an update that was lost is never computed.
        """
        starts = [update.start for update in updates]
        orders = [update.outcome.order for update in updates]
        trained = self.learner.train(starts, [LocalJob(order.cv, order.iterations, order.number) for order in orders])
        if self.averages:
            self.parameters = self.learner.average(trained, weights)
        else:
            self.parameters = self.learner.combine(self.parameters, starts, trained, weights)
        self.version += 1

    def train(self, job: LocalJob) -> None:
        """Train the model itself, on the samples of one job: centralized training."""
        [self.parameters] = self.learner.train([self.parameters], [job])
        self.version += 1

    def evaluate(self) -> Evaluation | None:
        """Accuracy and loss on the test set; None if nothing is learnt."""
        return self.learner.evaluate(self.parameters)
