"""Fading by the distance driven: its correlation, its laws, and its independence of the order of calls."""

import numpy as np
import pytest
from scipy import stats

from vefl_sim.core.clock import SlotGrid
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.delay_profile import DelayProfile
from vefl_sim.radio.fading import SelectiveRayleighFading
from vefl_sim.radio.route import Route
from vefl_sim.radio.scattering import PATHS, Propagation, ScatteredFading, combine

GRID = SlotGrid.of_numerology(1)
WAVELENGTH_M = 299_792_458 / 3.5e9
K_9_DB = 10**0.9


def profile(spread_s=None, prbs: int = 10) -> DelayProfile:
    return DelayProfile(spread_s, 3.5, prbs, 1.8e6)


def propagation(spread_s=None, *, k_factor: float = 0.0, antennas: int = 4, prbs: int = 10) -> Propagation:
    return Propagation(7, prbs, antennas, WAVELENGTH_M, k_factor, profile(spread_s, prbs))


def scene(time_s: float, positions: dict[int, float]) -> Scene:
    cvs, count = np.array(sorted(positions), np.int64), len(positions)
    x_m = np.array([positions[cv] for cv in sorted(positions)])
    return Scene(round(time_s * 1e9), cvs, x_m, np.zeros(count), np.zeros(count), np.ones(count, np.bool_))


def driving(cvs: int, speed_mps: float, *, sight: bool = False, past_slots: int = 0) -> Route:
    """CVs 0, 1, … drive straight for a second."""
    route = Route(GRID.slot_ns, past_slots)
    route.move(scene(0.0, dict.fromkeys(range(cvs), 0.0)), np.full(cvs, sight))
    route.approach(scene(1.0, dict.fromkeys(range(cvs), speed_mps)))
    return route


def plain_gains(own: Propagation, cv: int, driven_m: np.ndarray, *, sight: bool) -> np.ndarray:
    """The gains by their definition: the literal twin of `combine`."""
    turns, real, imag = own.paths(cv, sight=sight)
    gains = np.zeros((len(driven_m), own.prbs))
    for slot, x_m in enumerate(driven_m):
        for prb in range(own.prbs):
            for antenna in range(own.antennas):
                column = antenna * own.prbs + prb
                amplitudes = real[:, column] + 1j * imag[:, column]
                gains[slot, prb] += abs((amplitudes * np.exp(2j * np.pi * x_m * turns)).sum()) ** 2
    return gains


@pytest.mark.parametrize(
    ("k_factor", "sight", "antennas", "prbs"), [(0.0, False, 1, 1), (K_9_DB, True, 4, 3), (K_9_DB, False, 3, 10)]
)
def test_the_kernel_equals_its_twin(k_factor: float, sight: bool, antennas: int, prbs: int) -> None:
    own = propagation(k_factor=k_factor, antennas=antennas, prbs=prbs)
    driven_m, gains = np.array([0.0, 0.013, 1.7, 93.1, 24_321.987]), np.empty((5, prbs))
    combine(driven_m, own.paths(5, sight=sight), antennas, gains)
    np.testing.assert_allclose(gains, plain_gains(own, 5, driven_m, sight=sight), rtol=1e-6, atol=1e-7)


def test_a_gain_depends_on_cv_and_distance_but_not_on_the_call() -> None:
    """Many slots, single slots in any order, and other CVs in between give the same bits; another speed, too."""
    cvs = np.array([1, 4, 6])
    route = driving(8, 20.0)
    whole = ScatteredFading(propagation(), route).gains(10, 300, cvs)
    single = ScatteredFading(propagation(), route)
    for index in (299, 0, 7, 150):
        assert np.array_equal(single.gains(10 + index, 1, cvs[1:])[0], whole[index, 1:])
    half = ScatteredFading(propagation(), driving(8, 10.0))
    np.testing.assert_allclose(half.gains(1000, 1, cvs), ScatteredFading(propagation(), route).gains(500, 1, cvs))


def test_gains_have_the_gamma_law_of_rayleigh() -> None:
    """One sample for each of 2000 CVs; PATHS paths of equal power are Gaussian to 1 %."""
    own = propagation(prbs=1)
    gains = np.concatenate([plain_gains(own, cv, np.array([9.0]), sight=False) for cv in range(2000)])
    assert stats.kstest(gains.ravel(), stats.gamma(4).cdf).pvalue > 1e-3


