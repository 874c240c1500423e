"""Use a scheme that sees the updates themselves: changes that are too long are shortened before they are averaged."""

import numpy as np

import vefl_sim
from vefl_sim import trees
from vefl_sim.schemes.fedprox import FedAvg


class Clipped(FedAvg):
    """The orders of FedAvg; a change that is longer than the median length so far counts with that length."""

    def __init__(self, experiment: vefl_sim.Experiment) -> None:
        super().__init__(experiment)
        self.memory = {"lengths": []}  # kept in checkpoints

    def aggregate_updates(self, updates, model):
        lengths = [float(np.linalg.norm(trees.vector(update.change))) for update in updates]
        self.memory["lengths"] += lengths
        limit = np.median(self.memory["lengths"])
        shares = [update.weight * min(1.0, limit / length) for update, length in zip(updates, lengths, strict=True)]
        return trees.plus(model, trees.weighted_sum([update.change for update in updates], shares))


if __name__ == "__main__":
    base = vefl_sim.from_tables(
        {
            "run": {"name": "sees-updates", "rounds": 4},
            "data": {"train_samples": 2000, "test_samples": 500},
            "model": {"factory": "vefl_models.logistic:logistic"},
            "learning": {"learning_rate": 0.02},
        }
    )
    for scheme in ("fedavg", "__main__:Clipped"):
        run = vefl_sim.simulate(vefl_sim.with_settings(base, f"scheme.kind={scheme}"))
        print(
            f"{scheme:17s} {run.summary['updates_applied']} updates, better than chance:",
            run.summary["last_accuracy"] > 0.1,
        )
