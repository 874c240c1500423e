"""Random selection: |C_k| CVs drawn uniformly, the selection for which the aggregation of PDPC is unbiased."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.arrays import Ints
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.pdpc import Pdpc
from vefl_sim.schemes.planning import equal_share, ineligible_cvs, unconstrained_plan
from vefl_sim.schemes.scheme import Plan


class RandomSelection(Pdpc):
    """Equal shares of the budget for the CVs that are drawn; aggregated as in PDPC."""

    label = "random"
    unused_keys = (*Pdpc.unused_keys, "vefl.method", "vefl.sojourn_weight", "vefl.min_local_iterations")
    wall_s_per_s = 1 / 15

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._streams = Streams(experiment.run.seed)

    def plan(self, observation: Observation) -> Plan:
        """Draw among the CVs that can do an iteration, then order those whose share of the budget pays for one."""
        observation = observation.at_most(self._budget, self._selected)
        if not self._constrained:
            return unconstrained_plan(observation, self._draw(observation, np.arange(len(observation.cv))))
        problem = observation.problem()
        drawn = self._draw(observation, np.flatnonzero(problem.most))
        plan = equal_share(observation, drawn, shares=len(drawn))
        return replace(plan, ineligible=ineligible_cvs(observation, problem) | plan.ineligible)

    def _draw(self, observation: Observation, rows: Ints) -> Ints:
        """Draw rows uniformly; the draw depends only on the seed, the round and the number of rows."""
        rng = self._streams.generator("selection", observation.snapshot.round)
        count = min(len(rows), observation.constants.max_selected)
        return np.sort(rng.choice(rows, count, replace=False)) if count else np.empty(0, np.int64)
