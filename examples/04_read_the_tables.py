"""Read the tables of a run with pandas, and print why an update was lost."""

from pathlib import Path

import vefl_sim

RUSH_HOUR = Path(__file__).parents[1] / "experiments" / "rush_hour.toml"

run = vefl_sim.simulate(vefl_sim.load(RUSH_HOUR, ["run.rounds=3", "data.train_samples=4000"]))

vehicles = run.vehicles
print(vehicles.groupby(["state", "reason"], dropna=False).size().to_string())

lost = vehicles[vehicles["state"] == "lost"].iloc[0]
print(f"\nWhy was the update of CV {lost['cv']} in round {lost['round']} lost?")
for sentence in vefl_sim.why(run, cv=int(lost["cv"]), round=int(lost["round"])):
    print(sentence)
