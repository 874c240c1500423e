"""What each simplification of the radio flatters: paired differences to the paper's radio, for FDPC and PDPC.

    python benchmarks/radio_realism.py [--out runs]

Runs the points of experiments/radio_realism.toml that are not done, one after the other. Then it prints for each scheme
the means with the paper's radio, and for each simplification that is removed the mean difference over the seeds to the
run of the same seed, with its 95 % confidence interval (Student's t), and * if zero is outside of it.
"""

from harness import ROOT, progress

import argparse
from collections import defaultdict

import numpy as np
from scipy import stats

import vefl_sim

FIGURES = {
    "orders": lambda s: s["updates_ordered"],
    "delivered, %": lambda s: 100 * s["updates_delivered"] / max(1, s["updates_ordered"]),
    "cost": lambda s: s["cost"],
    "CV energy, J": lambda s: s["energy_j"],
    "gNB energy, J": lambda s: s["gnb_energy_j"],
    "grants lost": lambda s: s["grants_lost"],
    "accuracy": lambda s: s["last_accuracy"],
}
BASE = "paper"


def difference(values: np.ndarray, digits: int) -> str:
    """Mean and half of the 95 % interval."""
    mean, half = values.mean(), stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    if not half and not mean:
        return "0"
    return f"{mean:+.{digits}f} ± {half:.{digits}f}{'*' if abs(mean) > half else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=str(ROOT / "runs"))
    options = parser.parse_args()
    sweep = vefl_sim.load_sweep(ROOT / "experiments" / "radio_realism.toml")
    figures: dict[str, list[dict]] = defaultdict(list)
    for point in sweep.points:
        progress(point.title)
        figures[str(point.label)].append(vefl_sim.simulate(point.experiment, out=options.out).summary)
    for scheme in ("FDPC", "PDPC"):
        rows = {label.split(": ")[1]: values for label, values in figures.items() if label.startswith(scheme)}
        base = {name: np.array([float(read(s)) for s in rows[BASE]]) for name, read in FIGURES.items()}
        print(f"\n| {scheme} | {' | '.join(FIGURES)} |\n|---|{'---|' * len(FIGURES)}")
        digits = {name: 3 if name == "accuracy" else 1 for name in FIGURES}
        print(f"| the paper's radio | {' | '.join(f'{base[n].mean():.{digits[n]}f}' for n in FIGURES)} |")
        for label, summaries in rows.items():
            if label != BASE:
                own = {name: np.array([float(read(s)) for s in summaries]) for name, read in FIGURES.items()}
                print(f"| {label} | {' | '.join(difference(own[n] - base[n], digits[n]) for n in FIGURES)} |")


if __name__ == "__main__":
    main()
