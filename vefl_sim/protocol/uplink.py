"""Uplink buffers: the updates that CVs are sending or waiting to send."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from simpy import Event

from vefl_sim.core.arrays import Floats
from vefl_sim.core.state import NOT_SAVED
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.messages import TrainOrder


@dataclass
class Upload:
    """One update on its way to the gNB."""

    order: TrainOrder = field(metadata=NOT_SAVED)
    account: Account = field(metadata=NOT_SAVED)
    received: Event = field(metadata=NOT_SAVED)  # succeeds when the gNB has the last bit
    cause: int  # number of the last trace event of this upload
    earliest_slot: int  # first slot in which it may be scheduled
    slots: int = 0  # number of slots in which it was scheduled
    snr_sum: float = 0.0  # linear SNR, mean over its pRBs, summed over these slots
    lost_slots: int = 0  # slots whose grant was above the capacity, so that nothing arrived
    lost_j: float = 0.0  # energy of these slots
    unreported: Floats = field(default_factory=lambda: np.zeros(0))  # bits lost in the last slots; see Knowledge

    @property
    def cv(self) -> int:
        """Number of the CV that sends the update."""
        return self.order.cv

    @property
    def mean_snr_db(self) -> float | None:
        """Mean received SNR of a pRB over the slots used; None before the first."""
        return 10 * math.log10(self.snr_sum / self.slots) if self.snr_sum > 0 else None


@dataclass
class Uplink:
    """All queued uploads, at most one per CV."""

    _uploads: dict[int, Upload] = field(default_factory=dict)

    def add(self, upload: Upload) -> None:
        """Queue an upload."""
        self._uploads[upload.cv] = upload

    def remove(self, cv: int) -> None:
        """Remove the upload of a CV because it was received or lost."""
        self._uploads.pop(cv, None)

    def __contains__(self, upload: Upload) -> bool:
        return self._uploads.get(upload.cv) is upload

    def __iter__(self) -> Iterator[Upload]:
        return iter(self._uploads.values())

    def next_slot(self, slot: int) -> int | None:
        """The first slot from `slot` on in which a CV may send; None when nothing is queued."""
        if not self._uploads:
            return None
        return max(slot, min(upload.earliest_slot for upload in self))

    def eligible(self, slot: int) -> list[Upload]:
        """U(t): uploads that may be scheduled in this slot, in CV order."""
        ready = (upload for upload in self if upload.earliest_slot <= slot)
        return sorted(ready, key=lambda upload: upload.cv)
