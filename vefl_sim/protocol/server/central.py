"""All data in one place: what could be learnt if nobody had to send anything."""

from dataclasses import dataclass

from vefl_sim.learning.learner import LocalJob
from vefl_sim.protocol.messages import Decision, Outcome
from vefl_sim.protocol.server.synchronous import SynchronousServer

EVERYTHING = 0
"""Under this number of a CV the learner holds all samples."""


@dataclass
class CentralServer(SynchronousServer):
    """Goes through all samples once in a round; nobody gets an order."""

    def _steps(self, delivered: list[Outcome]) -> bool:
        return True

    def _learn(self, decision: Decision, delivered: list[Outcome]) -> list[float]:
        with self.stopwatch("train"):
            [self.model] = self.learner.train([self.model], [LocalJob(EVERYTHING, 1, self.round)])
        return []
