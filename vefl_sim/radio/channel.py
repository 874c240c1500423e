"""The channel between every CV and the gNB, large-scale loss times fast fading over noise, and what the gNB knows.

With `radio.csi_delay_slots` the gNB decides about a slot with what it measured some slots before.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import RunFailed
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import State, Stateful, from_state, optional_state, state_of
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.delay_profile import DelayProfile
from vefl_sim.radio.fading import Fading, MeanChannel, RayleighFading, SelectiveRayleighFading
from vefl_sim.radio.link import Link
from vefl_sim.radio.route import Route, first_known
from vefl_sim.radio.shadowing import LargeScale
from vefl_sim.radio.uma import SPEED_OF_LIGHT_MPS
from vefl_sim.radio.worst_prb import GainLaw, arriving_share

_MOST_SLOTS = 64  # that a user-defined channel is asked for in one call


class Channel(Protocol):
    """The radio channel as the MAC and the planner use it; a user-defined part can implement it.

    `cvs` are vehicle numbers of the last scene, in ascending order. All values must be finite and not negative.
    """

    def move(self, scene: Scene) -> None:
        """Update the channel to the vehicle positions of the next scene; called once per mobility step."""
        ...

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt of transmit power (1/W) without fast fading, for one antenna and one pRB; shape (CVs,)."""
        ...

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Factors on that SNR by fast fading and antenna combining; shape (slots, CVs, pRBs).

        At most 64 slots, from number `slot` on (slot 0 starts at time 0); a slot may be asked for more than once.
        """
        ...

    def worst_case_rate_bps(self, cvs: NDArray[np.int64]) -> Floats:
        """Rate of each CV (bit/s) with P_max on its worst pRB, mean over fast fading; shape (CVs,).

        Plans reserve the upload time t̄_tx that follows from this rate and from the share z̃ of a pRB.
        """
        ...


def uma(experiment: Experiment, streams: Streams) -> "UmaChannel":
    """The built-in channel (`radio.channel = "uma"`) of an experiment."""
    radio, route = experiment.radio, Route(experiment.slots.slot_ns, experiment.radio.csi_delay_slots)
    fading, large_scale = _fading(experiment, streams, route), LargeScale(radio, streams.generator("shadowing"))
    sight_matters = radio.fading == "rician" or radio.delay_spread_s == "38.901"
    follows = sight_matters or radio.fading == "jakes"
    return UmaChannel(Link.of(radio), large_scale, fading, route if follows else None, sight_matters, radio.csi_margin)


def _fading(experiment: Experiment, streams: Streams, route: Route) -> Fading:
    """The kind of fading that `radio.fading` and `radio.delay_spread_s` name."""
    radio, profile, known = experiment.radio, DelayProfile.of(experiment.radio), not experiment.radio.csi_delay_slots
    correlation = 1.0 if known else 0.0  # of the gains in two slots
    if radio.fading == "none":
        return MeanChannel(radio.prbs, radio.antennas)
    if radio.fading == "rayleigh" and radio.delay_spread_s is None:
        return RayleighFading(streams.philox_key("fading"), radio.prbs, radio.antennas, correlation)
    if radio.fading == "rayleigh":
        return SelectiveRayleighFading(streams.philox_key("fading"), radio.antennas, profile, route, correlation)
    from vefl_sim.radio.scattering import Propagation, ScatteredFading  # compiled, and slow to import

    k_factor = 10 ** (radio.rician_k_db / 10) if radio.fading == "rician" else 0.0
    wavelength_m = SPEED_OF_LIGHT_MPS / (radio.carrier_ghz * 1e9)
    key = streams.philox_key("paths")
    propagation = Propagation(key, radio.prbs, radio.antennas, wavelength_m, k_factor, profile)
    delay_s = radio.csi_delay_slots * experiment.slots.slot_s
    return ScatteredFading(propagation, route, delay_s * experiment.mobility.max_speed_mps)


@dataclass(frozen=True)
class UmaChannel:
    """UMa path loss with shadowing, times SIMO fading with maximal ratio combining."""

    link: Link
    large_scale: LargeScale
    fading: Fading
    route: Route | None = None  # None: the fading does not depend on where CVs are
    sight_matters: bool = False  # whether the fading of CVs with line of sight is another one
    csi_margin: float = 1.0  # factor on measured SNRs with which the gNB decides

    def move(self, scene: Scene) -> None:
        """Update path loss and shadowing, which are constant between two scenes, or during a round."""
        self.large_scale.move(scene)
        if self.route:
            none = np.zeros(len(scene.vehicle), np.bool_)
            self.route.move(scene, self.large_scale.line_of_sight(scene.vehicle) if self.sight_matters else none)

    def approach(self, scene: Scene) -> None:
        """The next scene: until then CVs drive straight to their places in it, which moves them through the fading."""
        if self.route:
            self.route.approach(scene)

    def begin_round(self, time_ns: int) -> None:
        """A round starts: with `radio.large_scale = "round"` path loss and shadowing are taken anew."""
        self.large_scale.begin_round()
        if self.route and self.sight_matters and self.large_scale.holds:
            self.route.change_sight(time_ns, self.large_scale.line_of_sight)

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt from path loss and shadowing alone, shape (CVs,)."""
        return self.link.snr_per_watt(self.large_scale.loss_db(cvs))

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """‖h‖² of each slot, CV and pRB, relative to one antenna without fading."""
        return self.fading.gains(slot, slots, cvs)

    def worst_case_rate_bps(self, cvs: NDArray[np.int64]) -> Floats:
        """Expected rate over the fading of the worst of Z pRBs (worstCaseTxTTIEstimate), shape (CVs,).

        With old channel knowledge: times the share of it that arrives.
        """
        snr_per_watt = self.mean_snr_per_watt(cvs)
        rate_bps = self._rate_to_count_on_bps(snr_per_watt, self.fading.law())
        if not self.sight_matters:
            return rate_bps
        with_sight = self._rate_to_count_on_bps(snr_per_watt, self.fading.law(sight=True))
        return np.where(self.large_scale.line_of_sight(cvs), with_sight, rate_bps)

    def _rate_to_count_on_bps(self, snr_per_watt: Floats, law: GainLaw) -> Floats:
        """The rate of CVs whose gains have this law."""
        rate_bps = self.link.mean_rate_bps(snr_per_watt, *law.worst())
        if law.is_known and self.csi_margin == 1.0:
            return rate_bps
        power_w = np.broadcast_to(self.link.power_w(snr_per_watt), snr_per_watt.shape)
        full_prbs = self.link.max_power_w / power_w if self.link.open_loop else None
        return rate_bps * arriving_share(law, self.csi_margin, snr_per_watt * power_w, full_prbs)

    def state(self) -> State:
        """State of the large-scale channel and of the route for a checkpoint; fading depends on slot, CV and route."""
        state = self.large_scale.state()
        return state | {"route": self.route.state()} if self.route else state

    def restore(self, state: State) -> None:
        """Restore the large-scale channel and the route from a checkpoint."""
        self.large_scale.restore(state)
        if self.route:
            self.route.restore(state["route"])


