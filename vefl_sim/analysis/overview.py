"""Draws a run in one picture: who took part in one round and where, accuracy or other metric and cost by round."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from vefl_sim.analysis.figures.measures import measure_of, series
from vefl_sim.analysis.figures.panel import STYLE
from vefl_sim.analysis.figures.request import Request
from vefl_sim.analysis.files import pictures, write_files
from vefl_sim.analysis.report.map import grid_lines_m
from vefl_sim.analysis.verify.verification import blaming_damage
from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.results.result import RunMeasurements

_DARK, _BLUE, _RED, _GREEN, _STREET, _GREY = "#22303c", "#4a6fa5", "#c0392b", "#1b7f4b", "#d9dee3", "#a9b4bd"
_OUTCOMES = {
    "outside": ("out of coverage", _GREY, "o"),
    "delivered": ("ordered, delivered", _GREEN, "o"),
    "lost": ("ordered, lost", _RED, "X"),
    "passed_over": ("passed over", "#7aa0cf", "v"),
    "ineligible": ("ineligible", "#e0a030", "D"),
}
"""By state of a CV in a round: label, colour and marker."""
_MAX_MARKERS = 60  # rounds; a line of more has no markers


def draw_overview(run: Run, folder: Path | None = None, round: int | None = None) -> list[Path]:
    """Write overview.png and overview.pdf into a folder, by default that of the run.

    `round` is shown on the map, by default the middle one. Of an unfinished run, the rounds so far are drawn. Raises
    BadInput if there is nothing to draw yet.
    """
    with blaming_damage(run), rc_context(STYLE):
        figure = Figure(figsize=(9.6, 5.0), layout="constrained")
        _draw(figure, run, round)
        content = pictures(figure, dpi=130)
    return [*write_files(content, "overview", folder or run.path)]


def _draw(figure: Figure, run: Run, round: int | None) -> None:
    """Draw the map on the left and the other panels on the right; what the run does not have is left out."""
    rounds, experiment = _rounds(run), run.experiment
    chosen = int(rounds["round"].iloc[(len(rounds) - 1) // 2]) if round is None else round
    if chosen not in set(rounds["round"]):
        raise BadInput(f"{run.path} has no round {chosen}: choose one from 1 to {rounds['round'].max()}.")
    panels = figure.subplot_mosaic([["map", "share"], ["map", "cost"]], width_ratios=(1.05, 1))
    try:
        _draw_scene(panels["map"], run, chosen, int(rounds["start_ns"][rounds["round"] == chosen].iloc[0]))
    except RunNotFound:  # the run has no positions
        panels["map"].remove()
    _draw_share(panels["share"], run, rounds)
    _draw_cost(panels["cost"], rounds, experiment)
    for name in ("share", "cost"):
        panels[name].set(xlabel=_unit(run), xlim=(rounds["round"].iloc[0] - 0.7, rounds["round"].iloc[-1] + 0.7))
        panels[name].locator_params(axis="x", integer=True)
    if not run.is_done:
        figure.suptitle(f"{run.state}: {len(rounds)} of {experiment.rounds} rounds", color=_RED, fontsize=10)


def _rounds(run: Run) -> pd.DataFrame:
    """The rounds of a run; raises BadInput if there are none yet."""
    rounds = run.rounds if run.is_done or run.summary else pd.DataFrame()
    if not len(rounds):
        raise BadInput(f"{run.path} ({run.state}) has no finished rounds, so that there is nothing to draw yet.")
    return rounds


def _unit(run: Run) -> str:
    """What a row of the rounds table is: only in schemes without rounds do CVs know their model's version."""
    return "window" if run.vehicles["version"].notna().any() else "round"


def _draw_scene(axes: Axes, run: Run, round: int, start_ns: int) -> None:
    """Draw streets, coverage, gNB and all vehicles at the start of a round; positions are relative to the gNB."""
    mobility, radius_m = run.table("mobility"), run.experiment.radio.coverage_radius_m
    times_ns = mobility["time_ns"].unique()
    time_ns = int(times_ns[np.abs(times_ns - start_ns).argmin()])
    vehicles = mobility[mobility["time_ns"] == time_ns].drop_duplicates("vehicle").set_index("vehicle")
    observed = run.vehicles[run.vehicles["round"] == round].drop_duplicates("cv", keep="last").set_index("cv")
    states = observed["state"].reindex(vehicles.index).fillna("outside")
    streets = _streets(run.experiment, mobility)
    for street in streets:
        axes.plot(*street.T, color=_STREET, lw=5, zorder=0, solid_joinstyle="round")
    axes.add_patch(Circle((0, 0), radius_m, fill=False, color=_BLUE, lw=1.5, ls="--"))
    axes.plot(0, 0, marker="^", color=_DARK, ms=11)
    for state, (label, colour, marker) in _OUTCOMES.items():
        own = vehicles[states == state]
        if len(own):
            axes.scatter(own["x_m"], own["y_m"], s=38, color=colour, marker=marker, label=label, zorder=3, ec="white")
    half_m = 30 + max(radius_m, min(1.35 * radius_m, max(np.abs(street).max() for street in streets)))
    axes.set(xlabel="m", ylabel="m", aspect="equal", xlim=(-half_m, half_m), ylim=(-half_m, half_m))
    axes.set_title(f"{_unit(run).capitalize()} {round}, at {time_ns / 1e9:g} s: CVs by outcome")
    axes.grid(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize=8)


def _streets(experiment: Experiment, mobility: pd.DataFrame) -> Sequence[Floats]:
    """The streets as lines, in m: those of the grid, or else where vehicles drove."""
    if experiment.mobility.kind == "idm":
        return grid_lines_m(experiment)
    return [own[["x_m", "y_m"]].to_numpy(float) for _, own in mobility.groupby("vehicle")]


def _draw_share(axes: Axes, run: Run, rounds: pd.DataFrame) -> None:
    """Draw the accuracy or other metric by round; without learning, the delivered share of the orders."""
    measured = RunMeasurements(run)
    request = Request(kind="accuracy" if rounds["loss"].notna().any() else "delivered")
    measure, known = measure_of(request.kind, measured.metric), series(measured, request)
    axes.plot(known, color=_GREEN, lw=2, ms=4, marker="o" if len(known) <= _MAX_MARKERS else "")
    axes.set_title(measure.in_round.capitalize())
    axes.set_ylim(0, 1.03 if measure.is_share else 1.08 * known.max() or 1.0)


def _draw_cost(axes: Axes, rounds: pd.DataFrame, experiment: Experiment) -> None:
    """Draw the cost of each round, and the budget if the scheme has one."""
    budget = experiment.vefl.budget if experiment.scheme.constrained else 0.0
    axes.bar(rounds["round"], rounds["cost"], color=_BLUE, width=0.7 if len(rounds) <= _MAX_MARKERS else 1.0)
    axes.set_title("Paid to the vehicles")
    axes.set_ylim(0, 1.12 * max(float(rounds["cost"].max()), budget) or 1.0)
    axes.grid(False)
    if budget:
        axes.axhline(budget, color=_RED, lw=1, ls="--")
        axes.text(rounds["round"].iloc[-1] + 0.4, budget, "budget", color=_RED, ha="right", va="bottom")
