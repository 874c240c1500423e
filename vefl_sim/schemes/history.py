"""How often each CV was ordered and delivered so far, and its success rate."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.state import State


@dataclass
class SuccessHistory:
    """Numbers of orders and of delivered updates by CV, over the run so far."""

    ordered: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)

    def add(self, ordered: Iterable[int], delivered: Iterable[int]) -> None:
        """Count the orders and the delivered updates of a round."""
        self.ordered.update(ordered)
        self.delivered.update(delivered)

    def state(self) -> State:
        """Both counts as arrays, for a checkpoint."""
        return {"ordered": _table(self.ordered), "delivered": _table(self.delivered)}

    def restore(self, state: State) -> None:
        """Restore both counts from a checkpoint."""
        self.ordered, self.delivered = (
            Counter(dict(zip(*table.tolist(), strict=True))) for table in (state["ordered"], state["delivered"])
        )

    def success(self, cvs: Iterable[int]) -> NDArray[np.float64]:
        """p̂_suc = (1 + delivered)/(1 + ordered): a CV without history counts as one success, so p̂_suc is never 0."""
        return np.array([(1 + self.delivered[cv]) / (1 + self.ordered[cv]) for cv in cvs], np.float64)


def _table(counts: Counter[int]) -> NDArray[np.int64]:
    """Array of shape (2, CVs): CV numbers and counts."""
    return np.array([list(counts), list(counts.values())], np.int64).reshape(2, -1)
