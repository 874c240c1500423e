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
from vefl_sim.sweep.results.result import Measurements, floats


@dataclass(frozen=True)
class Measure:
    """The names of a measure, and how many digits of it are printed."""

    number: str  # the number that represents a run: in comparisons, and against a swept key
    in_round: str = ""  # its value in one round
    sample: str = ""  # what a distribution of it is over, on the x-axis
    share: str = ""  # the y-axis of that distribution
    column: str = ""  # of `rounds`
    digits: int = 4
    is_share: bool = False  # at most 1
    lower_is_better: bool = True


_DELIVERED = "delivered share of the orders"
_ROUNDS = "share of rounds ≤ x"
MEASURES = {
    "accuracy": Measure("final accuracy", "test accuracy", is_share=True, lower_is_better=False),
    "loss": Measure("final loss", "test loss", column="loss"),
    "failure-rate": Measure(
        "share of rounds under the threshold", "share of seeds below {:g}", column="accuracy", is_share=True
    ),
    "delivered": Measure(_DELIVERED, _DELIVERED, is_share=True, lower_is_better=False),
    "sojourn": Measure(
        "mean sojourn bound [s]", "", "sojourn bound [s]", "share of CVs ≥ x", digits=2, lower_is_better=False
    ),
    "delay": Measure("mean delay of an update [s]", "", "delay of an update [s]", "share of updates ≤ x", digits=3),
    "p_suc": Measure("mean p_suc", "p_suc", "p_suc", "share of cases ≥ x", is_share=True, lower_is_better=False),
    "cost": Measure("mean cost of a round", "cost of a round", "cost per round", _ROUNDS, "cost", 1),
    "energy": Measure(
        "mean energy of a round [J]", "energy of a round [J]", "energy per round [J]", _ROUNDS, "energy_j", 2
    ),
    "total-cost": Measure("total cost", "total cost", column="cost", digits=1),
    "total-energy": Measure("total energy [J]", "total energy [J]", column="energy_j", digits=1),
}
"""By kind of figure."""

BY_METRIC = ("accuracy", "loss")
"""Kinds whose names and values depend on the metric of the runs."""
_P_SUC = {
    "ordered": "per ordered CV",
    "with-ineligible": "per CV, ineligible as 0",
    "rounds": "mean per round",
    "rounds-with-ineligible": "mean per round, ineligible as 0",
    "paper": "mean per round over C_k",
}


def measure_of(kind: str, metric: Metric | None) -> Measure:
    """The measure of a kind of figure; of runs without classes, "accuracy" is about their own metric."""
    if metric is None or metric.is_share or kind not in BY_METRIC:
        return MEASURES[kind]
    name = f"loss{metric.loss_note}" if kind == "loss" else metric.name
    return Measure(f"final {name}", f"test {name}")


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


def difference_texts(row: "pd.Series[Any]", digits: int) -> tuple[str, str]:
    """A paired difference, and half of its interval with * if it excludes 0; empty if there are no pairs."""
    if math.isnan(row["difference"]):
        return "", ""
    half = "" if math.isnan(row["half_width"]) else f"±{row['half_width']:.{digits}f}"
    return f"{row['difference']:+.{digits}f}", half + "*" * bool(row["differs"])


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
    x = run.rounds["end_ns"] / 1e9 if request.x == "time" else run.rounds["round"]
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
    if request.kind == "p_suc" and request.count in ("ordered", "with-ineligible"):
        zeros = np.zeros(run.ineligible if request.count == "with-ineligible" else 0)
        return np.concatenate([run.delivered_fractions, zeros])
    values = _values(run, request)
    return values[~np.isnan(values)]


def scalar(run: Measurements, request: Request) -> float:
    """The number that represents a run in comparisons; NaN if the run has no values."""
    if request.kind == "delivered":
        ordered = run.rounds["ordered"].sum()
        return float(run.rounds["delivered"].sum() / ordered) if ordered else math.nan
    if request.kind in BY_METRIC:
        evaluated = run.rounds[run.metric.column].notna().to_numpy(bool)
        last = _values(run, request)[evaluated][-1:]
        return float(last[0]) if np.isfinite(last).any() else math.nan
    if request.kind.startswith("total-"):
        return float(_values(run, request).sum())
    values = series(run, request).to_numpy() if request.kind == "failure-rate" else samples(run, request)
    return float(values.mean()) if len(values) else math.nan


def _values(run: Measurements, request: Request) -> Floats:
    """The measure of each round; NaN where there is none."""
    if request.kind == "delivered":
        ordered = floats(run.rounds["ordered"])
        return floats(run.rounds["delivered"]) / np.where(ordered > 0, ordered, np.nan)
    if request.kind == "accuracy":
        column = floats(run.rounds[run.metric.column])
        return np.sqrt(np.maximum(column, 0.0)) if run.metric.is_root else column
    if request.kind == "p_suc":
        with_ineligible = request.count.endswith("with-ineligible") or (request.count == "paper" and not run.selects)
        return floats(run.rounds["p_suc_with_ineligible" if with_ineligible else "p_suc"])
    return floats(run.rounds[MEASURES[request.kind].column])
