"""What the server remembers of the CVs: who was ordered how often, and delivered."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass
class Record:
    """Counts over the rounds so far."""

    ordered: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)

    def add(self, ordered: Iterable[int], delivered: Iterable[int]) -> None:
        """Count a round."""
        self.ordered.update(ordered)
        self.delivered.update(delivered)

    def success(self, cvs: Iterable[int]) -> NDArray[np.float64]:
        """p̂_suc = (1 + delivered)/(1 + ordered): nobody starts with a bad name, and nobody is divided by zero."""
        return np.array([(1 + self.delivered[cv]) / (1 + self.ordered[cv]) for cv in cvs], np.float64)
