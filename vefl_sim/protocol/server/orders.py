"""Check what a scheme returns, and turn its plan into training orders."""

import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import RunFailed
from vefl_sim.learning.learner import Local, Model
from vefl_sim.learning.trees import misfit, split, tree_map
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import column


def orders_of(observation: Observation, plan: Plan, model_ns: int = 0) -> Iterator[TrainOrder]:
    """One order per CV of the plan, in CV order, with its times on the clock and on the slot grid.

    `model_ns` is the time until the CVs have the model.
    """
    constants, grid = observation.constants, observation.constants.grid
    start_ns = observation.snapshot.time_ns
    for index in np.argsort(plan.cv):
        row = int(np.searchsorted(observation.cv, plan.cv[index]))
        iterations, cpu_hz = int(plan.iterations[index]), float(plan.cpu_hz[index])
        cycles = iterations * float(observation.cycles[row])
        train_ns = training_ns(cycles, cpu_hz, int(observation.train_limit_ns[row]))
        deadline_slot = int(observation.deadline_slot[row])
        compute_j = cycles * constants.cpu_capacitance / 2 * cpu_hz**2
        yield TrainOrder(
            cv=int(plan.cv[index]),
            round=observation.snapshot.round,
            iterations=iterations,
            cpu_hz=cpu_hz,
            train_ns=train_ns,
            compute_j=compute_j,
            payload_bits=constants.payload_bits,
            earliest_slot=max(
                constants.access.first_slot(grid.ceil(start_ns + model_ns + train_ns)),
                int(constants.access.pattern.latest_start(deadline_slot, int(observation.worst_slots[row]))),
            ),
            deadline_slot=deadline_slot,
            worst_j=compute_j + float(observation.worst_tx_j[row]),
            bypass_ns=0 if plan.bypasses_network else None,
            ordered_ns=start_ns,
            samples=int(observation.snapshot.samples[row]),
            number=observation.snapshot.round,
            model_ns=model_ns,
        )


def checked_plan(observation: Observation, returned: Any) -> Plan:
    """The plan that a scheme returned, with its lists as arrays; raises RunFailed if a CV cannot follow its order."""
    if not isinstance(returned, Plan):
        raise RunFailed(f"scheme.kind must return a vefl_sim.Plan from plan(), not {type(returned).__name__}.")
    plan = replace(
        returned,
        cv=np.asarray(returned.cv, np.int64),
        iterations=np.asarray(returned.iterations),
        cpu_hz=np.asarray(returned.cpu_hz, np.float64),
    )
    if plan.cv.ndim != 1 or not plan.cv.shape == plan.iterations.shape == plan.cpu_hz.shape:
        raise RunFailed("scheme.kind must return a Plan with one value of iterations and cpu_hz for each CV.")
    for flags, sentence in _violations(observation, plan):
        if flags.any():
            raise RunFailed(f"scheme.kind, round {observation.snapshot.round}: CV {plan.cv[flags.argmax()]} {sentence}")
    return plan


def _violations(observation: Observation, plan: Plan) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Pairs of flags, one per ordered CV, and the sentence that says what is wrong with the flagged CVs."""
    yield ~np.isin(plan.cv, observation.cv), "was ordered, but is not in coverage."
    first = np.unique(plan.cv, return_index=True)[1]
    yield ~np.isin(np.arange(len(plan.cv)), first), "was ordered twice."
    valid = (plan.iterations >= 1) & (plan.iterations == np.floor(plan.iterations)) & (plan.iterations < 2**31)
    yield ~valid, "was ordered a number of iterations that is not 1, 2, 3, … (at most 2,147,483,647)."
    limit_hz = column(observation.snapshot.agreements, "cpu_max_hz")[np.searchsorted(observation.cv, plan.cv)]
    fast_enough = (plan.cpu_hz > 0) & (plan.cpu_hz <= limit_hz * (1 + 1e-9))
    yield (
        ~fast_enough,
        "was ordered a CPU frequency outside its range: cpu_hz must be above 0 and at most its cpu_max_hz.",
    )


def checked_weights(returned: Any, delivered: int) -> list[float]:
    """The aggregation weights that a scheme returned, as a list with one finite number per delivered update."""
    try:
        weights = np.asarray(returned)
    except ValueError:  # rows of different lengths
        weights = np.empty((0, 0))
    if weights.shape != (delivered,) or weights.dtype.kind not in "fiu" or not np.all(np.isfinite(weights)):
        raise RunFailed(
            "scheme.kind: aggregate() or weights() must return one finite weight for each delivered update."
        )
    return [float(weight) for weight in weights]


def checked_local(returned: Any, model: Model) -> Local:
    """What a scheme lets a CV minimise, in arrays of its own; raises RunFailed if it is something else."""
    if not isinstance(returned, Local):
        raise RunFailed(f"scheme.kind must return a vefl_sim.Local from local(), not {type(returned).__name__}.")
    mu = returned.proximal_mu
    if mu is not None and not (isinstance(mu, Real) and 0 <= mu < math.inf):
        raise RunFailed(f"scheme.kind: local() returned proximal_mu = {mu!r}: it must be a number from 0 on.")
    vectors = {name: getattr(returned, name) for name in ("slope", "drift")}
    for name, tree in vectors.items():
        if tree is not None and (fault := misfit(split(tree)[0], split(model)[0])):
            raise RunFailed(f"scheme.kind: {name} of local() must be a tree like the model: {fault}.")
    copies = {name: None if tree is None else tree_map(np.array, tree) for name, tree in vectors.items()}
    return replace(returned, **copies)


def checked_theorem2_sum(returned: Any) -> float | None:
    """The sum of Theorem 2 that a scheme returned, as a finite float or None."""
    if returned is None:
        return None
    if not isinstance(returned, Real) or not math.isfinite(returned):
        raise RunFailed("scheme.kind must return a finite number or None from theorem2_sum().")
    return float(returned)


def training_ns(cycles: float, cpu_hz: float, limit_ns: int) -> int:
    """t_cmp in whole nanoseconds; a plan that uses all of T_v does not exceed it by rounding l·cD/η."""
    exact = cycles / cpu_hz * 1e9
    rounded = max(1, round(exact))
    return limit_ns if limit_ns < rounded <= limit_ns + 2 + 1e-12 * exact else rounded
