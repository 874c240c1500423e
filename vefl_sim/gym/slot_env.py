"""Gymnasium environment in which a step is a slot of the uplink."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings
from vefl_sim.gym.episodes import Episodes, require_rounds, require_same
from vefl_sim.gym.features import Seen
from vefl_sim.optimize.rat.burst_state import QUEUE, BurstState, MacConfig, Slot, SlotDemand, UplinkPattern, new_log
from vefl_sim.optimize.rat.problem import SlotProblem
from vefl_sim.optimize.rat.single import look_at_slot, send_in_slot
from vefl_sim.protocol.server.orders import orders_of
from vefl_sim.radio.fading import BLOCK_SLOTS
from vefl_sim.simulation.simulation import Simulation

TERMS = ("bits", "joules", "received", "late")
_SNR_DB = (-20.0, 60.0)  # with P_max on the pRB
_ROUNDS_TRIED = 50
_FLOOR = 10.0  # the floor that becomes 1, in bit/s/Hz of one pRB


class SlotEnv(gymnasium.Env[Seen, NDArray[np.int64]]):
    """`vefl_sim/Slot-v0`: in each slot of the uplink the agent decides which CV owns which pRB.

    An episode is the uplink of one round: the scheme of the experiment plans it, and CVs send from their τ_v on, until
    all updates are received (terminated) or the round ends (truncated). The next episode is the next round of the same
    run, or with a seed the first round of another run. During an episode CVs keep their place and nobody leaves; slots
    in which nobody can send are passed over.

    experiment       a TOML file or an experiment, with `settings` of keys
    action           "owners": for each pRB 0 (nobody) or the row of a CV + 1, with water-filled powers; "levels": also
                     the share of P_max/n with which its owner, who has n pRBs, sends: from 0 to `levels`
    max_cvs          rows of CVs; their order is that of the CV numbers, and does not change in an episode
    reward           "utility": −U of the paper over the square of the payload; or weights of bits, joules, received,
                     late
    slots_per_step   slots in which an action holds
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)
    run: Simulation

    def __init__(
        self,
        experiment: Experiment | str | Path,
        settings: Settings = (),
        *,
        action: str = "owners",
        max_cvs: int = 64,
        levels: int = 4,
        reward: str | Mapping[str, float] = "utility",
        slots_per_step: int = 1,
    ) -> None:
        self._episodes = Episodes(experiment, settings, _require_usable)
        own = self._episodes.experiment
        if action not in ("owners", "levels"):
            raise BadInput(f'action = {action!r} is none of "owners", "levels".')
        if reward != "utility" and (isinstance(reward, str) or any(name not in TERMS for name in reward)):
            raise BadInput(f'reward = {reward!r} is neither "utility" nor a mapping of {", ".join(TERMS)} to weights.')
        self._reward, self._slots_per_step, self._rows, self._prbs = reward, slots_per_step, max_cvs, own.radio.prbs
        self._levels = levels if action == "levels" else 0
        sizes = [max_cvs + 1] * self._prbs + [levels + 1] * (self._prbs if self._levels else 0)
        self._sizes = np.array(sizes)
        self.action_space = spaces.MultiDiscrete(sizes)
        column = spaces.Box(-1.0, 1.0, (max_cvs,), np.float32)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                "gains": spaces.Box(-1.0, 1.0, (max_cvs, self._prbs), np.float32),
                **dict.fromkeys(("backlog", "slots_left", "floor"), column),
                "mask": spaces.MultiBinary(max_cvs),
            }
        )
        self._is_ready, self._scheduled, self._plan = False, 0, None  # the plan of the last episode

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Go to the next round in which somebody sends; with a seed or options, to the first one of a new run."""
        super().reset(seed=seed)
        self._scheduled = 0
        observation = self.run.next_plan(self._plan) if self._is_ready and seed is None and not options else None
        for tried in range(_ROUNDS_TRIED):
            if observation is None:
                scenario = self._episodes.scenario(None if tried else seed, self.np_random, options)
                require_same(self._episodes.experiment, scenario.experiment, "radio.prbs")
                self.run = Simulation(scenario)
                self._efficiency, observation, self._is_ready = np.zeros(3), self.run.next_plan(), True
                assert observation is not None, "a run has a first round"
            self._plan = plan = self.run.actors.server.planner.scheme.plan(observation)
            orders = [] if plan.bypasses_network else [*orders_of(observation, plan)]
            if orders:
                break
            observation = self.run.next_plan(plan)
        else:
            raise BadInput(
                f"nobody got an order that needs the uplink in {_ROUNDS_TRIED} rounds: change the experiment."
            )
        if len(orders) > self._rows:
            raise BadInput(f"max_cvs = {self._rows} is less than the {len(orders)} orders of a round: raise it.")
        self._begin([order.cv for order in orders], observation.constants.payload_bits)
        grid = observation.constants.grid
        for queue, order in zip(self._state.queues, orders, strict=True):
            queue["earliest_slot"], queue["deadline_slot"] = order.earliest_slot, order.deadline_slot
            queue["bits_left"] = order.payload_bits
        self._number = min(order.earliest_slot for order in orders)
        start = grid.ceil(observation.snapshot.time_ns)
        self._round_slots = observation.constants.round_ns // grid.slot_ns
        self._end = start + self._round_slots
        self._look()
        return self._seen(), {"cuts": 0, "round": observation.snapshot.round}

    def _begin(self, cvs: list[int], payload_bits: int) -> None:
        """The arrays of an episode."""
        mac, count, prbs = self.run.actors.gnb.mac, len(cvs), self._prbs
        self._cvs, self._payload, self._access = np.array(cvs), float(payload_bits), mac.access
        self._snr = mac.channel.mean_snr_per_watt(self._cvs)
        method, nats_hz = 0, mac.link.bandwidth_hz / float(np.log(2))
        self._config = MacConfig(method, mac.slot_s, nats_hz, mac.link.max_power_w, mac.tradeoff, mac.circuit_w)
        if self._efficiency[1] > 0:  # β starts at its last value of the round before
            self._efficiency[2] = self._efficiency[0] / self._efficiency[1]
        self._efficiency[:2] = 0.0
        self._state = BurstState(np.zeros(count, QUEUE), self._efficiency, new_log(1, count, prbs))
        most = min(count, prbs)
        gain, empty = np.empty((most, prbs)), np.empty(most)
        self._demand = SlotDemand(gain, empty.copy(), np.empty(most, np.int64), empty)
        power = np.full(most, mac.link.max_power_w)
        self._arrays = SlotProblem(gain, empty.copy(), 0.0, power, empty.copy(), empty.copy(), empty)
        self._order, self._watts, self._block = np.zeros(most, np.int64), np.zeros(prbs), -1
        tdd = self._access.pattern
        self._pattern = UplinkPattern(tdd.shares(0, 1), tdd.before, tdd.full)

    def _look(self) -> None:
        """Go to the next slot in which somebody can send, or to the end of the round."""
        while self._number < self._end:
            block, row = divmod(self._number, BLOCK_SLOTS)
            if block != self._block:
                channel, first = self.run.actors.gnb.mac.channel, block * BLOCK_SLOTS
                self._fading, self._block = channel.fading_gains(first, BLOCK_SLOTS, self._cvs), block
                self._shares = self._access.pattern.shares(first, BLOCK_SLOTS)
            self._slot = Slot(0, self._number, float(self._shares[row]), self._snr, self._fading[row])
            self._scheduled, self._price, self._unit = look_at_slot(
                self._config, self._slot, self._order, self._state, self._pattern, self._demand, self._arrays
            )
            if self._scheduled or not self._state.queues["bits_left"].any():
                return
            self._number += 1
        self._scheduled = 0

    def step(self, action: NDArray[np.int64]) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Send in this slot, or in the next few, with these owners."""
        numbers = np.asarray(action)
        fits = numbers.shape == self._sizes.shape and numbers.dtype.kind in "iu"
        if not fits or (numbers < 0).any() or (numbers >= self._sizes).any():
            what = f"{len(self._sizes)} whole numbers, each at least 0 and less than its size in action_space"
            raise BadInput(f"an action must be {what}, not {action!r}.")
        if not self._is_ready or not self._scheduled:
            raise BadInput("this episode is over: call reset().")
        reward, cuts = 0.0, 0
        for _ in range(self._slots_per_step):
            owner, unusable = self._owners(numbers[: self._prbs])
            cuts += unusable
            reward += self._send(owner, numbers[self._prbs :] / self._levels if self._levels else None)
            self._number += 1
            self._look()
            if not self._scheduled:
                break
        terminated = not self._state.queues["bits_left"].any()
        if not self._scheduled and not isinstance(self._reward, str):
            reward += self._reward.get("late", 0.0) * np.count_nonzero(self._state.queues["bits_left"])
        return self._seen(), float(reward), terminated, not (terminated or self._scheduled), {"cuts": cuts}

    def _owners(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """The row in scheduling order that owns each pRB, −1 for nobody; and pRBs of CVs that are not scheduled."""
        rows = np.full(self._rows + 1, -1)
        rows[self._order[: self._scheduled] + 1] = np.arange(self._scheduled)
        owner = rows[numbers]
        return owner, int(np.count_nonzero((owner < 0) & (numbers > 0)))

    def _send(self, owner: NDArray[np.int64], shares: Floats | None) -> float:
        """Send in this slot; returns its reward."""
        queues, log = self._state.queues, self._state.log
        objective = send_in_slot(
            self._config, self._slot, self._scheduled, self._price, self._order, self._arrays, owner, shares,
            self._watts, self._state,
        )  # fmt: skip
        if isinstance(self._reward, str):
            return float(objective * self._unit * self._config.nats_hz / self._payload**2)
        bits, joules = log.bits[0].sum(), log.power_w[0].sum() * self._config.slot_s
        received = np.count_nonzero((queues["bits_left"] <= 0) & (log.bits[0] > 0))
        values = {"bits": bits, "joules": joules, "received": received, "late": 0.0}
        return float(sum(weight * values[name] for name, weight in self._reward.items()))

    def action_masks(self) -> NDArray[np.bool_]:
        """Which values of each entry are of use, one entry after the other, as sb3-contrib expects."""
        mask = np.zeros(self._rows + 1, np.bool_)
        mask[0] = True
        mask[self._order[: self._scheduled] + 1] = True
        levels = np.ones(self._prbs * (self._levels + 1) if self._levels else 0, np.bool_)
        return np.concatenate([np.tile(mask, self._prbs), levels])

    def _seen(self) -> Seen:
        """What the agent sees of this slot; rows of CVs that are not scheduled are zero."""
        rows, order = self._scheduled, self._order[: self._scheduled]
        gains = np.zeros((self._rows, self._prbs), np.float32)
        columns = {name: np.zeros(self._rows, np.float32) for name in ("backlog", "slots_left", "floor")}
        mask = np.zeros(self._rows, np.int8)
        low, high = _SNR_DB
        decibels = 10 * np.log10(np.maximum(self._arrays.gain[:rows] * self._config.max_power_w, 1e-30))
        gains[order] = np.clip((decibels - low) / (high - low) * 2 - 1, -1, 1)
        most_nats = _FLOOR * np.log(2)
        for name, share in (
            ("backlog", self._demand.bits[:rows] / self._payload),
            ("slots_left", (self._state.queues["deadline_slot"][order] - self._number) / self._round_slots),
            ("floor", self._arrays.floor[:rows] / most_nats),
        ):
            columns[name][order] = np.clip(share * 2 - 1, -1, 1)
        mask[order] = 1
        return {"gains": gains, **columns, "mask": mask}


def _require_usable(experiment: Experiment) -> None:
    """Refuse an experiment whose slots are more than this environment simulates."""
    require_rounds(experiment)
    radio = experiment.radio
    if radio.csi_delay_slots or radio.fading in ("jakes", "rician") or radio.power != "optimized":
        raise BadInput(
            'Slot-v0 needs radio.csi_delay_slots = 0, radio.fading = "rayleigh" or "none", and '
            'radio.power = "optimized".'
        )
    if experiment.mac.scheduler != "edf":
        raise BadInput('Slot-v0 needs mac.scheduler = "edf".')
