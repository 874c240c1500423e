import numpy as np
import pytest
from scipy import stats

from vefl_sim.radio.fading import BLOCK_SLOTS, MeanChannel, RayleighFading

CVS = np.array([3, 17, 40])


@pytest.mark.parametrize("antennas", [1, 7, 20])
def test_a_gain_is_drawn_with_the_counter_of_its_block_and_cv(antennas: int) -> None:
    """Whatever was drawn before, and whichever other CVs are asked for; bit for bit."""
    fading = RayleighFading(9, prbs=2, antennas=antennas)
    for slot in (200, 0, 63, 64, 10**9):
        block, row = slot // 64, slot % 64
        generator = np.random.Generator(np.random.Philox(key=9, counter=[0, 0, block, 17]))
        uniform = generator.random((64, 2, antennas))[row]
        assert np.array_equal(fading.gains(slot, 1, np.array([4, 17]))[0, 1], -np.log1p(-uniform).sum(axis=1))


def test_many_slots_are_the_single_ones() -> None:
    many = RayleighFading(1, prbs=5, antennas=4).gains(50, 200, CVS)  # of four blocks
    fading = RayleighFading(1, prbs=5, antennas=4)
    assert np.array_equal(many, np.concatenate([fading.gains(slot, 1, CVS) for slot in range(50, 250)]))


@pytest.mark.parametrize("antennas", [1, 4])
def test_gains_are_gamma_distributed_and_independent(antennas: int) -> None:
    fading = RayleighFading(123, prbs=10, antennas=antennas)
    gains = np.concatenate([fading.gains(slot, BLOCK_SLOTS, CVS) for slot in range(0, 1024, BLOCK_SLOTS)])
    assert stats.kstest(gains.ravel(), stats.gamma(antennas).cdf).pvalue > 1e-3
    neighbours = np.corrcoef(gains[:-1].ravel(), gains[1:].ravel())[0, 1]
    assert abs(neighbours) < 0.02


@pytest.mark.parametrize("fading", [MeanChannel(10, 4), RayleighFading(5, 10, 4), RayleighFading(5, 3, 1)])
def test_the_stated_worst_prb_is_that_of_the_gains(fading: MeanChannel | RayleighFading) -> None:
    """The mean of log₂(1 + gain) over 6000 worst pRBs has a standard error of at most 1.1 %."""
    gains = np.concatenate([fading.gains(slot, BLOCK_SLOTS, CVS) for slot in range(0, 2048, BLOCK_SLOTS)])
    gain, probability = fading.law().worst()
    assert probability.sum() == pytest.approx(1.0)
    assert np.log2(1 + gain) @ probability == pytest.approx(np.log2(1 + gains.min(axis=2)).mean(), rel=0.03)
