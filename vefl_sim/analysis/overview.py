"""Draws a run in one picture: who took part in one round and where, accuracy or other metric and cost by round."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.drawing import write_files
from vefl_sim.analysis.figures.style import STYLE, require_matplotlib
from vefl_sim.analysis.verify.verification import blaming_damage
from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.results.measurements import RunMeasurements, floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DARK, _BLUE, _RED, _GREEN, _STREET = "#22303c", "#4a6fa5", "#c0392b", "#1b7f4b", "#d9dee3"
_OUTCOMES = {
    "delivered": ("ordered, delivered", _GREEN, "o"),
    "lost": ("ordered, lost", _RED, "X"),
    "passed_over": ("passed over", "#7aa0cf", "v"),
    "ineligible": ("ineligible", "#e0a030", "D"),
}
"""By state of a CV in a round: label, colour and marker."""
_MAX_MARKERS = 60  # rounds; a line of more has no markers
_Panel = Callable[["Axes"], None]


def draw_overview(run: Run, folder: Path | None = None, round: int | None = None) -> list[Path]:
    """Write overview.png and overview.pdf into a folder, by default that of the run; needs matplotlib.

    `round` is shown on the map, by default the middle one. Of an unfinished run, the rounds so far are drawn. Raises
    BadInput if there is nothing to draw yet.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with blaming_damage(run), rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(9.6, 5.0), layout="constrained")
        _draw(figure, run, round)
        content = {f".{ending}": _file_content(figure, ending) for ending in ("png", "pdf")}
    return [*write_files(content, "overview", folder or run.path)]