class CheckedChannel:
    """A user-defined channel, whose arrays are checked before kernels use them."""

    def __init__(self, channel: Channel, prbs: int) -> None:
        self._channel, self._prbs = channel, prbs
        self.move = channel.move
        for optional in ("approach", "begin_round"):
            if method := getattr(channel, optional, None):
                setattr(self, optional, method)
        if isinstance(channel, Stateful):
            self.state, self.restore = channel.state, channel.restore

    def mean_snr_per_watt(self, cvs: NDArray[np.int64]) -> Floats:
        """SNR per watt as the channel returns it, shape (CVs,)."""
        return self._checked("mean_snr_per_watt", self._channel.mean_snr_per_watt(cvs), CVs=len(cvs))

    def fading_gains(self, slot: int, slots: int, cvs: NDArray[np.int64]) -> Floats:
        """Gains as the channel returns them, for 64 slots at a time; shape (slots, CVs, pRBs)."""
        parts = []
        for first in range(slot, slot + slots, _MOST_SLOTS):
            count = min(_MOST_SLOTS, slot + slots - first)
            gains = self._channel.fading_gains(first, count, cvs)
            parts.append(self._checked("fading_gains", gains, slots=count, CVs=len(cvs), pRBs=self._prbs))
        return np.concatenate(parts)

    def worst_case_rate_bps(self, cvs: NDArray[np.int64]) -> Floats:
        """Worst-case rates as the channel returns them, shape (CVs,)."""
        return self._checked("worst_case_rate_bps", self._channel.worst_case_rate_bps(cvs), CVs=len(cvs))

    def _checked(self, method: str, returned: Any, **axes: int) -> Floats:
        """The returned values as an array of floats; RunFailed if they are not one number from 0 on for each entry."""
        shape = " × ".join(f"{length} {axis}" for axis, length in axes.items())
        sentence = f"radio.channel: {type(self._channel).__name__}.{method}() must return finite numbers from 0 on for "
        try:
            values = np.asarray(returned, np.float64, order="C")
        except (TypeError, ValueError):
            raise RunFailed(f"{sentence}{shape}, not {type(returned).__name__}.") from None
        if values.shape != (*axes.values(),):
            raise RunFailed(f"{sentence}{shape}, not {type(returned).__name__} of shape {values.shape}.")
        wrong = values[~(np.isfinite(values) & (values >= 0))]
        if wrong.size:
            raise RunFailed(f"{sentence}{shape}, not {wrong[0]}.")
        return values


@dataclass
class _Measured:
    """The mean SNR per watt of all vehicles of a scene, until the next scene or the next round."""

    first_slot: int  # the first slot that starts then or later
    vehicle: Ints
    snr_per_watt: Floats


@dataclass
class DelayedCsi:
    """A channel, and what the gNB decides with: path loss, shadowing and fading as they were `delay_slots` before."""

    channel: Channel
    delay_slots: int
    slot_ns: int
    margin: float = 1.0  # factor on the SNR that was measured
    _history: list[_Measured] = field(default_factory=list)  # in the order of time

    def __post_init__(self) -> None:
        self.mean_snr_per_watt, self.fading_gains = self.channel.mean_snr_per_watt, self.channel.fading_gains
        self.worst_case_rate_bps = self.channel.worst_case_rate_bps
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
        later = ((entry.vehicle, entry.snr_per_watt) for entry in self._history[number:])
        return first_known(later, cvs, np.full(len(cvs), np.nan))

    def _state(self) -> State:
        return {"channel": optional_state(self.channel), "history": state_of(self._history)}

    def _restore(self, state: State) -> None:
        self._history = from_state(list[_Measured], state["history"])
        cast(Stateful, self.channel).restore(state["channel"])
