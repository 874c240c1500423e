"""The recorded data of a run that its verification uses."""

from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.run_directory import Run
from vefl_sim.records.table_parts import read_rows
from vefl_sim.schemes.sla import Agreement, draw_agreement


class Evidence:
    """The tables of a run, and the SLAs of its CVs drawn again from the seed."""

    def __init__(self, run: Run) -> None:
        """Of a run that is not done, all is taken from its newest usable checkpoint, as it may still be running."""
        self.run, self.is_done = run, run.is_done
        self.last: Checkpoint | None = None
        self.faults: list[str] = []  # of the checkpoints
        if self.is_done:
            return
        checkpoints = Checkpoints(run.path)
        try:
            self.last, self.faults = checkpoints.newest()
        except BadInput as error:
            self.last, self.faults = checkpoints.last_readable(), [*error.problems]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of the run, or those up to its checkpoint."""
        return self.last.figures if self.last else self.run.summary

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment of the run, with all defaults."""
        return self.run.experiment

    @cached_property
    def events(self) -> pd.DataFrame:
        """The trace: one row per event."""
        return self._rows("events")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The rounds table, indexed by round."""
        return self._rows("rounds").set_index("round")

    @cached_property
    def ordered(self) -> pd.DataFrame:
        """The rows of the vehicles table that have an order, joined with the SLA of their CV."""
        rows = self._rows("vehicles")
        rows = rows[rows["state"].isin(["delivered", "lost"])].reset_index(drop=True)
        streams, sla = Streams(self.experiment.run.seed), self.experiment.sla
        agreements = {cv: vars(draw_agreement(cv, sla, streams)) for cv in rows["cv"].unique().tolist()}
        names = [field.name for field in fields(Agreement)]
        columns = pd.DataFrame([agreements[cv] for cv in rows["cv"].tolist()], rows.index, names, dtype=float)
        return rows.join(columns)

    @cached_property
    def uploads(self) -> pd.DataFrame:
        """What each CV sent, in bins of 50 ms."""
        return self._rows("uploads")

    @cached_property
    def outages(self) -> pd.DataFrame:
        """Slots, bits and energy of each order that were lost because its grant was above the capacity."""
        return self._rows("outages")

    @cached_property
    def broadcasts(self) -> pd.DataFrame:
        """The broadcasts of the model."""
        return self._rows("broadcasts")

    @cached_property
    def model_ns(self) -> pd.Series:
        """Time from each order until its CV had the model; 0 if the downlink is ignored."""
        none = pd.Series(0, self.ordered.index, dtype=np.int64)
        if self.experiment.downlink.kind == "ignored":
            return none
        rows = self.broadcasts
        durations = (rows["end_ns"] - rows["ordered_ns"]).set_axis(rows["ordered_ns"])
        return self.ordered["ordered_ns"].map(durations).fillna(0).astype(np.int64)

    def files(self, table: str) -> list[Path]:
        """The files of a table; of an unfinished run its part files, as a failed one may have saved later rows."""
        if not self.last:
            return self.run.files(table)
        if table not in self.last.tables:
            raise RunNotFound(f"the checkpoint of {self.run.path} has no table {table}.")
        return [self.run.path / "parts" / part.file for part in self.last.tables[table]]

    def _rows(self, table: str) -> pd.DataFrame:
        return read_rows(self.files(table))

    @property
    def planned(self) -> pd.DataFrame:
        """Orders that must satisfy C1–C6; none in a run without constraints."""
        return self.ordered if self.experiment.scheme.constrained else self.ordered.iloc[:0]
