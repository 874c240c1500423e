"""What each kind of figure measures in a run: a series over its rounds, samples, or one number; and their names."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.request import Request
from vefl_sim.core.arrays import Floats
from vefl_sim.learning.metric import Metric, common_metric
from vefl_sim.sweep.results.measurements import floats
from vefl_sim.sweep.results.result import Measurements


@dataclass(frozen=True)
class Measure:
    """The names of a measure, and how many digits of it are printed."""

    number: str  # the number that represents a run: in comparisons, and against a swept key
    in_round: str = ""  # its value in one round
    sample: str = ""  # what a distribution of it is over, on the x-axis
    share: str = ""  # the y-axis of that distribution
    digits: int = 4
    is_share: bool = False  # at most 1
    lower_is_better: bool = True


MEASURES = {
    "accuracy": Measure("final accuracy", "test accuracy", is_share=True, lower_is_better=False),
    "loss": Measure("final loss", "test loss"),
    "failure-rate": Measure("share of rounds under the threshold", "share of seeds below {:g}", is_share=True),
    "delivered": Measure(
        "delivered share of the orders", "delivered share of the orders", is_share=True, lower_is_better=False
    ),
    "sojourn": Measure("mean sojourn bound [s]", "", "sojourn bound [s]", "share of CVs ≥ x", 2, lower_is_better=False),
    "delay": Measure("mean delay of an update [s]", "", "delay of an update [s]", "share of updates ≤ x", digits=3),
    "p_suc": Measure("mean p_suc", "p_suc", "p_suc", "share of cases ≥ x", is_share=True, lower_is_better=False),
    "cost": Measure("mean cost of a round", "cost of a round", "cost per round", "share of rounds ≤ x", digits=1),
    "energy": Measure(
        "mean energy of a round [J]", "energy of a round [J]", "energy per round [J]", "share of rounds ≤ x", digits=2
    ),
    "total-cost": Measure("total cost", "total cost", digits=1),
    "total-energy": Measure("total energy [J]", "total energy [J]", digits=1),
}
"""By kind of figure."""

BY_METRIC = ("accuracy", "loss")
"""Kinds whose names and values depend on the metric of the runs."""
_COLUMNS = {"loss": "loss", "failure-rate": "accuracy", "cost": "cost"}
_COLUMNS |= {"energy": "energy_j", "total-cost": "cost", "total-energy": "energy_j"}
_P_SUC = {"ordered": "per ordered CV", "with-ineligible": "per CV, ineligible as 0"}
_P_SUC |= {"rounds": "mean per round", "rounds-with-ineligible": "mean per round, ineligible as 0"}
_P_SUC |= {"paper": "mean per round over C_k"}


def measure_of(kind: str, metric: Metric | None) -> Measure:
    """The measure of a kind of figure; of runs without classes, "accuracy" is about their own metric."""
    if metric is None or metric.is_share or kind not in BY_METRIC:
        return MEASURES[kind]
    if kind == "loss":
        return Measure(f"final loss{metric.loss_note}", f"test loss{metric.loss_note}")
    return Measure(f"final {metric.name}", f"test {metric.name}")


def decimals(values: Iterable[float], least: int) -> int:
    """How many decimals a column needs to show two significant digits of its smallest value, but at least `least`.

    Values below a millionth of the largest count as zero.
    """
    sizes = [abs(value) for value in values if np.isfinite(value) and value]
    smallest = min((size for size in sizes if size >= 1e-6 * max(sizes)), default=1.0)
    return max(least, 1 - math.floor(math.log10(smallest)))


def difference_decimals(differences: "pd.DataFrame | pd.Series[Any]", least: int) -> int:
    """How many decimals a difference, or a column of them, needs; a small one in a wide interval needs no more."""
    return decimals(np.atleast_1d(np.fmax(np.abs(differences["difference"]), differences["half_width"])), least)


def metric_in(runs: Iterable[Measurements]) -> Metric | None:
    """The metric of runs that have learnt; None if there are none, or if they have different ones."""
    return common_metric(run.metric for run in runs if run.rounds["loss"].notna().any())


def y_name(request: Request, metric: Metric | None = None) -> str:
    """The name of the y-axis of a figure of runs with this metric."""
    measure = measure_of(request.kind, metric)
    if request.against_key:
        return measure.number
    return measure.share if request.is_distribution else measure.in_round.format(request.threshold)


def x_name(request: Request) -> str:
    """The name of the x-axis of a figure that is not drawn against a swept key."""
    if not request.is_distribution:
        return "simulated time [s]" if request.x == "time" else "round"
    count = f", {_P_SUC[request.count]}" if request.kind == "p_suc" else ""
    return f"x = {MEASURES[request.kind].sample}{count}"


def series(run: Measurements, request: Request) -> pd.Series:
    """The measure by round or simulated second: totals up to there, failures as 0 or 1; rounds without it are left out.

    An infinite loss, of a model that diverged, counts as no value.
    """
    rounds = run.rounds
    x = rounds["end_ns"] / 1e9 if request.x == "time" else rounds["round"]
    values = _values(run, request)
    if request.kind.startswith("total-"):
        values = values.cumsum()
    known = pd.Series(values, index=x.to_numpy(float))[np.isfinite(values)]
    return (known < request.threshold).astype(float) if request.kind == "failure-rate" else known


def samples(run: Measurements, request: Request) -> Floats:
    """The samples of a distribution: of CVs in coverage by round, delivered updates, rounds, or cases of p_suc."""
    if request.kind == "sojourn":
        return run.sojourns_s
    if request.kind == "delay":
        return run.delays_s
    if request.kind == "p_suc":
        return _p_suc(run, request.count)
    return floats(run.rounds[_COLUMNS[request.kind]])


def scalar(run: Measurements, request: Request) -> float:
    """The number that represents a run in comparisons; NaN if the run has no values."""
    if request.kind == "delivered":
        ordered = run.rounds["ordered"].sum()
        return float(run.rounds["delivered"].sum() / ordered) if ordered else float("nan")
    if request.kind in BY_METRIC:
        evaluated = floats(run.rounds[run.metric.column].notna())
        last = _values(run, request)[evaluated > 0][-1:]
        return float(last[0]) if np.isfinite(last).any() else float("nan")
    if request.kind.startswith("total-"):
        return float(floats(run.rounds[_COLUMNS[request.kind]]).sum())
    values = series(run, request).to_numpy() if request.kind == "failure-rate" else samples(run, request)
    return float(values.mean()) if len(values) else float("nan")


def _values(run: Measurements, request: Request) -> Floats:
    """The measure of each round; NaN where there is none."""
    if request.kind == "delivered":
        return _delivered(run.rounds)
    if request.kind == "accuracy":
        column = floats(run.rounds[run.metric.column])
        return np.sqrt(np.maximum(column, 0.0)) if run.metric.is_root else column
    return floats(run.rounds[_column(run, request)])


def _delivered(rounds: pd.DataFrame) -> Floats:
    """Delivered over ordered updates of each round; NaN if nobody got an order."""
    ordered = floats(rounds["ordered"])
    return floats(rounds["delivered"]) / np.where(ordered > 0, ordered, np.nan)


def _column(run: Measurements, request: Request) -> str:
    """The column of `rounds` with the measure."""
    if request.kind != "p_suc":
        return _COLUMNS[request.kind]
    return "p_suc_with_ineligible" if _counts_ineligible(run, request.count) else "p_suc"


def _counts_ineligible(run: Measurements, count: str) -> bool:
    return count.endswith("with-ineligible") or (count == "paper" and not run.selects)


def _p_suc(run: Measurements, count: str) -> Floats:
    """The samples of p_suc, counted as figure.count says."""
    with_ineligible = _counts_ineligible(run, count)
    if count.startswith("rounds") or count == "paper":
        return floats(run.rounds["p_suc_with_ineligible" if with_ineligible else "p_suc"].dropna())
    zeros = np.zeros(run.ineligible if with_ineligible else 0)
    return np.concatenate([run.delivered_fractions, zeros])
