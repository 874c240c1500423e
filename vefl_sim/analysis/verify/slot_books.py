"""The `slots` table, read once from end to end without holding it: C7–C12, and the energy that each order took."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.core.parquet import ColumnKind, Columns, ParquetFile

_KINDS: dict[str, ColumnKind] = {"slot": "integer", "cv": "integer", "prbs": "integer", "power_w": "number"}
_SLOTS = 2**36  # more than a run has


@dataclass
class SlotBooks:
    """What the slots add up to."""

    slot_s: float  # κ
    prbs: int  # Z
    max_power_w: float  # P_max
    orders: NDArray[np.int64]  # `_place` of each, ascending: of its CV and of the slot in which it was given
    transmit_j: NDArray[np.float64]  # of each order
    fault: str | None = None
    _held: tuple[int, int] = (-1, 0)  # the slot that a batch ended in, and its pRBs so far

    @classmethod
    def of(cls, evidence: Evidence) -> "SlotBooks":
        """Those of a run; orders in the order of `_place`."""
        grid, radio, orders = evidence.experiment.slots, evidence.experiment.radio, orders_by_place(evidence)
        books = cls(grid.slot_s, radio.prbs, radio.max_tx_power_w, orders.index.to_numpy(), np.zeros(len(orders)))
        for file in evidence.files("slots"):
            for batch in ParquetFile(file).batches(_KINDS):
                books.fault = books.fault or next(books._faults(batch), None)
                books._book(batch)
        return books

    def _faults(self, batch: Columns) -> Iterator[str]:
        slot, prbs, power_w = batch["slot"], batch["prbs"], batch["power_w"]
        if (np.diff(slot) < 0).any():
            yield "the slots are not in order"
        taken = self._taken(slot, prbs)
        if busy := [number for number, count in taken.items() if count > self.prbs]:
            yield f"slot {busy[0]}: more than Z = {self.prbs} pRBs are given out"
        wrong = ~((prbs > 0) & (power_w >= 0) & (power_w <= self.max_power_w * (1 + 1e-9)))
        if wrong.any():
            row = int(np.argmax(wrong))
            yield f"slot {slot[row]}: CV {batch['cv'][row]} has no pRB, or a power that is not up to P_max"

    def _taken(self, slot: NDArray[np.int64], prbs: NDArray[np.int64]) -> dict[int, int]:
        """pRBs given out in each slot; the first may have begun in the batch before."""
        numbers, rows = np.unique(slot, return_inverse=True)
        taken = dict(zip(numbers.tolist(), np.bincount(rows, prbs).astype(int).tolist(), strict=True))
        last, before = self._held
        if last in taken:
            taken[last] += before
        self._held = (int(numbers[-1]), taken[int(numbers[-1])])
        return taken

    def _book(self, batch: Columns) -> None:
        """To the last order that the CV had got by then."""
        rows = np.searchsorted(self.orders, _place(batch["cv"], batch["slot"]), side="right") - 1
        ours = (rows >= 0) & (self.orders[rows] // _SLOTS == batch["cv"])
        self.transmit_j += self.slot_s * np.bincount(rows[ours], batch["power_w"][ours], len(self.orders))
        if not ours.all():
            self.fault = self.fault or f"slot {batch['slot'][~ours][0]}: CV {batch['cv'][~ours][0]} had no order"


def orders_by_place(evidence: Evidence) -> pd.DataFrame:
    """Orders by CV and time; the index is their place. Of those under way nobody knows yet what they sent with."""
    events = evidence.events
    given = events[events["kind"] == "training_ordered"][["round", "cv", "time_ns"]].astype(np.int64)
    known = evidence.ordered[["cv", "ordered_ns", "transmit_j"]].rename(columns={"ordered_ns": "time_ns"})
    rows = given.merge(known.astype({"cv": np.int64, "time_ns": np.int64}), how="left")
    slot = -(-rows["time_ns"].to_numpy() // evidence.experiment.slots.slot_ns)  # the first that it can use
    return rows.set_index(_place(rows["cv"].to_numpy(), slot)).sort_index()


def _place(cv: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number that sorts by CV, then by slot."""
    return cv * _SLOTS + slot
