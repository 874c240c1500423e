import numpy as np
import pytest

from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.radio.fading import MeanChannel
from vefl_sim.radio.link import Link, worst_case_slots


def test_rate_of_snr_one_is_the_usable_bandwidth() -> None:
    link = Link.of(RadioTable(prb_bandwidth_hz=1.8e6))
    assert link.rate_bps(np.array([0.0, 1.0, 3.0])) == pytest.approx([0.0, 1.8e6 * 13 / 14, 2 * 1.8e6 * 13 / 14])


def test_worst_case_slots_by_hand_on_the_mean_channel() -> None:
    link = Link.of(RadioTable(antennas=1, prb_bandwidth_hz=360e3, max_tx_power_w=0.2))
    rate_bps = link.mean_rate_bps(np.array([15.0]), *MeanChannel(prbs=10, antennas=1).law().worst())
    # SNR 0.2 · 15 = 3, so 360 kHz · 13/14 · 2 = 668,571 bit/s, 334.29 bit per slot of 0.5 ms
    assert worst_case_slots(rate_bps, 3343, 1.0, 5e-4) == 11
    assert worst_case_slots(rate_bps, 3342, 1.0, 5e-4) == 10
    assert worst_case_slots(rate_bps, 3342, 0.5, 5e-4) == 20


def test_a_channel_with_rate_zero_needs_infinitely_many_slots() -> None:
    assert worst_case_slots(np.array([0.0]), 100, 1.0, 5e-4) == np.inf
