"""The rate that plans count on where grants can be lost: against a plain version, and what the MAC delivers."""

import numpy as np
import pytest

from tests.protocol.slot_twin import Sender, queues_of
from tests.radio.test_scattering import scene
from vefl_sim import from_tables, with_settings
from vefl_sim.core.rng import Streams
from vefl_sim.optimize.rat.allocate import AllocationMethod, needs_large
from vefl_sim.optimize.rat.burst import run_slots
from vefl_sim.optimize.rat.burst_state import BurstChannel, BurstState, Feedback, MacConfig, UplinkPattern, new_log
from vefl_sim.radio.channel import uma
from vefl_sim.radio.delay_profile import DelayProfile
from vefl_sim.radio.route import Route
from vefl_sim.radio.scattering import Propagation, ScatteredFading
from vefl_sim.radio.worst_prb import GainLaw, arriving_share

ANTENNAS = 4


def test_a_known_channel_loses_nothing() -> None:
    snr = np.array([1e-12, 0.1, 1.0, 30.0])
    assert arriving_share(GainLaw(10, ANTENNAS), 1.0, snr) == pytest.approx(np.ones(4))
    assert arriving_share(GainLaw(10, ANTENNAS, k_factor=np.inf), 1.0, snr) == pytest.approx(np.ones(4))
    halved = np.log1p(snr * ANTENNAS / 2) / np.log1p(snr * ANTENNAS)
    assert arriving_share(GainLaw(10, ANTENNAS, k_factor=np.inf), 0.5, snr) == pytest.approx(halved, rel=0.01)
    assert arriving_share(GainLaw(10, ANTENNAS), 1.0, np.empty(0)).shape == (0,)


