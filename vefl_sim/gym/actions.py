"""From the action of an agent to a lawful plan: what the constraints forbid is cut in a stated order, and counted.

1. C1: of more than |C_k| CVs, those with the largest Θ_v stay.
2. Time, CPU and energy (C2 to C4): CVs that cannot do one iteration are dropped. Iterations are always feasible.
3. The budget (C5): "select": the planner shortens the training of CVs, or drops some; "plan": CVs are dropped, first
   that with the least Θ_v·l_v per unit of money.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Ints
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.optimize.vefl.problem import VeflProblem, solve
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import ineligible_cvs, plan_from_solution
from vefl_sim.schemes.scheme import Plan

ActionKind = Literal["count", "select", "plan"]


@dataclass(frozen=True)
class Actions:
    """What an agent decides, and how it becomes a plan.

    count    a number n: the planner selects at most n CVs (0: nobody trains)
    select   0 or 1 for each row: these CVs train; the planner chooses iterations and frequencies
    plan     0 … levels for each row: not selected, or this share of the CV's feasible iterations, rounded up
    """

    kind: str
    rows: int  # max_cvs
    most: int  # |C_k|
    levels: int
    method: str  # of the planner

    @classmethod
    def of(cls, experiment: Experiment, kind: str, rows: int, levels: int) -> "Actions":
        """The actions of an experiment."""
        if kind not in ("count", "select", "plan"):
            raise BadInput(f'action = {kind!r} is none of "count", "select", "plan".')
        return cls(kind, rows, experiment.scheme.selected, levels, experiment.vefl.method)

    @property
    def sizes(self) -> list[int]:
        """The number of values of each entry of an action; one entry for "count"."""
        return (
            [self.most + 1] if self.kind == "count" else [2 if self.kind == "select" else self.levels + 1] * self.rows
        )

    def checked(self, action: Any) -> Ints:
        """The action as an array of whole numbers; an error in one sentence if it is not one of these actions."""
        sizes = self.sizes
        try:
            numbers = np.asarray(action)
            fits = numbers.size == len(sizes) and numbers.dtype.kind in "iub" and numbers.ndim <= 1
            fits = fits and bool(np.all((numbers >= 0) & (numbers.ravel() < sizes)))
        except (TypeError, ValueError):
            fits = False
        if not fits:
            shape = "a whole number" if self.kind == "count" else f"{len(sizes)} whole numbers"
            raise BadInput(f'an action of "{self.kind}" must be {shape} from 0 to {sizes[0] - 1}, not {action!r}.')
        return numbers.astype(np.int64).reshape(len(sizes))

    def plan(self, observation: Observation, placed: Ints, action: Any) -> tuple[Plan, dict[str, int]]:
        """A lawful plan, and how much of the action was cut, by reason (docs/howto/agent.md)."""
        numbers = self.checked(action)
        if self.kind == "count":
            return self._selected_by_planner(observation, int(numbers[0])), {}
        cuts = Counter({"no_cv": int(np.count_nonzero(numbers[placed < 0]))})
        chosen = np.flatnonzero((numbers > 0) & (placed >= 0))
        at = np.searchsorted(observation.cv, placed[chosen])
        order = np.argsort(at)
        at, wanted = at[order], numbers[chosen[order]]
        problem = observation.problem()
        limit = min(self.most, observation.constants.max_selected)
        if len(at) > limit:
            cuts["selected"] = len(at) - limit
            kept = np.sort(np.argsort(-problem.weight[at], kind="stable")[:limit])
            at, wanted = at[kept], wanted[kept]
        feasible = problem.most[at] > 0
        cuts["infeasible"] = int(np.count_nonzero(~feasible))
        at, wanted = at[feasible], wanted[feasible]
        if self.kind == "select":
            return self._iterations_by_planner(observation, problem, at, cuts)
        return self._as_wanted(observation, problem, at, -(-problem.most[at] * wanted // self.levels), cuts)

    def _selected_by_planner(self, observation: Observation, number: int) -> Plan:
        limited = observation.at_most(observation.constants.budget, number)
        problem = limited.problem()
        if not number:
            return nobody(observation, problem)
        return plan_from_solution(observation, problem, solve(problem, self.method))

    def _iterations_by_planner(
        self, observation: Observation, problem: VeflProblem, at: Ints, cuts: Counter[str]
    ) -> tuple[Plan, dict[str, int]]:
        """The plan in which these CVs take part, and all others do not."""
        if not len(at):
            return nobody(observation, problem), dict(cuts)
        part = replace(_of_rows(problem, at), everybody=True)
        solution = solve(part, self.method)
        cuts["budget"] = len(at) - len(solution.selected)
        cuts["budget_iterations"] = int(part.most[solution.selected].sum() - solution.iterations.sum())
        plan = plan_from_solution(observation, problem, replace(solution, selected=at[solution.selected]))
        return plan, dict(cuts)

    def _as_wanted(
        self, observation: Observation, problem: VeflProblem, at: Ints, iterations: Ints, cuts: Counter[str]
    ) -> tuple[Plan, dict[str, int]]:
        """The plan with these iterations, without the CVs that the budget does not pay."""
        cost, value = problem.cost[at, iterations - 1], problem.weight[at] * iterations
        kept = np.ones(len(at), np.bool_)
        for worst in np.argsort(value / np.maximum(cost, 1e-300), kind="stable"):
            if cost[kept].sum() <= problem.budget * (1 + 1e-12):
                break
            kept[worst] = False
            cuts["budget"] += 1
        at, iterations = at[kept], iterations[kept]
        if not len(at):
            return nobody(observation, problem), dict(cuts)
        hz = np.minimum(problem.cpu_hz[at, iterations - 1], problem.cpu_max_hz[at])
        plan = Plan(
            cv=observation.cv[at],
            iterations=iterations,
            cpu_hz=hz,
            cost=float(cost[kept].sum()),
            objective=float(value[kept].sum()),
            status="agent",
            ineligible=ineligible_cvs(observation, problem),
            max_iterations=dict(zip(observation.cv.tolist(), problem.most.tolist(), strict=True)),
        )
        return plan, dict(cuts)

    def mask(self, observation: Observation, placed: Ints) -> NDArray[np.bool_]:
        """Which values of each entry change something, one after the other, as sb3-contrib expects.

        Nobody can be selected who is not there, or cannot do one iteration; "count" goes up to the number of those
        who can.
        """
        able = np.isin(placed, observation.cv[observation.problem().most > 0])
        if self.kind == "count":
            return np.arange(self.most + 1) <= np.count_nonzero(observation.problem().most)
        allowed = np.repeat(able[:, None], self.sizes[0], axis=1)
        allowed[:, 0] = True
        return allowed.ravel()


def nobody(observation: Observation, problem: VeflProblem) -> Plan:
    """A plan in which nobody trains, because the agent wants it so, or nobody is left."""
    none = np.empty(0, np.int64)
    most = dict(zip(observation.cv.tolist(), problem.most.tolist(), strict=True))
    ineligible = ineligible_cvs(observation, problem)
    return Plan(none, none, np.empty(0), 0.0, 0.0, status="agent", ineligible=ineligible, max_iterations=most)


def _of_rows(problem: VeflProblem, rows: Ints) -> VeflProblem:
    """The problem of some of its CVs."""
    arrays = {name: value[rows] for name, value in vars(problem).items() if name in _PER_CV}
    return replace(problem, **arrays)


_PER_CV = (
    *("weight", "cycles", "time_s", "tx_energy_j", "energy_budget_j", "price_per_joule", "base_fee"),
    *("cpu_min_hz", "cpu_max_hz"),
)
