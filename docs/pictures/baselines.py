"""Print the tables of docs/schemes.md, and draw baselines.png and codecs.png, from finished comparisons.

python -m vefl_sim experiments/baselines.toml --seeds 1-5
python -m vefl_sim experiments/codecs.toml --seeds 1-3
python docs/pictures/baselines.py [--out runs] [--seeds 5]
"""

import ending  # noqa: F401

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from vefl_sim import load_sweep
from vefl_sim.sweep import paired
from vefl_sim.sweep.comparison import Comparison

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "experiments"
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}
_LINE = 0.042  # height of a line of text, in accuracy
ON_THE_LEFT = ("SCAFFOLD", "FedAvg", "median", "trimmed mean", "Krum")
FAMILIES = {
    "#1f5fa8": ("FDPC", "PDPC"),
    "#c8553d": ("FedAvg", "FedProx", "FedNova", "FedAdam", "FedYogi", "SCAFFOLD", "FedDyn"),
    "#7a7a7a": ("median", "trimmed mean", "Krum"),
    "#3a8f5c": ("random", "Oort"),
    "#8a5aa8": ("AFA-CD", "FedBuff", "FedAsync"),
}


def main() -> None:
    """Read both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (5; of the codecs, at most 3)")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    baselines, codecs = by_seed("baselines", seeds, options.out), by_seed("codecs", seeds[:3], options.out)
    print_table(baselines, "PDPC")
    print_table(codecs, "float32")
    with plt.rc_context(STYLE):
        draw(baselines, (("energy_kj", "energy of all CVs, kJ"), ("money", "money paid")), HERE / "baselines.png")
        draw(
            codecs,
            (("mbit", "bits that arrived, Mbit"), ("transmit_j", "energy of the uploads, J")),
            HERE / "codecs.png",
        )


def by_seed(name: str, seeds: range, out: Path) -> pd.DataFrame:
    """One row per variant and seed: accuracy, and what the whole run has cost."""
    compared = Comparison.of(load_sweep(EXPERIMENTS / f"{name}.toml", seeds=[*seeds]), out)
    index = pd.MultiIndex.from_tuples([(c.label, c.seed) for c in compared.runs], names=["variant", "seed"])
    return pd.DataFrame([_figures(c.run) for c in compared.runs], index=index)


def _figures(run: Any) -> dict[str, float]:
    vehicles, ended = run.vehicles, run.events.query("kind in ('upload_received', 'update_lost')")
    return {
        "accuracy": run.summary["last_accuracy"],
        "money": run.summary["cost"],
        "energy_kj": run.summary["energy_j"] / 1e3,
        "transmit_j": vehicles["transmit_j"].sum(),
        "mbit": ended["bits"].sum() / 1e6,
        "delivered": run.summary["updates_delivered"] / max(1, run.summary["updates_ordered"]),
    }


def print_table(figures: pd.DataFrame, reference: str) -> None:
    """Means over seeds with half-widths of 95 % intervals, and paired differences from one variant."""
    means = paired.means(figures)
    others = [label for label in means.index if label != reference]
    rows = paired.differences(pd.concat([figures.loc[[label]] for label in (reference, *others)]))
    change = {row.variant: row for row in rows.itertuples() if row.figure == "accuracy"}
    print(f"\n| | accuracy | difference from {reference} | delivered | money | energy, kJ | uploads, J | Mbit |")
    print("|---|---|---|---|---|---|---|---|")
    for label, row in means.iterrows():
        differs = "–"
        if label in change:
            mark = "" if change[label].differs else " (not significant)"
            differs = f"{change[label].difference:+.3f} ± {change[label].half_width:.3f}{mark}"
        print(
            f"| {label} | {row.accuracy:.3f} ± {row.accuracy_half_width:.3f} | {differs} | {row.delivered:.1%} | "
            f"{row.money:,.0f} | {row.energy_kj:.2f} | {row.transmit_j:.1f} | {row.mbit:,.0f} |"
        )


def draw(figures: pd.DataFrame, costs: tuple[tuple[str, str], ...], path: Path, *, log: bool = False) -> None:
    """Accuracy against each of the costs: the mean over seeds, with the 95 % interval of the accuracy."""
    means = paired.means(figures)
    figure, places = plt.subplots(1, len(costs), figsize=(10, 4.2), layout="constrained", sharey=True)
    for axes, (column, name) in zip(places, costs, strict=True):
        for label, row in means.iterrows():
            colour = next((c for c, members in FAMILIES.items() if label in members), "#1f5fa8")
            axes.errorbar(
                row[column],
                row.accuracy,
                row.accuracy_half_width,
                fmt="o",
                color=colour,
                ms=5,
                lw=0,
                elinewidth=1,
                alpha=0.8,
            )
        if log:
            axes.set_xscale("log")
        _annotate(axes, np.log10(means[column]) if log else means[column], means["accuracy"], log=log)
        axes.set(xlabel=name)
        axes.grid(alpha=0.25)
        axes.margins(x=0.12)
    places[0].set(ylabel="final test accuracy", ylim=(0, 1))
    figure.savefig(path, dpi=130)
    print(path)


def _annotate(axes: Any, x: pd.Series, y: pd.Series, *, log: bool) -> None:
    """Write the label of each point beside it, some on the left; labels that would overlap move down."""
    wide = x.max() - x.min() or 1.0
    taken: list[tuple[float, float]] = []
    for label in y.sort_values(ascending=False).index:
        at, side = float(y[label]), -1 if label in ON_THE_LEFT else 1
        middle = float(x[label]) + side * 0.07 * wide
        while any(abs(middle - px) < 0.14 * wide and abs(at - py) < _LINE for px, py in taken):
            at -= 0.2 * _LINE
        taken.append((middle, at))
        place = x[label] + side * 0.018 * wide
        ha = "right" if side < 0 else "left"
        axes.annotate(label, (10**place if log else place, at), fontsize=7.5, va="center", ha=ha)


if __name__ == "__main__":
    main()
