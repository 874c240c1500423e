"""When CVs may send: the TDD pattern of uplink and downlink slots, and how long an update waits for its first grant."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.radio.link import SYMBOLS_PER_SLOT, overhead


@dataclass(frozen=True)
class TddPattern:
    """Uplink data symbols of each slot (TS 38.213, clause 11.1); the pattern repeats from slot 0 on.

    Times of uploads are counted in full uplink slots: a special slot counts by its uplink symbols, a downlink slot not.
    Numbers of slots may be arrays.
    """

    symbols: tuple[int, ...] = (SYMBOLS_PER_SLOT - 1,)
    full: int = SYMBOLS_PER_SLOT - 1  # of an uplink slot

    @classmethod
    def of(cls, experiment: Experiment) -> "TddPattern":
        """The pattern of an experiment."""
        full = round(SYMBOLS_PER_SLOT * (1 - overhead(experiment.radio.flexible_symbol_uplink)))
        uplink = {"U": full, "S": experiment.mac.special_uplink_symbols, "D": 0}
        return cls(tuple(uplink[letter] for letter in experiment.mac.tdd), full)

    @cached_property
    def before(self) -> Ints:
        """Uplink symbols of the pattern before each of its slots, and of the whole pattern at the end."""
        return np.concatenate(([0], np.cumsum(self.symbols)))

    @property
    def is_all_uplink(self) -> bool:
        """Whether every slot is a full uplink slot."""
        return all(symbols == self.full for symbols in self.symbols)

    def shares(self, slot: int, slots: int) -> Floats:
        """Uplink symbols of each slot over those of a full uplink slot."""
        return np.array(self.symbols)[(slot + np.arange(slots)) % len(self.symbols)] / self.full

    def slots_between(self, first: Any, end: Any) -> Any:
        """Full uplink slots from slot `first` up to slot `end`."""
        return (self._symbols_before(end) - self._symbols_before(first)) // self.full

    def latest_start(self, end: Any, slots: Any) -> Any:
        """The last slot from which so many full uplink slots are left before slot `end`."""
        periods, rest = np.divmod(self._symbols_before(end) - slots * self.full, self.before[-1])
        return periods * len(self.symbols) + np.searchsorted(self.before[:-1], rest, side="right") - 1

    def end(self, first: Any, slots: Any) -> Any:
        """The first slot before which so many full uplink slots have passed since the start of slot `first`."""
        periods, rest = np.divmod(self._symbols_before(first) + slots * self.full - 1, self.before[-1])
        return periods * len(self.symbols) + np.searchsorted(self.before, rest, side="right")

    def most_slots(self, slots: int) -> int:
        """The largest number of slots that carry as much as `slots` full uplink slots: special slots carry less."""
        used = [symbols for symbols in self.symbols if symbols]
        periods, rest = divmod(slots * self.full, sum(used))
        carried, extra = 0, 0
        for symbols in sorted(used):
            extra += carried < rest
            carried += symbols
        return periods * len(used) + extra

    def _symbols_before(self, slot: Any) -> Any:
        periods, rest = np.divmod(slot, len(self.symbols))
        return periods * self.before[-1] + self.before[rest]


ALL_UPLINK = TddPattern()


@dataclass(frozen=True)
class Access:
    """How CVs get access to the uplink: by default every slot is uplink, and the gNB knows all backlogs at once."""

    pattern: TddPattern = ALL_UPLINK
    grant_slots: int = 0  # from a report of the backlog to the first slot that it can be granted
    report_slots: int = 1  # from one report to the next

    @classmethod
    def of(cls, experiment: Experiment) -> "Access":
        """The access of an experiment."""
        mac = experiment.mac
        return cls(TddPattern.of(experiment), mac.grant_delay_slots, mac.bsr_slots)

    @property
    def is_immediate(self) -> bool:
        """Whether all slots are uplink and no update waits for a report or a grant, as in the paper."""
        return self.pattern.is_all_uplink and not self.wait_slots

    @property
    def wait_slots(self) -> int:
        """The longest time from an offer to the first slot that can be granted."""
        return self.grant_slots + self.report_slots - 1

    def first_slot(self, slot: Any) -> Any:
        """The first slot that the gNB can grant to an update that is offered at the start of `slot`."""
        return -(-slot // self.report_slots) * self.report_slots + self.grant_slots

    def latest_offer(self, deadline_slot: Any, slots: Any) -> Any:
        """The last slot by which an update must be offered so that it surely has `slots` uplink slots in time."""
        return self.pattern.latest_start(deadline_slot, slots) - self.wait_slots

    def end_slot(self, offered_slot: Any, slots: Any) -> Any:
        """The slot before which an update is sent that needs `slots` uplink slots and is offered in `offered_slot`."""
        return self.pattern.end(self.first_slot(offered_slot), slots)


IMMEDIATE = Access()