def _draw(figure: "Figure", run: Run, round: int | None) -> None:
    """Draw the map on the left and the other panels on the right; what the run does not have is left out."""
    rounds, experiment = _rounds(run), run.experiment
    chosen = int(rounds["round"].iloc[(len(rounds) - 1) // 2]) if round is None else round
    if chosen not in set(rounds["round"]):
        raise BadInput(f"{run.path} has no round {chosen}: choose one from 1 to {rounds['round'].max()}.")
    curves: list[_Panel] = [lambda axes: _draw_money(axes, rounds, experiment)]
    if rounds["loss"].notna().any():
        curves.insert(0, lambda axes: _draw_metric(axes, run, rounds))
    elif rounds["ordered"].any():
        curves.insert(0, lambda axes: _draw_delivered(axes, rounds))
    scene = _Scene.of(run, rounds, chosen)
    places = figure.add_gridspec(len(curves), 2 if scene else 1, width_ratios=(1.05, 1) if scene else None)
    if scene:
        scene.draw(figure.add_subplot(places[:, 0]))
    for place, draw in enumerate(curves):
        axes = figure.add_subplot(places[place, -1])
        draw(axes)
        _set_rounds(axes, rounds, _unit(run.vehicles))
    if not run.is_done:
        figure.suptitle(f"{run.state}: {len(rounds)} of {experiment.rounds} rounds", color=_RED, fontsize=10)


def _rounds(run: Run) -> pd.DataFrame:
    """The rounds of a run; raises BadInput if there are none yet."""
    try:
        rounds = run.rounds
    except RunNotFound:
        if run.is_done:
            raise
        rounds = pd.DataFrame()
    if not len(rounds):
        raise BadInput(f"{run.path} ({run.state}) has no finished rounds, so that there is nothing to draw yet.")
    return rounds


def _unit(vehicles: pd.DataFrame) -> str:
    """What a row of the rounds table is: only in schemes without rounds do CVs know their model's version."""
    return "window" if vehicles["version"].notna().any() else "round"


class _Scene:
    """All vehicles at the start of a round, and what became of the CVs in coverage."""

    def __init__(
        self, experiment: Experiment, mobility: pd.DataFrame, vehicles: pd.DataFrame, start: pd.Series
    ) -> None:
        self._experiment, self._mobility = experiment, mobility
        times_ns = mobility["time_ns"].unique()
        self._time_ns = int(times_ns[np.abs(times_ns - start["start_ns"]).argmin()])
        self._positions = mobility[mobility["time_ns"] == self._time_ns].drop_duplicates("vehicle").set_index("vehicle")
        observed = vehicles[vehicles["round"] == start["round"]].drop_duplicates("cv", keep="last").set_index("cv")
        self._states = observed["state"].reindex(self._positions.index)
        self._round, self._unit = int(start["round"]), _unit(vehicles)

    @classmethod
    def of(cls, run: Run, rounds: pd.DataFrame, round: int) -> "_Scene | None":
        """The scene of a round; None if the run has no positions."""
        try:
            mobility = run.table("mobility")
        except RunNotFound:
            return None
        start = rounds[rounds["round"] == round].iloc[0]
        return cls(run.experiment, mobility, run.vehicles, start) if len(mobility) else None

    def draw(self, axes: "Axes") -> None:
        """Draw streets, coverage, gNB and vehicles; positions are relative to the gNB."""
        from matplotlib.patches import Circle

        radius_m = self._experiment.radio.coverage_radius_m
        streets = self._streets()
        for street in streets:
            axes.plot(*street.T, color=_STREET, lw=5, zorder=0, solid_joinstyle="round")
        axes.add_patch(Circle((0, 0), radius_m, fill=False, color=_BLUE, lw=1.5, ls="--"))
        axes.plot(0, 0, marker="^", color=_DARK, ms=11)
        outside = self._positions[self._states.isna()]
        axes.scatter(outside["x_m"], outside["y_m"], s=14, color="#a9b4bd", label="out of coverage")
        for state, (label, colour, marker) in _OUTCOMES.items():
            here = self._positions[self._states == state]
            if len(here):
                x, y = here["x_m"], here["y_m"]
                axes.scatter(
                    x,
                    y,
                    s=75 if state == "lost" else 38,
                    color=colour,
                    marker=marker,
                    label=label,
                    zorder=3,
                    ec="white",
                )
        half_m = max(radius_m, min(1.35 * radius_m, max(np.abs(street).max() for street in streets)))
        limits = (-half_m - 30, half_m + 30)
        axes.set(title=self._title(), xlabel="m", ylabel="m", aspect="equal", xlim=limits, ylim=limits)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize=8)

    def _title(self) -> str:
        return f"{self._unit.capitalize()} {self._round}, at {self._time_ns / 1e9:g} s: CVs by outcome"

    def _streets(self) -> Sequence[Floats]:
        """The streets as lines, in m: those of the grid, or else where vehicles drove."""
        roads = self._experiment.roads
        if self._experiment.mobility.kind != "idm":
            return [own[["x_m", "y_m"]].to_numpy(float) for _, own in self._mobility.groupby("vehicle")]
        lines = []
        for axis, (across, along) in enumerate((roads.blocks_xy[::-1], roads.blocks_xy)):
            half_m = along * roads.block_m / 2
            for place in (np.arange(across + 1) - across / 2) * roads.block_m:
                line = np.array([[-half_m, place], [half_m, place]])
                lines.append(line[:, ::-1] if axis else line)
        return lines


def _draw_metric(axes: "Axes", run: Run, rounds: pd.DataFrame) -> None:
    metric = RunMeasurements(run).metric
    values = np.array([metric.of_column(value) for value in floats(rounds[metric.column])])
    _draw_share(axes, rounds["round"], values)
    axes.set(title=f"Test {metric.name}")
    if not metric.is_share:
        axes.set_ylim(0, 1.08 * float(np.max(values, initial=0.0, where=np.isfinite(values))) or 1.0)


def _draw_delivered(axes: "Axes", rounds: pd.DataFrame) -> None:
    ordered = floats(rounds["ordered"])
    _draw_share(axes, rounds["round"], floats(rounds["delivered"]) / np.where(ordered > 0, ordered, np.nan))
    axes.set(title="Delivered share of the orders")


def _draw_share(axes: "Axes", x: pd.Series, share: Floats) -> None:
    known = np.isfinite(share)
    marker = "o" if known.sum() <= _MAX_MARKERS else ""
    axes.plot(x[known], share[known], color=_GREEN, lw=2, marker=marker, ms=4)
    axes.set_ylim(0, 1.03)
    axes.grid(color="#e8ecef")


def _draw_money(axes: "Axes", rounds: pd.DataFrame, experiment: Experiment) -> None:
    """Draw the cost of each round, and the budget if the scheme has one."""
    cost, budget = floats(rounds["cost"]), experiment.vefl.budget if experiment.scheme.constrained else 0.0
    axes.bar(rounds["round"], cost, color=_BLUE, width=0.7 if len(rounds) <= _MAX_MARKERS else 1.0)
    axes.set(title="Paid to the vehicles")
    axes.set_ylim(0, 1.12 * max(float(cost.max()), budget) or 1.0)
    if budget:
        axes.axhline(budget, color=_RED, lw=1, ls="--")
        axes.text(rounds["round"].iloc[-1] + 0.4, budget, "budget", color=_RED, ha="right", va="bottom")


def _set_rounds(axes: "Axes", rounds: pd.DataFrame, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel=name, xlim=(rounds["round"].iloc[0] - 0.7, rounds["round"].iloc[-1] + 0.7))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _file_content(figure: "Figure", ending: str) -> bytes:
    file = BytesIO()
    no_date = {"pdf": {"CreationDate": None}, "png": {"Software": None}}
    figure.savefig(file, format=ending, dpi=130, metadata=no_date[ending])
    return file.getvalue()
