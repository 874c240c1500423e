"""Hand in the pRBs and powers of each slot from outside: every pRB to the CV with the best channel on it."""

import numpy as np

import vefl_sim


def best_channel(problem: vefl_sim.RatProblem) -> vefl_sim.RatAllocation:
    """Give each pRB to the CV with the best channel there; a CV spreads its power evenly, and sends what it has."""
    cvs, prbs = problem.snr_per_watt.shape
    owner = problem.snr_per_watt.argmax(axis=0)
    power_w = (problem.max_power_w / np.maximum(1, np.bincount(owner, minlength=cvs)))[owner]
    snr = power_w * problem.snr_per_watt[owner, np.arange(prbs)]
    capacity_bps = np.bincount(owner, problem.bandwidth_hz * np.log2(1 + snr), minlength=cvs)
    rate_bps = np.minimum(capacity_bps, problem.bits_left / problem.slot_s)
    return vefl_sim.RatAllocation(owner, power_w, rate_bps, objective=0.0, bound=0.0, status="policy")


tables = {"run": {"name": "slots", "rounds": 2}, "data": {"train_samples": 4000}, "learning": {"kind": "none"}}
experiment = vefl_sim.from_tables(tables)
greedy, slots = vefl_sim.Simulation(experiment), 0
problem = greedy.next_slot()  # simulates up to the first slot in which CVs send
while problem is not None:
    slots += 1
    problem = greedy.next_slot(best_channel(problem))
built_in = vefl_sim.simulate(experiment, out=None)
print(f"{slots} slots from outside, {built_in.summary['slots_audited']} of the built-in method")
for name, simulation in {"best channel": greedy, "built-in": built_in}.items():
    joules = simulation.vehicles["transmit_j"].sum()
    print(f"{name}: {simulation.summary['updates_delivered']} updates delivered, {joules:.4f} J to send them")
