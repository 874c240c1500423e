"""Step through a run round by round, without a directory; look at its tables on the way."""

import vefl_sim

tables = {"run": {"name": "stepped", "rounds": 4}, "data": {"train_samples": 4000}, "learning": {"kind": "none"}}
experiment = vefl_sim.from_tables(tables)
simulation = vefl_sim.Simulation(experiment)
for report in simulation:
    delivered = [outcome.order.cv for outcome in report.outcomes if outcome.lost is None]
    print(f"round {report.round}: {report.in_coverage} CVs in coverage, {len(delivered)} updates delivered")
    if report.round == 2:
        print(simulation.vehicles.query("state == 'delivered'")[["cv", "iterations", "tx_slots"]].head(3))
print(simulation.rounds[["round", "ordered", "delivered"]])

whole = vefl_sim.simulate(experiment, out=None)  # the same in one call
print("the same run:", whole.content_digest() == simulation.content_digest())
