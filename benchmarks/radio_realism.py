"""What each simplification of the radio flatters: paired differences to the paper's radio, for FDPC and PDPC.

    python benchmarks/radio_realism.py [--out runs] [--workers 1]

Runs the points of experiments/radio_realism.toml that are not done, then prints for each scheme the means with the
paper's radio, and for each simplification that is removed the mean difference over the seeds to the run of the same
seed, with its 95 % confidence interval (Student's t). A difference is marked with * if zero is outside of it.
"""

from harness import ROOT

import argparse
from collections import defaultdict
from pathlib import Path

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
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    sweep = vefl_sim.load_sweep(ROOT / "experiments" / "radio_realism.toml")
    vefl_sim.run_sweep(sweep, options.out, workers=options.workers)
    figures: dict[str, list[dict]] = defaultdict(list)
    for point in sweep.points:
        run = point.run(Path(options.out))
        assert run is not None, point.title
        assert run.is_done, point.title
        figures[str(point.label)].append(run.summary)
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