@pytest.mark.parametrize("spread_s", [0.0, 1e-7])
def test_prbs_of_independent_slots_are_correlated_by_the_delay_spread(spread_s: float) -> None:
    """ρ of powers of one antenna is |1/(1 + j2πΔfτ)|²; for "jakes" the sheet of `check radio` compares the two."""
    fading = SelectiveRayleighFading(3, 1, profile(spread_s, 4), driving(300, 20.0))
    gains = fading.gains(0, 40, np.arange(300)).reshape(-1, 4)
    for apart in (1, 2, 3):
        ours = np.corrcoef(gains[:, 0], gains[:, apart])[0, 1]
        assert ours == pytest.approx(1 / (1 + (2 * np.pi * 1.8e6 * apart * spread_s) ** 2), abs=0.05)


def test_a_direct_path_is_included_in_the_delay_spread() -> None:
    """Power-weighted delays of all paths: K/(K + 1) without delay, the rest exponential."""
    scattered_s = profile(1e-7).scattered_rms_s(K_9_DB, sight=True)
    delays = np.append(0.0, -scattered_s * np.log1p(-(np.arange(100_000) + 0.5) / 100_000))
    power = np.append(K_9_DB, np.full(100_000, 1 / 100_000)) / (K_9_DB + 1)
    mean = delays @ power
    assert np.sqrt((delays - mean) ** 2 @ power) == pytest.approx(1e-7, rel=1e-3)


FADINGS = {
    "jakes": (None, 0.0, False),
    "jakes, all alike": (0.0, 0.0, False),
    "rician, without sight": (None, K_9_DB, False),
    "rician, 38.901": ("38.901", K_9_DB, True),
}


@pytest.mark.parametrize("kind", FADINGS)
def test_the_stated_worst_prb_is_that_of_the_gains(kind: str) -> None:
    """The mean of log₂(1 + gain) over 12,000 worst pRBs, of which some hundreds are independent."""
    spread_s, k_factor, sight = FADINGS[kind]
    fading = ScatteredFading(propagation(spread_s, k_factor=k_factor), driving(600, 20.0, sight=sight))
    gains = np.concatenate([fading.gains(slot, 1, np.arange(600)) for slot in range(0, 2000, 100)])
    gain, probability = fading.law(sight=sight).worst()
    assert probability.sum() == pytest.approx(1.0)
    assert np.log2(1 + gain) @ probability == pytest.approx(np.log2(1 + gains.min(axis=2)).mean(), rel=0.03)


def test_the_worst_of_correlated_rayleigh_prbs() -> None:
    fading = SelectiveRayleighFading(3, 4, profile("38.901"), driving(40, 20.0, sight=True))
    gains = fading.gains(0, 256, np.arange(40))
    gain, probability = fading.law(sight=True).worst()
    assert np.log2(1 + gain) @ probability == pytest.approx(np.log2(1 + gains.min(axis=2)).mean(), rel=0.02)
    without = fading.law(sight=False).worst()
    assert np.log2(1 + without[0]) @ without[1] < np.log2(1 + gain) @ probability


def test_correlated_rayleigh_is_independent_from_slot_to_slot_and_of_the_call() -> None:
    cvs = np.array([2, 5])
    one, other = (SelectiveRayleighFading(3, 4, profile("38.901"), driving(9, 20.0, sight=True)) for _ in range(2))
    whole = one.gains(50, 200, cvs)
    assert np.array_equal(other.gains(170, 3, cvs[1:]), whole[120:123, 1:])
    assert abs(np.corrcoef(whole[:-1].ravel(), whole[1:].ravel())[0, 1]) < 0.05


def test_paths_of_many_cvs_are_forgotten_and_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vefl_sim.radio.scattering._KEPT_NUMBERS", 3 * PATHS * 40)
    fading, cvs = ScatteredFading(propagation(), driving(9, 20.0)), np.arange(9)
    assert np.array_equal(fading.gains(5, 2, cvs), ScatteredFading(propagation(), driving(9, 20.0)).gains(5, 2, cvs))
    assert fading._paths.cache_info().currsize == 3
