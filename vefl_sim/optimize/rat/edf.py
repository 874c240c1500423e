"""Algorithm 3: which CVs transmit in a slot. Earliest deadline first."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Backlog:
    """The CVs that may be scheduled in a slot, U(t), in ascending order of their number."""

    slot: int
    cv: NDArray[np.int64]
    deadline_slot: NDArray[np.int64]  # the update should be through before this slot starts
    bits_left: NDArray[np.float64]  # Q_v(t), all positive
    snr: NDArray[np.float64]  # mean over pRBs at full power on one pRB, shape of cv


class Scheduler(Protocol):
    """Chooses the CVs of a slot: at most `limit` rows of the backlog, the most urgent first."""

    def __call__(self, backlog: Backlog, limit: int) -> NDArray[np.int64]:
        """Row numbers of the scheduled CVs, each at most once."""
        ...


def edf(backlog: Backlog, limit: int) -> NDArray[np.int64]:
    """The `limit` earliest deadlines; most deadlines are the round's end, so ties go to the larger backlog."""
    order = np.lexsort((backlog.cv, -backlog.bits_left, backlog.deadline_slot))
    return order[:limit].astype(np.int64)
