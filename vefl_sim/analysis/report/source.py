"""What a page reads from a run directory, which may come from a stranger: each table once, bounded, and checked."""

from contextlib import suppress
from functools import cached_property
from typing import Any

import pandas as pd

from vefl_sim.analysis.events import rows_of
from vefl_sim.analysis.summary import GrantCounts, trains_centrally
from vefl_sim.analysis.why import Explanations
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import NotResumable, RunNotFound, VeflError
from vefl_sim.core.files import read_text
from vefl_sim.experiment.changes import begun, with_changes
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.metric import Metric, metric_of_summary
from vefl_sim.records.identity import recorded_versions
from vefl_sim.records.run_directory import Run, RunState

MAX_ROWS = 5_000_000
"""Rows of a table that a page accepts; 2000 s of the paper's traffic have 50,000."""


class Source:
    """The tables and notes of a run; of an unfinished run, up to its last checkpoint."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.state: RunState = run.state
        self._tables: dict[str, pd.DataFrame | None] = {}

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment with every default."""
        return self.run.experiment

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of the run, or of one that is not done up to its last checkpoint; empty before the first."""
        return self.run.summary

    @cached_property
    def metric(self) -> Metric:
        """The metric of the run, such as its accuracy."""
        return metric_of_summary(self.experiment.learning.loss, self.summary)

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """The rows of the rounds table."""
        return rows_of(self._main_table("rounds"))

    @cached_property
    def budget(self) -> float:
        """Sum of the budgets Ξ of all rounds."""
        begun_by = [begun(self.experiment, row["round"], row["start_ns"]) for row in self.rounds]
        return sum(with_changes(self.experiment, changes).vefl.budget for changes in begun_by)

    @cached_property
    def vehicles(self) -> list[dict[str, Any]]:
        """The rows of the vehicles table."""
        return rows_of(self._main_table("vehicles"))

    @cached_property
    def explanations(self) -> Explanations:
        """The events of the run, with an explanation of each update."""
        return Explanations(self._main_table("events"), self.experiment)

    def _main_table(self, name: str) -> pd.DataFrame:
        """A table that every run has once it has a checkpoint; before, it is empty."""
        table = self.table(name)
        if table is None and (self.run.is_done or self.summary):
            return self.run.table(name)  # says what is missing
        return pd.DataFrame() if table is None else table

    def table(self, name: str) -> pd.DataFrame | None:
        """A table; None if this run has not recorded it."""
        if name not in self._tables:
            try:
                self.run.files(name)
            except RunNotFound:
                self._tables[name] = None
            else:
                self._tables[name] = self.run.table(name)
        table = self._tables[name]
        if table is not None and len(table) > MAX_ROWS:
            raise RunNotFound(
                f"{self.run.path} is too long for a page: its table {name} has {len(table)} rows, more than {MAX_ROWS}."
            )
        return table

    def total(self, column: str) -> float:
        """The sum of a column of the rounds table."""
        return sum(row[column] or 0 for row in self.rounds)

    @cached_property
    def grants(self) -> GrantCounts | None:
        """The grants of the whole run; None if it cannot lose any, or if no CV sent anything."""
        outages = self.table("outages")
        counts = None if outages is None else GrantCounts.of(outages)
        return counts if counts and counts.used else None

    @cached_property
    def grants_by_round(self) -> dict[int, GrantCounts]:
        """The grants of the orders of each round that gave any; empty if the run cannot lose grants."""
        outages = self.table("outages") if self.grants else None
        if outages is None:
            return {}
        return {
            int(number): GrantCounts.of(outages[outages["round"] == number]) for number in outages["round"].unique()
        }

    @cached_property
    def versions(self) -> dict[str, Any]:
        """What versions.json notes; empty if it cannot be read."""
        with suppress(NotResumable):
            return recorded_versions(self.run.path)
        return {}

    @cached_property
    def failure(self) -> str | None:
        """The error of a failed run."""
        with suppress(OSError, ValueError, VeflError):
            return read_text(self.run.path / "FAILED").strip()[:2000] or None
        return None

    @cached_property
    def without_rounds(self) -> bool:
        """Whether the scheme has windows instead of rounds: CVs then get orders at any time."""
        return any(started["version"] is not None for started in self.explanations.started.values())

    @property
    def unit(self) -> str:
        """What the rows of the rounds table are called."""
        return "window" if self.without_rounds else "round"

    @property
    def trains_centrally(self) -> bool:
        """Whether no CV ever gets an order."""
        return trains_centrally(self.experiment)

    @property
    def end_s(self) -> float:
        """Simulated time up to which the run is recorded."""
        return to_s(max((row["end_ns"] for row in self.rounds), default=0))
