"""From a plan to orders."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vefl_sim.errors import RunFailed
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.sla import column


def orders_of(observation: Observation, plan: Plan) -> Iterator[TrainOrder]:
    """One order per planned CV, in CV order, with its times on the clock and on the slot grid."""
    plan = _checked(observation, plan)
    terms, grid = observation.terms, observation.terms.grid
    start_ns = observation.sighting.time_ns
    for index in np.argsort(plan.cv):
        row = int(np.searchsorted(observation.cv, plan.cv[index]))
        iterations, cpu_hz = int(plan.iterations[index]), float(plan.cpu_hz[index])
        cycles = iterations * float(observation.cycles[row])
        train_ns = training_ns(cycles, cpu_hz, int(observation.train_limit_ns[row]))
        deadline_slot = int(observation.deadline_slot[row])
        compute_j = cycles * terms.cpu_capacitance / 2 * cpu_hz**2
        yield TrainOrder(
            cv=int(plan.cv[index]),
            round=observation.sighting.round,
            iterations=iterations,
            cpu_hz=cpu_hz,
            train_ns=train_ns,
            compute_j=compute_j,
            payload_bits=terms.payload_bits,
            earliest_slot=max(grid.ceil(start_ns + train_ns), deadline_slot - int(observation.worst_slots[row])),
            deadline_slot=deadline_slot,
            worst_j=compute_j + terms.link.max_power_w * terms.grid.slot_s * int(observation.worst_slots[row]),
            assured=plan.assured,
        )


def _checked(observation: Observation, plan: Plan) -> Plan:
    """The plan as arrays; what no scheme may order is an error."""
    plan = replace(plan, cv=np.asarray(plan.cv), iterations=np.asarray(plan.iterations), cpu_hz=np.asarray(plan.cpu_hz))
    if not np.isin(plan.cv, observation.cv).all() or len(set(plan.cv.tolist())) != len(plan.cv):
        raise RunFailed("scheme.kind ordered a CV twice, or one that is not in coverage.")
    if not len(plan.cv) == len(plan.iterations) == len(plan.cpu_hz):
        raise RunFailed("scheme.kind must give iterations and cpu_hz for each CV that it orders.")
    if np.any(plan.iterations < 1) or np.any(plan.iterations != np.floor(plan.iterations)):
        raise RunFailed("scheme.kind ordered a number of iterations that is not 1, 2, 3, …")
    limit_hz = column(observation.sighting.agreements, "cpu_max_hz")[np.searchsorted(observation.cv, plan.cv)]
    if not np.all((plan.cpu_hz > 0) & (plan.cpu_hz <= limit_hz * (1 + 1e-9))):
        raise RunFailed("scheme.kind ordered a CPU frequency that is not above 0 and up to the CV's cpu_max_hz.")
    return plan


def training_ns(cycles: float, cpu_hz: float, limit_ns: int) -> int:
    """t_cmp in whole ns. A plan that uses all of T_v must not exceed it by the rounding of l·cD/η."""
    exact = cycles / cpu_hz * 1e9
    rounded = max(1, round(exact))
    return limit_ns if limit_ns < rounded <= limit_ns + 2 + 1e-12 * exact else rounded
