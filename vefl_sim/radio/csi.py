"""Old channel knowledge: the gNB decides about a slot with what it measured some slots before (`csi_delay_slots`)."""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.state import State, Stateful, from_state, optional_state, state_of
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.channel import Channel


@dataclass
class _Measured:
    """The mean SNR per watt of all vehicles of a scene, until the next scene or the next round."""

    first_slot: int  # the first slot that starts then or later
    vehicle: Ints
    snr_per_watt: Floats


@dataclass
class DelayedCsi:
    """A channel, and what the gNB counts on: path loss, shadowing and fading as they were `delay_slots` before."""

    channel: Channel
    delay_slots: int
    slot_ns: int
    margin: float = 1.0  # factor on the SNR that was measured
    _history: list[_Measured] = field(default_factory=list)  # in the order of time

    def __post_init__(self) -> None:
        if isinstance(self.channel, Stateful):  # else a resumed run repeats all scenes
            self.state, self.restore = self._state, self._restore

    def move(self, scene: Scene) -> None:
        """Update the channel, and remember its mean SNR for the slots that follow."""
        self.channel.move(scene)
        self._measure(scene.time_ns, scene.vehicle)

    def begin_round(self, time_ns: int) -> None:
        """Pass the start of a round on to a channel that changes with it, and remember the new mean SNR."""
        if begin_round := getattr(self.channel, "begin_round", None):
            begin_round(time_ns)
            self._measure(time_ns, self._history[-1].vehicle)

    def _measure(self, time_ns: int, vehicles: Ints) -> None:
        """Remember the mean SNR of these vehicles from this time on, and forget what is older than `delay_slots`."""
        first_slot = -(-time_ns // self.slot_ns)
        if self._history and self._history[-1].first_slot == first_slot:
            del self._history[-1]
        self._history.append(_Measured(first_slot, vehicles, self.channel.mean_snr_per_watt(vehicles)))
        while len(self._history) > 1 and self._history[1].first_slot <= first_slot - self.delay_slots:
            del self._history[0]

    def approach(self, scene: Scene) -> None:
        """Pass the next scene on to a channel that follows CVs between scenes."""
        if approach := getattr(self.channel, "approach", None):
            approach(scene)

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt of the channel now."""
        return self.channel.mean_snr_per_watt(cvs)

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains of the channel in these slots."""
        return self.channel.fading_gains(slot, slots, cvs)

    def worst_case_rate_bps(self, cvs: NDArray[np.int64]) -> Floats:
        """Worst-case rates, as the channel states them."""
        return self.channel.worst_case_rate_bps(cvs)

    def known_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt of each slot, CV and pRB with which the gNB decides: that of `delay_slots` before, with margin.

        Before slot 0 the channel was that of slot 0. A CV that was not there yet is known as it was when it appeared.
        """
        measured = slot - self.delay_slots + np.arange(slots)
        first = max(int(measured[0]), 0)
        count = max(int(measured[-1]) - first + 1, 1)
        gains = self.channel.fading_gains(first, count, cvs)[np.maximum(measured, 0) - first]
        known: Floats = gains * (self.margin * self._mean_snr(measured, cvs))[:, :, None]
        return known

    def _mean_snr(self, measured: Ints, cvs: NDArray[np.int64]) -> Floats:
        """The mean SNR per watt in these slots; shape (slots, CVs)."""
        starts = np.array([entry.first_slot for entry in self._history])
        numbers = np.maximum(np.searchsorted(starts, measured, side="right") - 1, 0)
        by_entry = {number: self._known_from(number, cvs) for number in np.unique(numbers).tolist()}
        return np.array([by_entry[number] for number in numbers.tolist()])

    def _known_from(self, number: int, cvs: NDArray[np.int64]) -> Floats:
        """The mean SNR per watt in an entry of the history; of a CV that it lacks, in the next one that has it."""
        snr = np.full(len(cvs), np.nan)
        for entry in self._history[number:]:
            rows = np.minimum(np.searchsorted(entry.vehicle, cvs), max(len(entry.vehicle) - 1, 0))
            new = np.isnan(snr) & (entry.vehicle[rows] == cvs) if len(entry.vehicle) else np.zeros(len(cvs), np.bool_)
            snr[new] = entry.snr_per_watt[rows[new]]
            if not np.isnan(snr).any():
                break
        return snr

    def _state(self) -> State:
        return {"channel": optional_state(self.channel), "history": state_of(self._history)}

    def _restore(self, state: State) -> None:
        self._history = from_state(list[_Measured], state["history"])
        cast(Stateful, self.channel).restore(state["channel"])
