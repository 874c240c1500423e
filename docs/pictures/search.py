"""Search for learning rate δ and μ: PDPC on MNIST, by validation accuracy; draws docs/pictures/search.png.

    python docs/pictures/search.py DIR     # DIR: folder with the four files of MNIST

First δ at μ = 0.01, then μ at the best δ; the best is the highest mean accuracy of the last three rounds.
12,000 samples are used for training, about as many per CV as in the paper, and 2,000 more of the training set for
validation. The runs stay in runs/, so that the script continues if it was stopped. About six minutes on two cores.
"""

from ending import SMALL

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

import vefl_sim

RATES = (0.01, 0.03, 0.05, 0.1, 0.2)
MUS = (0.0, 0.01, 0.1, 1.0)
ROUNDS, TRAIN, VALIDATION = (1, 900, 50) if SMALL else (12, 14_000, 2_000)
LAST = 3  # rounds over which accuracy is averaged


def run(directory: str, rate: float, mu: float) -> pd.Series:
    """Run one experiment; returns the validation accuracy of each round."""
    experiment = vefl_sim.from_tables(
        {
            "run": {"name": "search", "rounds": ROUNDS},
            "data": {"kind": "mnist", "dir": directory, "train_samples": TRAIN, "validation_samples": VALIDATION},
            "learning": {"learning_rate": rate, "proximal_mu": mu},
        }
    )
    accuracy = vefl_sim.simulate(experiment).rounds.set_index("round")["accuracy"].astype(float)
    print(f"δ = {rate:<5g} μ = {mu:<5g} {accuracy.tail(LAST).mean():.4f}", flush=True)
    return accuracy


def main() -> None:
    """Run both searches and draw the curves."""
    directory = sys.argv[1]
    rates = {rate: run(directory, rate, 0.01) for rate in RATES}
    best = max(rates, key=lambda rate: rates[rate].tail(LAST).mean())
    mus = {mu: run(directory, best, mu) for mu in MUS}
    draw([("δ", rates, "μ = 0.01"), ("μ", mus, f"δ = {best:g}")])


def draw(searches: list[tuple[str, dict[float, pd.Series], str]]) -> None:
    """Draw one panel per search."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, (name, curves, fixed) in zip(axes, searches, strict=True):
        shades = plt.get_cmap("viridis")
        for place, (value, accuracy) in enumerate(curves.items()):
            colour = shades(place / max(1, len(curves) - 1) * 0.85)
            mean = accuracy.tail(LAST).mean()
            axis.plot(accuracy.index, accuracy, color=colour, label=f"{name} = {value:g}: {mean:.3f}")
        axis.set(title=f"{fixed}; mean of the last {LAST} rounds in the legend", xlabel="round")
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right", fontsize=8)
    axes[0].set_ylabel("validation accuracy")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
