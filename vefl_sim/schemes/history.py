"""What the server remembers of the CVs: who was ordered how often, and delivered."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.state import State


@dataclass
class SuccessHistory:
    """Counts over the rounds so far."""

    ordered: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)

    def add(self, ordered: Iterable[int], delivered: Iterable[int]) -> None:
        """Count a round."""
        self.ordered.update(ordered)
        self.delivered.update(delivered)

    def state(self) -> State:
        """Both counts, by CV."""
        return {"ordered": _table(self.ordered), "delivered": _table(self.delivered)}

    def restore(self, state: State) -> None:
        """Count on from there."""
        self.ordered, self.delivered = (
            Counter(dict(zip(*table.tolist(), strict=True))) for table in (state["ordered"], state["delivered"])
        )

    def success(self, cvs: Iterable[int]) -> NDArray[np.float64]:
        """p̂_suc = (1 + delivered)/(1 + ordered): nobody starts with a bad name, and nobody is divided by zero."""
        return np.array([(1 + self.delivered[cv]) / (1 + self.ordered[cv]) for cv in cvs], np.float64)


def _table(counts: Counter[int]) -> NDArray[np.int64]:
    """(2, CVs): their numbers and counts."""
    return np.array([list(counts), list(counts.values())], np.int64).reshape(2, -1)
