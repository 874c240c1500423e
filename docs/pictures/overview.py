"""Draw docs/pictures/overview.png from a finished quickstart run: positions, accuracy and cost.

python -m vefl_sim experiments/quickstart.toml && python docs/pictures/overview.py
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from vefl_sim import Run
from vefl_sim.analysis.runs import find_run

COLOURS = {"delivered": "#1b7f4b", "lost": "#c0392b", "passed_over": "#7aa0cf", "ineligible": "#e0a030"}
LABELS = {"delivered": "ordered, delivered", "lost": "ordered, lost", "passed_over": "passed over"}


def draw_cell(axes: Axes, run: Run, round: int) -> None:
    """Draw the street grid with all vehicles at the start of a round."""
    experiment = run.experiment
    half = experiment.roads.blocks * experiment.roads.block_m / 2
    for line in range(experiment.roads.blocks + 1):
        street = -half + line * experiment.roads.block_m
        axes.plot([street, street], [-half, half], color="#d9dee3", lw=5, zorder=0)
        axes.plot([-half, half], [street, street], color="#d9dee3", lw=5, zorder=0)
    radius = experiment.radio.coverage_radius_m
    axes.add_patch(plt.Circle((0, 0), radius, fill=False, color="#4a6fa5", lw=1.5, ls="--"))
    axes.plot(0, 0, marker="^", color="#22303c", ms=11)
    start_ns = run.rounds.set_index("round").loc[round, "start_ns"]
    mobility = run.table("mobility")
    scene = mobility[mobility["time_ns"] == start_ns].set_index("vehicle")
    vehicles = run.vehicles
    observed = vehicles[vehicles["round"] == round]
    outside = scene[~scene.index.isin(observed["cv"])]
    axes.scatter(outside["x_m"], outside["y_m"], s=14, color="#a9b4bd", label="out of coverage")
    for state, colour in COLOURS.items():
        here = scene.loc[observed[observed["state"] == state]["cv"]]
        if len(here):
            axes.scatter(
                here["x_m"], here["y_m"], s=34, color=colour, label=LABELS.get(state, state), zorder=3, ec="white"
            )
    axes.set(
        title=f"Round {round}: CVs by outcome", xlabel="m", ylabel="m", aspect="equal", xlim=(-half - 30, half + 30)
    )
    axes.set_ylim(-half - 30, half + 30)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize=8)


def draw_learning(axes: Axes, run: Run) -> None:
    """Draw the accuracy by round."""
    rounds = run.rounds
    axes.plot(rounds["round"], rounds["accuracy"], color="#1b7f4b", lw=2, marker="o", ms=4)
    axes.set(title="Test accuracy", xlabel="round", ylim=(0, 1), xlim=(0.5, len(rounds) + 0.5))
    axes.grid(color="#e8ecef")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_money(axes: Axes, run: Run) -> None:
    """Draw the cost of each round and the budget."""
    rounds = run.rounds
    axes.bar(rounds["round"], rounds["cost"], color="#4a6fa5", width=0.7)
    axes.axhline(run.experiment.vefl.budget, color="#c0392b", lw=1, ls="--")
    axes.text(len(rounds) + 0.4, run.experiment.vefl.budget, "budget", color="#c0392b", ha="right", va="bottom")
    axes.set(title="Paid to the vehicles", xlabel="round", xlim=(0.3, len(rounds) + 0.7))
    axes.set_ylim(0, 1.12 * run.experiment.vefl.budget)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def main() -> None:
    """Draw the three panels."""
    run = find_run(sys.argv[1] if len(sys.argv) > 1 else "quickstart")
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure = plt.figure(figsize=(9.6, 5.0), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.05, 1))
    draw_cell(figure.add_subplot(grid[:, 0]), run, round=10)
    draw_learning(figure.add_subplot(grid[0, 1]), run)
    draw_money(figure.add_subplot(grid[1, 1]), run)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
