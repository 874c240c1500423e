"""Run all schemes on traffic signs and MNIST, 60 rounds, α = 0.1; print a table and draw docs/pictures/table1.png.

    python docs/pictures/table1.py DIR [OUT]     # DIR: folder with the four files of MNIST; OUT: folder of the runs

Finished runs are not run again. About half an hour on two cores.
"""

from ending import SMALL

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import vefl_sim
from vefl_sim.analysis.draw import compared as curves_of
from vefl_sim.analysis.figures.panel import STYLE, line_styles
from vefl_sim.sweep.comparison import Comparison

ROOT = Path(__file__).parents[2]
# accuracy in the paper, in the order of LABELS
PAPER = (0.9677, 0.9691, 0.4566, 0.7543, 0.9723, 0.8285, 0.9905)
LABELS = ("FDPC", "PDPC", "FedProx", "AFA-CD", "FedProx, unconstrained", "AFA-CD, unconstrained", "centralized")


def compared(file: str, out: str, *settings: str) -> Comparison:
    """Run all variants of an experiment."""
    return vefl_sim.compare(vefl_sim.load_sweep(ROOT / "experiments" / file, settings), out)


def lines(signs: Comparison, mnist: Comparison) -> list[str]:
    """The table in Markdown."""
    first, second, paper = signs.table(), mnist.table(), dict(zip(LABELS, PAPER, strict=True))
    rows = [
        "| | signs | paid | p_suc | MNIST | paid | p_suc | paper, MNIST, 400 rounds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for label in first.index:
        cells = [label]
        for table in (first, second):
            row = table.loc[label] if label in table.index else None
            cells += (
                ["", "", ""] if row is None else [f"{row['accuracy']:.4f}", f"{row['cost']:.0f}", f"{row['p_suc']:.4f}"]
            )
        cells.append(f"{paper[label]:.4f}" if label in paper else "")
        rows.append("| " + " | ".join(cell.replace("nan", "–") for cell in cells) + " |")
    return rows


def draw(signs: Comparison, mnist: Comparison) -> None:
    """Draw the accuracy by round on both data sets, side by side."""
    labels = list(signs.by_label())
    styles = line_styles(labels)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained", sharey=True)
        for place, name, comparison in zip(axes, ("traffic signs", "MNIST"), (signs, mnist), strict=True):
            for label, accuracy in curves_of(comparison, "accuracy").rows.groupby("line", sort=False):
                place.plot(accuracy["x"], accuracy["mean"], **styles[label])
            place.set(title=name, xlabel="round", ylim=(0, 1))
        axes[0].set_ylabel("test accuracy")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


def main() -> None:
    """Run what is not finished, print the table, draw the figure."""
    directory, out = sys.argv[1], (sys.argv[2:] or ["runs"])[0]
    signs = compared("schemes.toml", out, f"run.duration_s={10 if SMALL else 300}", "data.dirichlet_alpha=0.1")
    mnist = compared("mnist.toml", out, f'data.dir="{directory}"')
    print("\n".join(lines(signs, mnist)))
    draw(signs, mnist)


if __name__ == "__main__":
    main()
