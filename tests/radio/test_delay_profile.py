"""Correlation over frequency, also where pRBs are nearly alike."""

import numpy as np
import pytest

from vefl_sim.radio.delay_profile import DelayProfile


@pytest.mark.parametrize("rms_s", [0.0, 1e-12, 1.8e-8, 1e-6])
@pytest.mark.parametrize(("prbs", "bandwidth_hz"), [(1, 1.8e6), (10, 1.8e6), (275, 180e3)])
def test_mixing_gives_the_correlation(prbs: int, rms_s: float, bandwidth_hz: float) -> None:
    profile = DelayProfile(rms_s, 3.5, prbs, bandwidth_hz)
    mixing = profile.mixing(rms_s)
    assert np.abs(mixing @ mixing.conj().T - profile.correlation(rms_s)).max() < 1e-10


@pytest.mark.parametrize("prbs", [6, 50])
@pytest.mark.parametrize("rms_s", [9.3e-8, 3.6e-7])
def test_rounding_does_not_decide_which_prb_comes_first(
    prbs: int, rms_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two pRBs in the middle are alike; another processor rounds in another way, but must get the same channel."""
    profile = DelayProfile(rms_s, 3.5, prbs, 360e3)
    mixing, correlation = profile.mixing(rms_s), profile.correlation(rms_s)
    rng = np.random.default_rng(1)
    for _ in range(10):
        rounded = correlation * (1 + 1e-15 * rng.standard_normal(correlation.shape))
        monkeypatch.setattr(DelayProfile, "correlation", lambda self, rms_s, rounded=rounded: rounded)
        assert np.abs(profile.mixing(rms_s) - mixing).max() < 1e-8
