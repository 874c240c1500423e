"""The values of one run that a figure uses: a series over its rounds, samples, or one number."""

import numpy as np
import pandas as pd

from vefl_sim.analysis.figures.request import Request
from vefl_sim.core.arrays import Floats
from vefl_sim.sweep.results.measurements import floats
from vefl_sim.sweep.results.result import Measurements

SCALARS = {
    "accuracy": "final accuracy",
    "failure-rate": "share of rounds under the threshold",
    "sojourn": "mean sojourn bound [s]",
    "p_suc": "mean p_suc",
    "cost": "mean cost of a round",
    "total-cost": "total cost",
    "table": "final accuracy",
}
"""Name of the number that represents a run in comparisons, by kind of figure."""

_VALUES = {
    "accuracy": "test accuracy",
    "failure-rate": "share of seeds below {:g}",
    "sojourn": "share of CVs ≥ x",
    "p_suc": "share of cases ≥ x",
    "cost": "share of rounds ≤ x",
    "total-cost": "total cost",
}


def y_name(request: Request) -> str:
    """The name of the y-axis of a figure."""
    return _VALUES[request.kind].format(request.threshold)


def series(run: Measurements, request: Request) -> pd.Series:
    """Accuracy, whether it is below the threshold (0 or 1), or the total cost so far, by round or simulated second."""
    rounds = run.rounds
    x = rounds["end_ns"] / 1e9 if request.x == "time" else rounds["round"]
    if request.kind == "total-cost":
        return pd.Series(rounds["cost"].to_numpy(float).cumsum(), index=x.to_numpy(float))
    accuracy = pd.Series(floats(rounds["accuracy"]), index=x.to_numpy(float)).dropna()
    return (accuracy < request.threshold).astype(float) if request.kind == "failure-rate" else accuracy


def samples(run: Measurements, request: Request) -> Floats:
    """The samples of a distribution: sojourn bounds in s of CVs in coverage by round, costs of rounds, or p_suc."""
    if request.kind == "sojourn":
        return run.sojourns_s
    if request.kind == "cost":
        return floats(run.rounds["cost"])
    return _p_suc(run, request.count)


def scalar(run: Measurements, request: Request) -> float:
    """The number that represents a run in comparisons; NaN if the run has no values."""
    if request.kind in ("accuracy", "table"):
        known = run.rounds["accuracy"].dropna()
        return float(known.iloc[-1]) if len(known) else float("nan")
    if request.kind == "total-cost":
        return float(floats(run.rounds["cost"]).sum())
    values = series(run, request).to_numpy() if request.kind == "failure-rate" else samples(run, request)
    return float(values.mean()) if len(values) else float("nan")


def _p_suc(run: Measurements, count: str) -> Floats:
    """The samples of p_suc, counted as figure.count says."""
    if count == "paper":
        count = "rounds" if run.selects else "rounds-with-ineligible"
    if count.startswith("rounds"):
        column = "p_suc" if count == "rounds" else "p_suc_with_ineligible"
        return floats(run.rounds[column].dropna())
    if count == "ordered":
        return run.delivered_fractions
    return np.concatenate([run.delivered_fractions, np.zeros(run.ineligible)])
