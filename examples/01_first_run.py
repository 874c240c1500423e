"""Run an experiment from Python and print its rounds."""

from pathlib import Path

import vefl_sim

QUICKSTART = Path(__file__).parents[1] / "experiments" / "quickstart.toml"

experiment = vefl_sim.load(QUICKSTART, ["run.name=first", "run.duration_s=20.0", "data.train_samples=2000"])
run = vefl_sim.simulate(experiment)

print(run.rounds[["round", "in_coverage", "ordered", "delivered"]].to_string(index=False))
print("accuracy has risen:", run.summary["last_accuracy"] > run.summary["first_accuracy"])
