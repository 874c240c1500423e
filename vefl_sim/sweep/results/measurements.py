"""The measurements of a finished run that figures are drawn from: its rounds, and four quantities of its CVs.

A stored `Result` has the same attributes, so that a figure can be drawn from either.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from vefl_sim.core.arrays import Floats
from vefl_sim.learning.metric import Metric, metric_of
from vefl_sim.records.run_directory import Run

MeasuredFrom = Literal["run", "result"]


@dataclass(frozen=True)
class RunMeasurements:
    """The measurements of a run directory, whose tables are read when they are first used."""

    run: Run
    selects: bool = False  # whether the scheme selects CVs
    source: MeasuredFrom = "run"
    stale: bool = False  # a run of other sources is not found, because its name differs

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The table `rounds` of the run."""
        return self.run.rounds

    @cached_property
    def metric(self) -> Metric:
        """The metric of the run."""
        return metric_of(self.run.experiment.learning.loss, has_accuracy=bool(self.rounds["accuracy"].notna().any()))

    @cached_property
    def vehicles(self) -> pd.DataFrame:
        """The table `vehicles` of the run."""
        return self.run.vehicles

    @property
    def sojourns_s(self) -> Floats:
        """Sojourn bounds of the CVs in coverage, over all rounds."""
        return floats(self.vehicles["sojourn_ns"].dropna()) / 1e9

    @property
    def delays_s(self) -> Floats:
        """Time from the order until the update was received, of all delivered updates."""
        delivered = self.vehicles["state"] == "delivered"
        return floats(self.vehicles["delay_ns"][delivered].dropna()) / 1e9

    @property
    def delivered_fractions(self) -> Floats:
        """p_suc of the CVs that had an order, over all rounds."""
        return floats(self.vehicles["delivered_fraction"].dropna())

    @property
    def ineligible(self) -> int:
        """Number of CVs that could not do one iteration, summed over the rounds."""
        return int((self.vehicles["state"] == "ineligible").sum())


def floats(column: "pd.Series[Any]") -> Floats:
    """The values of a column as floats; missing values are NaN."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
