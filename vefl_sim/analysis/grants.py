"""Counts the grants of a run; one above the capacity of its slot is lost (`radio.csi_delay_slots`)."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # slow to import, and not needed for a run without lost grants
    import pandas as pd


class GrantCounts(NamedTuple):
    """How many grants were used, one for each CV and slot in which it sent, and how many of them were lost."""

    used: int = 0
    lost: int = 0

    @classmethod
    def of(cls, outages: "pd.DataFrame") -> "GrantCounts":
        """Count the grants in rows of the table `outages`, which only runs have that can lose grants."""
        return cls(int(outages["tx_slots"].sum()), int(outages["lost_slots"].sum()))

    @property
    def lost_share(self) -> float:
        """Share of the grants that were lost; 0 if there were none."""
        return self.lost / self.used if self.used else 0.0

    @property
    def lost_text(self) -> str:
        """How many grants of how many were lost, for example "8,789 of 67,969"."""
        return f"{self.lost:,} of {self.used:,}"

    @property
    def line(self) -> str:
        """What became of the grants, as a line of the summary; empty if there were none."""
        if self.lost:
            return f"{self.lost_text} lost ({self.lost_share:.1%}), because they were above the capacity of their slot"
        return f"none of {self.used:,} lost" if self.used else ""


def grants_by_round(outages: "pd.DataFrame") -> dict[int, GrantCounts]:
    """The grants of the orders of each round that gave any."""
    sums = outages.groupby("round")[["tx_slots", "lost_slots"]].sum()
    return {int(number): GrantCounts(int(used), int(lost)) for number, used, lost in sums.itertuples()}
