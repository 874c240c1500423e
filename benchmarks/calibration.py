"""The network side of the paper's evaluation: 400 rounds of each scheme, nothing learnt.

    python benchmarks/calibration.py [--rounds 400] [--scheme KIND] [--profile] [TABLE.KEY=VALUE ...]

Prints, for four schemes at the defaults and with data of the size of Fashion-MNIST: cost per round, p_suc
per CV and per round beside the paper's figures, and how fast it ran; writes benchmarks/calibration.json. Settings given
on the command line change all runs, to see what moves the figures.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import cProfile
import json
import pstats
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import vefl_sim
from vefl_sim.learning.datasets.dataset import Dataset

ROOT = Path(__file__).parents[1]
# (share of rounds with a cost below 700, share of p_suc of at least 0.9, of at least 0.99)
PAPER = {
    "fdpc": (0.2375, 0.973, 0.7645),
    "pdpc": (1.0, 1.0, 1.0),
    "fedprox": (0.468, 0.971, 0.7625),
    "afa-cd": (0.473, 0.97, 0.7625),
}


def fashion_sized(experiment: vefl_sim.Experiment, streams: Any) -> Dataset:
    """60,000 images of 28 × 28 × 1 in ten classes, all black: nobody looks at them."""
    labels = streams.generator("data").integers(10, size=60_000).astype(np.int32)
    images = np.zeros((60_000, 28, 28, 1), np.uint8)
    return Dataset("fashion-sized", images, labels, images[:10], labels[:10], 10)


def experiment(kind: str, rounds: int, settings: list[str]) -> vefl_sim.Experiment:
    """The defaults, with a name and a size."""
    plain = vefl_sim.from_tables(
        {
            "run": {"name": f"calibration-{kind}", "rounds": rounds},
            "scheme": {"kind": kind, "selected": 10},
            "data": {"kind": "__main__:fashion_sized"},
            "learning": {"kind": "none"},
        }
    )
    return vefl_sim.with_settings(plain, *settings) if settings else plain


def figures(run: vefl_sim.Run) -> dict[str, float]:
    """What the paper reports, and how fast it ran."""
    rounds, summary = run.rounds, run.summary
    ordered = run.vehicles["delivered_fraction"].dropna().to_numpy(float)
    unable = int((run.vehicles["state"] == "ineligible").sum())
    both = np.concatenate((ordered, np.zeros(unable)))
    per_round, with_unable = (rounds[name].dropna().to_numpy(float) for name in ("p_suc", "p_suc_with_ineligible"))
    found = {
        "in_coverage": float(rounds["in_coverage"].mean()),
        "ordered": float(rounds["ordered"].mean()),
        "ineligible": unable / len(rounds),
        "cost": float(rounds["cost"].mean()),
        "cost_below_700": float((rounds["cost"] < 700).mean()),
        "overruns": float(rounds["overruns"].sum()),
        "gap": float(rounds["plan_gap"].astype(float).mean()),  # nan for a scheme without a bound
        "real_time": summary["simulated_s"] / (summary["wall_s"] + summary["prepare_s"]),
        "wall_s": summary["wall_s"],
    }
    for name, values in (("cv", ordered), ("cv+", both), ("round", per_round), ("round+", with_unable)):
        found |= {f"p_suc_{name}_{limit:g}": float((values >= limit).mean()) for limit in (0.9, 0.99)}
    return found


LAYERS = ("mobility", "optimize", "radio", "schemes", "protocol", "recorder", "tables", "audit", "ledger", "trace")
KINDS = {"cv": "ordered CVs", "cv+": "with ineligible", "round": "rounds", "round+": "rounds with ineligible"}


def profile_lines(profiler: cProfile.Profile) -> list[str]:
    """Where the time goes, by package."""
    spent: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own_s, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        path = Path(file)
        layer = next((name for name in LAYERS if name in path.parts or path.stem == name), "python, numpy, arrow")
        spent[layer] += own_s
    total = sum(spent.values())
    return [f"  {layer:22}{own_s / total:6.1%}" for layer, own_s in sorted(spent.items(), key=lambda item: -item[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--scheme", choices=PAPER, action="append", help="only this one; repeatable")
    parser.add_argument("--profile", action="store_true", help="say where the time goes (slower)")
    parser.add_argument("settings", nargs="*", metavar="TABLE.KEY=VALUE")
    given = parser.parse_args()
    table = {}
    for kind in given.scheme or PAPER:
        below_700, nine, ninety_nine = PAPER[kind]
        profiler = cProfile.Profile()
        with tempfile.TemporaryDirectory() as folder:
            if given.profile:
                profiler.enable()
            run = vefl_sim.simulate(experiment(kind, given.rounds, given.settings), out=folder)
            profiler.disable()
            table[kind] = found = figures(run)
        gap = "no bound" if np.isnan(found["gap"]) else f"mean gap {found['gap']:.2%}"
        print(
            f"{kind}: {found['in_coverage']:.1f} CVs in coverage, {found['ordered']:.1f} ordered, "
            f"{found['ineligible']:.1f} ineligible; mean cost {found['cost']:.0f}, {gap}, "
            f"{found['overruns']:.0f} overruns; {found['real_time']:.0f} × real time"
        )
        print(f"  cost < 700 in {found['cost_below_700']:.1%} of rounds (paper {below_700:.1%})")
        for name, what in KINDS.items():
            both = f"{found[f'p_suc_{name}_0.9']:.1%}, {found[f'p_suc_{name}_0.99']:.1%}"
            print(f"  p_suc ≥ 0.9, ≥ 0.99, {what:23} {both:>15}  (paper {nine:.1%}, {ninety_nine:.1%})")
        if given.profile:
            print("\n".join(profile_lines(profiler)))
        print(flush=True)
    if given.rounds == 400 and not (given.settings or given.profile or given.scheme):
        (ROOT / "benchmarks" / "calibration.json").write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
