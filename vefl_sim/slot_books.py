"""The `slots` table, read once from end to end without holding it: C7–C12, and the energy that each order took."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vefl_sim.evidence import Evidence
from vefl_sim.parquet import Columns, Kind, ParquetFile

_KINDS: dict[str, Kind] = {"slot": "integer", "cv": "integer", "prbs": "integer", "power_w": "number"}


@dataclass
class SlotBooks:
    """What the slots add up to."""

    slot_s: float  # κ
    prbs: int  # Z
    max_power_w: float  # P_max
    starts: NDArray[np.int64]  # first slot of each round
    transmit_j: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))  # (round, CV)
    fault: str | None = None
    _held: tuple[int, int] = (-1, 0)  # the slot that a batch ended in, and its pRBs so far

    @classmethod
    def of(cls, evidence: Evidence) -> "SlotBooks":
        """Those of a run."""
        grid, radio = evidence.experiment.slots, evidence.experiment.radio
        starts = evidence.rounds["start_ns"].to_numpy(np.int64) // grid.slot_ns
        books = cls(grid.slot_s, radio.prbs, radio.max_tx_power_w, starts)
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
        round = np.searchsorted(self.starts, batch["slot"], side="right")
        keys, rows = np.unique(np.column_stack([round, batch["cv"]]), axis=0, return_inverse=True)
        joules = self.slot_s * np.bincount(rows.ravel(), batch["power_w"], len(keys))
        for key, spent in zip(keys.tolist(), joules.tolist(), strict=True):
            self.transmit_j[key[0], key[1]] += spent
