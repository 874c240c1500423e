"""Hand in the plans of a run from outside, as an agent would: first those of PDPC itself, then shorter ones."""

from dataclasses import replace

import numpy as np

import vefl_sim
from vefl_sim.schemes.pdpc import Pdpc

tables = {"run": {"name": "planned", "rounds": 3}, "data": {"train_samples": 4000}, "learning": {"kind": "none"}}
experiment = vefl_sim.from_tables(tables | {"scheme": {"kind": "pdpc"}})
pdpc = Pdpc(experiment)

outside = vefl_sim.Simulation(experiment)
observation = outside.next_plan()  # simulates up to the first plan
while observation is not None:
    plan = pdpc.plan(observation)
    print(f"round {observation.snapshot.round}: {len(observation.cv)} CVs, orders for {plan.cv.tolist()}")
    observation = outside.next_plan(plan)  # goes on with this plan, up to the next
    for report in outside.new_reports():  # what became of it
        delivered = sum(outcome.lost is None for outcome in report.outcomes)
        print(f"  reward {delivered - 0.1 * sum(outcome.account.energy_j for outcome in report.outcomes):.2f}")
print("as PDPC:", outside.content_digest() == vefl_sim.simulate(experiment, out=None).content_digest())

lazy = vefl_sim.Simulation(experiment)
observation = lazy.next_plan()
while observation is not None:
    plan = pdpc.plan(observation)
    one = np.ones_like(plan.iterations)
    observation = lazy.next_plan(replace(plan, iterations=one, cost=None, objective=None, gap=None, bound=None))
for simulation in (outside, lazy):
    print(f"{simulation.summary['energy_j']:.0f} J for {simulation.summary['updates_delivered']} updates")
