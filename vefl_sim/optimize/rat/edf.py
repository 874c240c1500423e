"""Algorithm 3: choose the CVs that transmit in a slot, earliest deadline first (EDF)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Backlog:
    """The CVs that may be scheduled in a slot, U(t), in ascending order of their number."""

    slot: int
    cv: NDArray[np.int64]
    deadline_slot: NDArray[np.int64]  # the upload should be complete before this slot starts
    bits_left: NDArray[np.float64]  # Q_v(t), all positive
    snr: NDArray[np.float64]  # with full power on one pRB, mean over the pRBs


class Scheduler(Protocol):
    """A function that chooses the CVs of a slot: at most `limit` rows of the backlog, the most urgent first."""

    def __call__(self, backlog: Backlog, limit: int) -> NDArray[np.int64]:
        """Row numbers of the scheduled CVs, each at most once."""
        ...


def edf(backlog: Backlog, limit: int) -> NDArray[np.int64]:
    """Row numbers of the `limit` earliest deadlines.

    Many deadlines are equal, namely the end of the round; ties go to the larger backlog, then to the lower CV number.
    """
    from vefl_sim.optimize.rat.burst import by_deadline  # on the first call, because numba is slow to load

    order: NDArray[np.int64] = by_deadline(backlog.deadline_slot, backlog.bits_left)[:limit]
    return order
