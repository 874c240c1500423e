"""What a run has left behind, for somebody who checks it."""

from dataclasses import fields
from functools import cached_property
from pathlib import Path

import pandas as pd

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.run_directory import Run, read_rows
from vefl_sim.schemes.sla import Agreement, draw_agreement


class Evidence:
    """The tables of a run, and what its SLAs must have been."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def experiment(self) -> Experiment:
        """With every default."""
        return self.run.experiment

    @cached_property
    def events(self) -> pd.DataFrame:
        """The trace."""
        return self._rows("events")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per round."""
        return self._rows("rounds").set_index("round")

    @cached_property
    def ordered(self) -> pd.DataFrame:
        """The rows of `vehicles` with an order, each with its SLA."""
        rows = self._rows("vehicles")
        rows = rows[rows["state"].isin(["delivered", "lost"])].reset_index(drop=True)
        streams, sla = Streams(self.experiment.run.seed), self.experiment.sla
        agreements = {cv: vars(draw_agreement(cv, sla, streams)) for cv in rows["cv"].unique().tolist()}
        names = [field.name for field in fields(Agreement)]
        columns = pd.DataFrame([agreements[cv] for cv in rows["cv"].tolist()], rows.index, names, dtype=float)
        return rows.join(columns)

    def files(self, table: str) -> list[Path]:
        """Of a run that is not done, what the last checkpoint covers: that is what its summary is about."""
        return self.run.files(table, checkpointed=not self.run.is_done)

    def _rows(self, table: str) -> pd.DataFrame:
        return read_rows(self.files(table))

    @property
    def planned(self) -> pd.DataFrame:
        """Orders that C1–C6 bind: none of a run without constraints."""
        return self.ordered if self.experiment.scheme.constrained else self.ordered.iloc[:0]