@pytest.mark.parametrize(
    ("snr", "margin", "full"),  # at 10^-0.6 the best powers give the least
    [(0.01, 1.0, None), (10**-0.6, 1.0, None), (10**-0.6, 0.5, 1), (1.0, 1.0, 2), (1.0, 0.5, 8), (100.0, 1.0, 1)],
)
def test_shares_are_those_of_a_plain_version(
    snr: float, margin: float, full: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vefl_sim.radio.worst_prb._DRAWS", 640)
    law = GainLaw(8, ANTENNAS, correlation=0.51)  # of no other test, because draws are kept
    share = arriving_share(law, margin, np.array([snr]), None if full is None else np.array([float(full)]))
    assert share[0] == pytest.approx(plain_share(law, margin, snr, full), rel=1e-6)


def plain_share(law: GainLaw, margin: float, snr: float, full: int | None) -> float:
    """The share by its definition: every grant of every draw on its own, at an SNR for which draws are evaluated."""
    measured, now = law.draw()
    sums = dict.fromkeys(("worst", "all", "shared", *range(1, 9)), 0.0)
    for then, present in zip(measured, now, strict=True):
        order = np.argsort(-then)
        granted, capacity = margin * then[order], present[order]
        sums["worst"] += arrives(granted[-1:], capacity[-1:], snr)
        for count in (1, 2, 3, 5, 8):
            power = 1 / count if full is None else min(1, full / count)
            arriving = arrives(granted[:count], capacity[:count], snr * power)
            sums[count] += arriving / (1 if full is None else min(count, full))
        sums["all"] += arrives(granted, capacity, snr * best_powers(granted * snr, full))
    rates = [sums[name] / len(measured) for name in ("worst", "all", 1, 2, 3, 5, 8)]
    if full is not None and full > 1:
        slots = len(measured) // law.prbs
        for slot in range(slots):
            rows = range(slot * law.prbs, (slot + 1) * law.prbs)
            owner = [max(rows, key=lambda row: measured[row, prb]) for prb in range(law.prbs)]
            for row in rows:
                own = [prb for prb in range(law.prbs) if owner[prb] == row]
                power = min(1, full / max(1, len(own)))
                sums["shared"] += arrives(margin * measured[row, own], now[row, own], snr * power)
        rates.append(sums["shared"] / (slots * law.prbs))
    return min(rates) / float(np.log1p(snr * measured.min(axis=1)).mean())


def arrives(granted: np.ndarray, capacity: np.ndarray, snr: float | np.ndarray) -> float:
    """The rate of a grant for these gains, or nothing if the slot carries less."""
    rate = np.log1p(snr * granted).sum()
    return float(rate) if rate <= np.log1p(snr * capacity).sum() else 0.0


def best_powers(snr: np.ndarray, full: int | None) -> np.ndarray:
    """Powers with the largest rate: free ones (the water level by bisection), or given ones on the best pRBs."""
    if full is not None:
        tried = [np.where(np.arange(8) < n, min(1, full / n), 0.0) for n in range(1, 9)]
        return max(tried, key=lambda power: np.log1p(power * snr).sum())
    low, high = 0.0, 1 + 1 / snr.min()
    for _ in range(80):
        level = (low + high) / 2
        low, high = (low, level) if np.maximum(level - 1 / snr, 0).sum() > 1 else (level, high)
    return np.maximum(low - 1 / snr, 0)


@pytest.mark.parametrize("settings", [[], ["radio.power=open-loop"]])
def test_plans_know_the_margin(settings: list[str]) -> None:
    rates = []
    for margin_db in (0.0, 3.0):
        tables = {"run": {"name": "x"}, "radio": {"csi_delay_slots": 4, "csi_margin_db": margin_db}}
        channel = uma(with_settings(from_tables(tables), *settings), Streams(1))
        channel.move(scene(0.0, {3: 200.0}))
        rates.append(channel.worst_case_rate_bps(np.array([3]))[0])
    assert rates[1] > 1.5 * rates[0] > 0


@pytest.mark.parametrize(("driven", "correlation"), [(0.0, 1.0), (0.2, 0.6425), (0.61, 0.0)])
def test_plans_take_the_least_correlation_within_reach(driven: float, correlation: float) -> None:
    """J₀ has its first zero at 0.3827 wavelengths and −0.40 at 0.61: a slower CV is then correlated less."""
    profile = DelayProfile(None, 3.5, 4, 1.8e6)
    fading = ScatteredFading(Propagation(1, 4, ANTENNAS, 0.1, 0.0, profile), Route(500_000, 4), known_m=0.1 * driven)
    assert fading.law().correlation == pytest.approx(correlation, abs=1e-3)


def test_a_number_of_full_prbs_between_two_powers_of_two_is_interpolated() -> None:
    full = np.array([1.0, 2**0.5, 2 - 1e-9, 2.0])
    one, middle, below, two = arriving_share(GainLaw(10, ANTENNAS, correlation=0.0), 1.0, np.ones(4), full)
    assert below == pytest.approx(two)
    assert two < 0.7 * one
    assert middle == pytest.approx((one + two) / 2)


MAC_CASES = [
    *((cvs, correlation, 1.0, 1.0, None) for cvs, correlation in ((3, 0.87), (20, 0.0))),
    (5, 0.0, 3.0, 0.5, None),
    *((cvs, 0.0, 0.1, 1.0, 1) for cvs in (1, 10)),
    (10, 0.0, 1.0, 1.0, 4),
    (2, 0.0, 3.0, 0.5, 4),
]
"""CVs, correlation of the channel with what was measured, SNR, margin, and pRBs with full power if powers are given."""
Case = tuple[int, float, float, float, int | None]


@pytest.mark.parametrize("case", MAC_CASES, ids=str)
def test_the_mac_delivers_what_plans_count_on(case: Case) -> None:
    arrived, counted_on = delivered_and_planned(case, spread_s=None)
    assert arrived >= (0.95 if case[-1] is None else 0.9) * counted_on


@pytest.mark.slow
@pytest.mark.parametrize("spread_s", [93e-9, 364e-9])
@pytest.mark.parametrize(("cvs", "snr"), [(1, 0.1), (10, 30.0)])
@pytest.mark.parametrize("full", [None, 1, 4])
def test_the_mac_delivers_what_plans_count_on_if_prbs_are_correlated(
    full: int | None, snr: float, cvs: int, spread_s: float
) -> None:
    arrived, counted_on = delivered_and_planned((cvs, 0.0, snr, 1.0, full), spread_s)
    assert arrived >= 0.9 * counted_on


def delivered_and_planned(case: Case, spread_s: float | None) -> tuple[float, float]:
    """The mean rate per CV that the MAC delivers, and what plans count on, in nats per slot.

    CVs have the same mean SNR and full buffers, are always to be as fast as possible, and share ten pRBs.
    """
    cvs, correlation, snr, margin, full = case
    prbs, slots = 10, 24_000 // cvs  # in some cases one grant in twenty arrives
    profile = None if spread_s is None else DelayProfile(spread_s, 3.5, prbs, 1.8e6)
    law = GainLaw(prbs, ANTENNAS, 0.0, profile, spread_s or 0.0, correlation=correlation)
    rng, mixing = np.random.default_rng(cvs), np.eye(prbs) if profile is None else profile.mixing(law.rms_s)
    unit = rng.standard_normal((2, 2, slots, cvs, ANTENNAS, prbs)) / np.sqrt(2)
    then, other = ((parts[0] + 1j * parts[1]) @ mixing.T for parts in unit)
    now = correlation * then + np.sqrt(1 - correlation**2) * other
    measured, gains = ((np.abs(h) ** 2).sum(axis=-2) for h in (then, now))
    snr_per_watt = snr * (full or 1)  # a CV has 1 W, or 1/full W on a pRB
    queues, log = queues_of([Sender(snr_per_watt, 0, 10**9, 1e12)] * cvs), new_log(slots, cvs, prbs)
    channel, state = BurstChannel(0, np.full(cvs, snr_per_watt), gains), BurstState(queues, np.zeros(3), log)
    feedback = Feedback(margin * snr_per_watt * measured, 1, 0, np.zeros((cvs, 0)))
    code = AllocationMethod.AUTO
    config = MacConfig(int(code), 1.0, 1.0, 1.0, 0.0, 0.0)
    pattern = UplinkPattern(np.ones(slots), np.array([0, 13]), 13)
    watts = None if full is None else np.full(cvs, 1 / full)
    assert run_slots(needs_large(code, prbs), config, channel, state, pattern, feedback, watts) == slots
    assert queues["lost_slots"].sum() > 0 or margin < 1
    arrived = (log.rate_bps - log.bits_lost).sum(axis=0).mean() / slots
    gain, probability = law.worst()
    share = arriving_share(law, margin, np.array([snr]), None if full is None else np.array([float(full)]))[0]
    return arrived, min(1, prbs / cvs) * float(np.log1p(snr * gain) @ probability) * share
