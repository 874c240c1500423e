"""What a figure takes from one run: values over its rounds, samples, or one number."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.figures.request import Request
from vefl_sim.results import Run

SCALARS = {
    "accuracy": "final accuracy",
    "failure-rate": "share of rounds under the threshold",
    "sojourn": "mean sojourn bound [s]",
    "p_suc": "mean p_suc",
    "cost": "mean cost of a round",
    "total-cost": "total cost",
    "table": "final accuracy",
}
"""The one number that stands for a run, by kind of figure."""

_VALUES = {
    "accuracy": "test accuracy",
    "failure-rate": "share of repeats under {:g}",
    "sojourn": "share of CVs ≥ x",
    "p_suc": "share of cases ≥ x",
    "cost": "share of rounds ≤ x",
    "total-cost": "total cost",
}


def y_name(request: Request) -> str:
    """What the curves of a figure are."""
    return _VALUES[request.kind].format(request.threshold)


def series(run: Run, request: Request) -> pd.Series:
    """Over rounds or simulated seconds: accuracy, whether it is under the threshold, or what has been paid so far."""
    rounds = run.rounds
    x = rounds["end_ns"] / 1e9 if request.x == "time" else rounds["round"]
    if request.kind == "total-cost":
        return pd.Series(rounds["cost"].to_numpy(float).cumsum(), index=x.to_numpy(float))
    accuracy = pd.Series(_floats(rounds["accuracy"]), index=x.to_numpy(float)).dropna()
    return (accuracy < request.threshold).astype(float) if request.kind == "failure-rate" else accuracy


def samples(run: Run, request: Request) -> NDArray[np.float64]:
    """Sojourn bounds in seconds of the CVs in coverage, round by round; costs of rounds; or p_suc."""
    if request.kind == "sojourn":
        return _floats(run.vehicles["sojourn_ns"].dropna()) / 1e9
    if request.kind == "cost":
        return _floats(run.rounds["cost"])
    return _p_suc(run, request.count)


def scalar(run: Run, request: Request) -> float:
    """The number that is compared from seed to seed; NaN if the run has none."""
    if request.kind in ("accuracy", "table"):
        accuracy = run.summary.get("last_accuracy")
        return float("nan") if accuracy is None else float(accuracy)
    if request.kind == "total-cost":
        return float(_floats(run.rounds["cost"]).sum())
    values = series(run, request).to_numpy() if request.kind == "failure-rate" else samples(run, request)
    return float(values.mean()) if len(values) else float("nan")


def _p_suc(run: Run, count: str) -> NDArray[np.float64]:
    if count.startswith("rounds"):
        column = "p_suc" if count == "rounds" else "p_suc_with_ineligible"
        return _floats(run.rounds[column].dropna())
    ordered = _floats(run.vehicles["delivered_fraction"].dropna())
    if count == "ordered":
        return ordered
    unable = int((run.vehicles["state"] == "ineligible").sum())
    return np.concatenate([ordered, np.zeros(unable)])


def _floats(column: "pd.Series[Any]") -> NDArray[np.float64]:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
