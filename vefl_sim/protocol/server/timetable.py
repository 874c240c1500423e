"""When rounds start and end."""

from dataclasses import dataclass

from vefl_sim.core.clock import SlotGrid


@dataclass(frozen=True)
class Timetable:
    """Rounds of t_th, until there have been enough of them or the time is over."""

    grid: SlotGrid
    round_ns: int  # t_th
    rounds: int | None  # how many, or
    duration_ns: int  # how long
    early_close: bool
    evaluate_every: int

    def has(self, round: int, start_ns: int) -> bool:
        """Whether another round starts."""
        return round <= self.rounds if self.rounds else start_ns + self.round_ns <= self.duration_ns
