"""Correlation over frequency, also where pRBs are nearly alike."""

import numpy as np
import pytest

from vefl_sim.radio.delay_profile import DelayProfile


@pytest.mark.parametrize("prbs", [1, 2, 10, 50, 275])
@pytest.mark.parametrize("rms_s", [0.0, 1e-12, 5.6e-9, 1.8e-8, 5.6e-8, 3.6e-7, 1e-6])
@pytest.mark.parametrize("bandwidth_hz", [180e3, 1.8e6])
def test_mixing_gives_the_correlation(prbs: int, rms_s: float, bandwidth_hz: float) -> None:
    profile = DelayProfile(rms_s, 3.5, prbs, bandwidth_hz)
    mixing = profile.mixing(rms_s)
    assert np.abs(mixing @ mixing.conj().T - profile.correlation(rms_s)).max() < 1e-10
