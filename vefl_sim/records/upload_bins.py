"""The rows of the `uploads` table: what each CV with bits to send was allocated and sent, in bins of 50 ms."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, cast

from vefl_sim.core.clock import SlotGrid
from vefl_sim.core.state import State, from_state, state_of
from vefl_sim.protocol.mac import Burst

BIN_NS = 50_000_000  # a whole number of slots in every numerology


@dataclass
class UploadBin:
    """The slots of one CV within one bin so far."""

    cv: int
    first_left: float  # bits left at the start of the bin, or at the start of an upload that began in it
    left: float  # bits left now
    bits: float = 0.0  # sent in the bin by an earlier upload of the CV
    slots: int = 0  # in which the CV had a pRB
    prbs: int = 0  # summed over these slots
    power_w: float = 0.0  # summed over these slots

    def row(self, start_ns: int) -> dict[str, Any]:
        """The row of the table; pRBs and power are means over the slots in which the CV had a pRB."""
        return {
            "time_ns": start_ns,
            "cv": self.cv,
            "slots": self.slots,
            "prbs": self.prbs / self.slots if self.slots else 0.0,
            "power_w": self.power_w / self.slots if self.slots else 0.0,
            "bits": self.bits + (self.first_left - self.left),
            "bits_left": self.left,
        }


class UploadBins:
    """Sums up the slots of bursts by CV and bin; the sums do not depend on where bursts are cut."""

    def __init__(self, grid: SlotGrid, append: Callable[[dict[str, Any]], None]) -> None:
        self._slots_per_bin, self._append = BIN_NS // grid.slot_ns, append
        self._number, self._open = 0, dict[int, UploadBin]()  # the current bin, and its CVs

    def add(self, burst: Burst) -> None:
        """Add the slots of a burst, except for the bits of its last slot, which may still be lost."""
        first = 0
        while first < burst.slots:
            number = (burst.first_slot + first) // self._slots_per_bin
            end = min(burst.slots, (number + 1) * self._slots_per_bin - burst.first_slot)
            if number != self._number:
                self.close()
                self._number = number
            self._add(burst, first, end)
            first = end

    def _add(self, burst: Burst, first: int, end: int) -> None:
        """Add the slots from `first` up to `end`, which are in the same bin; most bursts are short, so not by numpy."""
        left = burst.log.bits_left[[first, min(end, burst.slots - 1)]].T.tolist()
        prbs, power_w = (column[first:end].T.tolist() for column in (burst.log.prbs, burst.log.power_w))
        for row, upload in enumerate(burst.uploads):
            before, after = left[row]
            sums = self._open.get(upload.cv)
            if sums is None:
                sums = self._open[upload.cv] = UploadBin(upload.cv, before, before)
            elif sums.left != before:  # another upload of the CV ended in this bin
                sums.bits, sums.first_left = sums.bits + (sums.first_left - sums.left), before
            sums.left = after
            sums.slots += end - first - prbs[row].count(0)
            sums.prbs += sum(prbs[row])
            sums.power_w = reduce(add, power_w[row], sums.power_w)  # one by one; `sum` may add in another order

    def receive(self, cv: int, bits: float) -> None:
        """Add bits of the last slot of a burst, which the gNB has received."""
        sums = self._open[cv]
        sums.left = max(0.0, sums.left - bits)

    def close(self) -> None:
        """Append the rows of the current bin, in the order of the CVs."""
        for cv in sorted(self._open):
            self._append(self._open[cv].row(self._number * BIN_NS))
        self._open.clear()

    def state(self) -> State:
        """The current bin, whose rows are not in the table yet, for a checkpoint."""
        return {"number": self._number, "open": cast(State, state_of([*self._open.values()]))}

    def restore(self, state: State) -> None:
        """Restore the current bin from a checkpoint."""
        self._number = state["number"]
        self._open = {sums.cv: sums for sums in from_state(list[UploadBin], state["open"])}
