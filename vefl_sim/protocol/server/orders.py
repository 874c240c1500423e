"""From a plan to orders."""

import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import RunFailed
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.schemes.sla import column


def orders_of(observation: Observation, plan: Plan) -> Iterator[TrainOrder]:
    """One order per planned CV, in CV order, with its times on the clock and on the slot grid."""
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
            earliest_slot=max(grid.ceil(start_ns + train_ns), deadline_slot - int(observation.worst_slots[row])),
            deadline_slot=deadline_slot,
            worst_j=compute_j + constants.link.max_power_w * constants.grid.slot_s * int(observation.worst_slots[row]),
            bypass_ns=0 if plan.bypasses_network else None,
            ordered_ns=start_ns,
            samples=int(observation.snapshot.samples[row]),
            number=observation.snapshot.round,
        )


def checked(observation: Observation, given: Any) -> Plan:
    """The plan of a scheme as arrays; what no scheme may order is an error."""
    if not isinstance(given, Plan):
        raise RunFailed(f"scheme.kind must return a vefl_sim.Plan from plan(), not {type(given).__name__}.")
    plan = replace(
        given,
        cv=np.asarray(given.cv, np.int64),
        iterations=np.asarray(given.iterations),
        cpu_hz=np.asarray(given.cpu_hz, np.float64),
    )
    if not plan.cv.shape == plan.iterations.shape == plan.cpu_hz.shape:
        raise RunFailed("scheme.kind must give iterations and cpu_hz for each CV that it orders.")
    for wrong, sentence in _wrongs(observation, plan):
        if wrong.any():
            raise RunFailed(f"scheme.kind, round {observation.snapshot.round}: CV {plan.cv[wrong.argmax()]} {sentence}")
    return plan


def _wrongs(observation: Observation, plan: Plan) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Flags over the ordered CVs, and what is wrong with those."""
    yield ~np.isin(plan.cv, observation.cv), "was ordered, but is not in coverage."
    first = np.unique(plan.cv, return_index=True)[1]
    yield ~np.isin(np.arange(len(plan.cv)), first), "was ordered twice."
    whole = (plan.iterations >= 1) & (plan.iterations == np.floor(plan.iterations))
    yield ~whole, "was ordered a number of iterations that is not 1, 2, 3, …"
    limit_hz = column(observation.snapshot.agreements, "cpu_max_hz")[np.searchsorted(observation.cv, plan.cv)]
    fast_enough = (plan.cpu_hz > 0) & (plan.cpu_hz <= limit_hz * (1 + 1e-9))
    yield ~fast_enough, "was ordered a CPU frequency that is not above 0 and up to its cpu_max_hz."


def checked_weights(given: Any, delivered: int) -> list[float]:
    """The weights of a scheme, one for each delivered update."""
    try:
        weights = np.asarray(given)
    except ValueError:  # rows of different lengths
        weights = np.empty((0, 0))
    if weights.shape != (delivered,) or weights.dtype.kind not in "fiu" or not np.all(np.isfinite(weights)):
        raise RunFailed("scheme.kind must give one finite weight for each delivered update.")
    return [float(weight) for weight in weights]


def checked_sum(given: Any) -> float | None:
    """What a scheme gives as the sum of Theorem 2."""
    if given is None:
        return None
    if not isinstance(given, Real) or not math.isfinite(given):
        raise RunFailed("scheme.kind must give a finite number or None from theorem2_sum().")
    return float(given)


def training_ns(cycles: float, cpu_hz: float, limit_ns: int) -> int:
    """t_cmp in whole ns. A plan that uses all of T_v must not exceed it by the rounding of l·cD/η."""
    exact = cycles / cpu_hz * 1e9
    rounded = max(1, round(exact))
    return limit_ns if limit_ns < rounded <= limit_ns + 2 + 1e-12 * exact else rounded
