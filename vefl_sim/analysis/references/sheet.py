"""A check sheet: our numbers beside somebody else's, line by line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One line of the sheet."""

    what: str
    source: str
    reference: float
    ours: float
    tolerance: float
    unit: str

    @property
    def difference(self) -> float:
        """Ours minus the reference."""
        return self.ours - self.reference

    @property
    def passed(self) -> bool:
        """Whether we agree as closely as the source's own precision allows."""
        return abs(self.difference) <= self.tolerance
