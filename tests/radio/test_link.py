import numpy as np
import pytest

from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.radio.fading import MeanChannel, RayleighFading
from vefl_sim.radio.link import Link, overhead, prb_bandwidth_hz, subcarrier_spacing_hz, worst_case_slots


def test_numerology_and_overhead() -> None:
    assert [subcarrier_spacing_hz(n) for n in range(5)] == [15e3, 30e3, 60e3, 120e3, 240e3]
    assert prb_bandwidth_hz(1) == 360e3
    assert overhead(True) == 1 / 14
    assert overhead(False) == 2 / 14


def test_noise_is_density_times_bandwidth_times_figure() -> None:
    link = Link.of(RadioTable(prb_bandwidth_hz=1.8e6, noise_figure_db=5.0))
    assert 10 * np.log10(link.noise_w * 1e3) == pytest.approx(-174 + 5 + 10 * np.log10(1.8e6))


def test_rate_of_snr_one_is_the_usable_bandwidth() -> None:
    link = Link.of(RadioTable(prb_bandwidth_hz=1.8e6))
    assert link.rate_bps(np.array([0.0, 1.0, 3.0])) == pytest.approx([0.0, 1.8e6 * 13 / 14, 2 * 1.8e6 * 13 / 14])


@pytest.mark.parametrize(("antennas", "prbs"), [(1, 1), (4, 10), (16, 50)])
def test_worst_case_rate_is_the_mean_over_the_worst_prb(antennas: int, prbs: int) -> None:
    link = Link.of(RadioTable(antennas=antennas, prbs=prbs))
    snr_per_watt = np.array([0.05, 5.0, 5e3, 5e6])
    worst = np.random.default_rng(0).gamma(antennas, size=(100_000, prbs)).min(axis=1)
    simulated = [link.rate_bps(0.2 * snr * worst).mean() for snr in snr_per_watt]
    rate_bps = link.mean_rate_bps(snr_per_watt, *RayleighFading(1, prbs, antennas).law().worst())
    assert rate_bps == pytest.approx(simulated, rel=0.01)


def test_worst_case_slots_by_hand_on_the_mean_channel() -> None:
    link = Link.of(RadioTable(antennas=1, prb_bandwidth_hz=360e3, max_tx_power_w=0.2))
    rate_bps = link.mean_rate_bps(np.array([15.0]), *MeanChannel(prbs=10, antennas=1).law().worst())
    # SNR 0.2 · 15 = 3, so 360 kHz · 13/14 · 2 = 668,571 bit/s, 334.29 bit per slot of 0.5 ms
    assert worst_case_slots(rate_bps, 3343, 1.0, 5e-4) == 11
    assert worst_case_slots(rate_bps, 3342, 1.0, 5e-4) == 10
    assert worst_case_slots(rate_bps, 3342, 0.5, 5e-4) == 20


def test_a_channel_with_rate_zero_needs_infinitely_many_slots() -> None:
    assert worst_case_slots(np.array([0.0]), 100, 1.0, 5e-4) == np.inf
