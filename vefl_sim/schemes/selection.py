"""Selection of |C_k| CVs without the VEFL sub-problem: at random, and Oort's.

Random selection draws CVs uniformly, the selection for which the aggregation of PDPC is unbiased.

Oort-style selection: CVs whose data are useful and that are fast are selected more often; others are tried out. Lai et
al., Oort: Efficient Federated Learning via Guided Participant Selection (OSDI 2021): its utilities and its exploration,
without its pacer, since the length of a round is given here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Model
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.pdpc import Pdpc
from vefl_sim.schemes.planning import equal_share, ineligible_cvs, unconstrained_plan
from vefl_sim.schemes.scheme import LocalUpdate, Plan


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
        observation = observation.at_most(self._experiment.vefl.budget, self._experiment.scheme.selected)
        if not self._experiment.scheme.constrained:
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


_EXPLORED, _DECAY, _LEAST = 0.9, 0.98, 0.2  # share of places for CVs without a utility, its decay, its minimum
_UNCERTAINTY = 0.1  # weight of the time since the last selection
_PENALTY = 2.0  # α: power of the factor for CVs that are slower than the round


class Oort(RandomSelection):
    """Selects by the utility D·√(mean squared loss) of each CV's last update, plus a bonus for its age.

    The utility of a CV that needed longer than the median of the last updates is reduced by (median/delay)². A share of
    the places, at first 90 %, goes to CVs that have no utility yet, at random.
    """

    label = "Oort"

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.memory: dict[str, Any] = {"utility": {}, "delay_s": {}, "round": {}}  # by CV, of its last update

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> None:
        """Note the utilities of the CVs that delivered; the updates are added up as in random selection."""
        for update in updates:
            self.memory["utility"][update.cv] = update.samples * update.loss_before.root_mean_square
            self.memory["delay_s"][update.cv] = update.delay_s
            self.memory["round"][update.cv] = self._round

    def _draw(self, observation: Observation, rows: Ints) -> Ints:
        """The rows with the highest utilities, and some that have none."""
        self._round = observation.snapshot.round
        rng = self._streams.generator("selection", self._round)
        count = min(len(rows), observation.constants.max_selected)
        known = np.array([int(observation.cv[row]) in self.memory["utility"] for row in rows], np.bool_)
        share = max(_LEAST, _EXPLORED * _DECAY ** (self._round - 1))
        explored = min(int((~known).sum()), max(round(share * count), count - int(known.sum())))
        best = rows[known][np.argsort(-self._utilities(observation.cv[rows[known]]), kind="stable")]
        tried = rng.choice(rows[~known], explored, replace=False) if explored else np.empty(0, np.int64)
        return np.sort(np.concatenate([best[: count - explored], tried]).astype(np.int64))

    def _utilities(self, cvs: Ints) -> Floats:
        """Statistical utility, relative to the largest, with the bonus for its age; times the factor for slow CVs."""
        utility, delay_s, last = (
            np.array([self.memory[name][cv] for cv in cvs.tolist()], np.float64)
            for name in ("utility", "delay_s", "round")
        )
        usual_s = float(np.median([*self.memory["delay_s"].values()] or [1.0]))
        bonus = np.sqrt(_UNCERTAINTY * np.log(max(1, self._round)) / np.maximum(last, 1))
        slow = np.minimum(1.0, usual_s / np.maximum(delay_s, 1e-9)) ** _PENALTY
        most = utility.max(initial=0.0)
        scores: Floats = ((utility / most if most > 0 else utility) + bonus) * slow
        return scores
