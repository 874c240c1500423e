"""Uplink buffers: the updates that CVs are sending or waiting to send."""

import math
from dataclasses import dataclass, field

import numpy as np
from simpy import Event

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.state import NOT_SAVED
from vefl_sim.optimize.rat.burst_state import QUEUE, Queues
from vefl_sim.protocol.ledger import Account, QueueField
from vefl_sim.protocol.messages import TrainOrder


@dataclass(eq=False)
class Upload:
    """One update on its way to the gNB."""

    order: TrainOrder = field(metadata=NOT_SAVED)
    account: Account = field(metadata=NOT_SAVED)
    received: Event = field(metadata=NOT_SAVED)  # succeeds when the gNB has the last bit
    cause: int  # number of the last trace event of this upload
    earliest_slot: int  # first slot in which it may be scheduled
    slots: QueueField[int] = QueueField(0)
    snr_sum: QueueField[float] = QueueField(0.0)
    lost_slots: QueueField[int] = QueueField(0)
    lost_j: QueueField[float] = QueueField(0.0)
    unreported: Floats = field(default_factory=lambda: np.zeros(0))  # bits lost in the last slots; see Feedback

    def __post_init__(self) -> None:
        self.queue["earliest_slot"], self.queue["deadline_slot"] = self.earliest_slot, self.order.deadline_slot

    @property
    def queue(self) -> np.void:
        """The CV's entry of the uplink queues."""
        return self.account.queue

    @property
    def cv(self) -> int:
        """Number of the CV that sends the update."""
        return self.order.cv

    @property
    def mean_snr_db(self) -> float | None:
        """Mean received SNR of a pRB over the slots used; None before the first."""
        return 10 * math.log10(self.snr_sum / self.slots) if self.snr_sum > 0 else None


class Uplink:
    """All queued uploads, at most one per CV, and the arrays in which the MAC counts what those that may send do."""

    def __init__(self, unreported_slots: int = 0) -> None:
        """`unreported_slots` is the number of slots after which a loss is surely reported; 0 if nothing is lost."""
        self._queued: dict[int, Upload] = {}
        self._unreported_slots = unreported_slots
        self._arrange([])

    def add(self, upload: Upload) -> None:
        """Queue an upload."""
        self._queued[upload.cv] = upload

    def remove(self, cv: int) -> None:
        """Remove the upload of a CV because it was received or lost; its entry of the queues keeps its last values."""
        self._queued.pop(cv, None)

    def __contains__(self, upload: Upload) -> bool:
        return self._queued.get(upload.cv) is upload

    def next_slot(self, slot: int) -> int | None:
        """The first slot from `slot` on in which a CV may send; None when nothing is queued."""
        earliest = min((upload.earliest_slot for upload in self._queued.values()), default=None)
        return None if earliest is None else max(slot, earliest)

    def starts_after(self, slot: int) -> list[int]:
        """The first slots of the uploads that may not be scheduled in this slot yet."""
        return [upload.earliest_slot for upload in self._queued.values() if upload.earliest_slot > slot]

    def admit(self, slot: int) -> list[Upload]:
        """U(t): the uploads that may be scheduled in this slot, in CV order; the arrays then have one row for each."""
        uploads = [upload for _, upload in sorted(self._queued.items()) if upload.earliest_slot <= slot]
        if uploads != self.uploads:
            self._arrange(uploads)
        return uploads

    def _arrange(self, uploads: list[Upload]) -> None:
        """Move the queues of these uploads to the rows of new arrays; those of others stay in the old ones."""
        self.uploads = uploads
        self.cvs: Ints = np.array([upload.cv for upload in uploads], np.int64)
        self.queues: Queues = np.empty(len(uploads), QUEUE)
        self.unreported: Floats = np.zeros((len(uploads), self._unreported_slots))
        for row, upload in enumerate(uploads):
            self.queues[row] = upload.queue
            upload.account.queue = self.queues[row]
            if upload.unreported.size:
                self.unreported[row] = upload.unreported
            upload.unreported = self.unreported[row]
