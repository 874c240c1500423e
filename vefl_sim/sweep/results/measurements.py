"""What figures take from a finished run: its rounds, and three counts over its CVs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from vefl_sim.core.arrays import Floats
from vefl_sim.records.run_directory import Run

MeasuredFrom = Literal["run", "result"]
SELECTING = ("pdpc", "random")
"""Schemes that select CVs; in the others everybody takes part who can."""


class Measurements(Protocol):
    """A finished run as figures see it, wherever it is kept."""

    @property
    def source(self) -> MeasuredFrom:
        """Whether it is a run directory or a stored result."""
        ...

    @property
    def stale(self) -> bool:
        """Whether the code has changed such results since it was made."""
        ...

    @property
    def selects(self) -> bool:
        """Whether its scheme selects CVs."""
        ...

    @property
    def rounds(self) -> pd.DataFrame:
        """One row per round, with at least the columns that a stored result has."""
        ...

    @property
    def sojourns_s(self) -> Floats:
        """Sojourn bounds of the CVs in coverage, of all rounds."""
        ...

    @property
    def delivered_fractions(self) -> Floats:
        """p_suc of the CVs that had an order, of all rounds."""
        ...

    @property
    def ineligible(self) -> int:
        """How many CVs got no order because they could not do one iteration, summed over the rounds."""
        ...


@dataclass(frozen=True)
class RunMeasurements:
    """The measurements of a run directory; its tables are read when they are asked for."""

    run: Run
    selects: bool = False
    source: MeasuredFrom = "run"
    stale: bool = False  # runs of other sources have another name

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The table of rounds."""
        return self.run.rounds

    @cached_property
    def vehicles(self) -> pd.DataFrame:
        """The table of vehicles."""
        return self.run.vehicles

    @property
    def sojourns_s(self) -> Floats:
        """From the table of vehicles."""
        return floats(self.vehicles["sojourn_ns"].dropna()) / 1e9

    @property
    def delivered_fractions(self) -> Floats:
        """From the table of vehicles."""
        return floats(self.vehicles["delivered_fraction"].dropna())

    @property
    def ineligible(self) -> int:
        """From the table of vehicles."""
        return int((self.vehicles["state"] == "ineligible").sum())


def floats(column: "pd.Series[Any]") -> Floats:
    """The values of a column; a missing one is NaN."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
