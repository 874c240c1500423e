"""Checks C7–C12 and sums the transmit energy of each order from the `slots` table, read batch by batch."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.core.parquet import ColumnKind, Columns, ParquetFile

_KINDS: dict[str, ColumnKind] = {"slot": "integer", "cv": "integer", "prbs": "integer", "power_w": "number"}
_SLOTS = 2**36  # larger than the number of slots of any run


@dataclass
class SlotBooks:
    """The transmit energy of each order, and the first fault found in the slots."""

    slot_s: float  # κ
    prbs: int  # Z
    max_power_w: float  # P_max
    orders: NDArray[np.int64]  # `_sort_key` of each order (its CV, and the first slot it can use), ascending
    transmit_j: NDArray[np.float64]  # of each order
    fault: str | None = None
    _last_slot: tuple[int, int] = (-1, 0)  # last slot of the previous batch, and its pRBs in use so far

    @classmethod
    def of(cls, evidence: Evidence) -> "SlotBooks":
        """Read all slots of a run; its orders are sorted by `_sort_key`."""
        grid, radio, orders = evidence.experiment.slots, evidence.experiment.radio, orders_by_key(evidence)
        books = cls(grid.slot_s, radio.prbs, radio.max_tx_power_w, orders.index.to_numpy(), np.zeros(len(orders)))
        for file in evidence.files("slots"):
            for batch in ParquetFile(file).batches(_KINDS):
                books.fault = books.fault or next(books._faults(batch), None)
                books._add_energy(batch)
        return books

    def _faults(self, batch: Columns) -> Iterator[str]:
        """The violations of C7–C12 in a batch, as sentences."""
        slot, prbs, power_w = batch["slot"], batch["prbs"], batch["power_w"]
        if (np.diff(slot) < 0).any():
            yield "the slots are not in order"
        used = self._used_prbs(slot, prbs)
        if full := [number for number, count in used.items() if count > self.prbs]:
            yield f"slot {full[0]}: more than Z = {self.prbs} pRBs are allocated"
        wrong = ~((prbs > 0) & (power_w >= 0) & (power_w <= self.max_power_w * (1 + 1e-9)))
        if wrong.any():
            row = int(np.argmax(wrong))
            yield f"slot {slot[row]}: CV {batch['cv'][row]} has no pRB, or its power is not between 0 and P_max"

    def _used_prbs(self, slot: NDArray[np.int64], prbs: NDArray[np.int64]) -> dict[int, int]:
        """Number of pRBs allocated in each slot; the first slot may have begun in the previous batch."""
        numbers, rows = np.unique(slot, return_inverse=True)
        used = dict(zip(numbers.tolist(), np.bincount(rows, prbs).astype(int).tolist(), strict=True))
        last, before = self._last_slot
        if last in used:
            used[last] += before
        self._last_slot = (int(numbers[-1]), used[int(numbers[-1])])
        return used

    def _add_energy(self, batch: Columns) -> None:
        """Add the energy of each row to the last order that its CV had received by then."""
        rows = np.searchsorted(self.orders, _sort_key(batch["cv"], batch["slot"]), side="right") - 1
        ordered = (rows >= 0) & (self.orders[rows] // _SLOTS == batch["cv"])
        self.transmit_j += self.slot_s * np.bincount(rows[ordered], batch["power_w"][ordered], len(self.orders))
        if not ordered.all():
            self.fault = self.fault or f"slot {batch['slot'][~ordered][0]}: CV {batch['cv'][~ordered][0]} had no order"


def orders_by_key(evidence: Evidence) -> pd.DataFrame:
    """All orders, indexed and sorted by `_sort_key`; `transmit_j` is missing for orders that are not finished."""
    events = evidence.events
    orders = events[events["kind"] == "training_ordered"][["round", "cv", "time_ns"]].astype(np.int64)
    finished = evidence.ordered[["cv", "ordered_ns", "transmit_j"]].rename(columns={"ordered_ns": "time_ns"})
    rows = orders.merge(finished.astype({"cv": np.int64, "time_ns": np.int64}), how="left")
    slot = -(-rows["time_ns"].to_numpy() // evidence.experiment.slots.slot_ns)  # the first slot that the order can use
    return rows.set_index(_sort_key(rows["cv"].to_numpy(), slot)).sort_index()


def _sort_key(cv: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """One integer per row that sorts by CV, then by slot."""
    return cv * _SLOTS + slot
