import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.optimize.rat import RatProblem, solve


def problem(cvs: int, prbs: int, seed: int = 0) -> RatProblem:
    rng = np.random.default_rng(seed)
    return RatProblem(
        snr_per_watt=rng.exponential(50.0, (cvs, prbs)),
        max_power_w=np.full(cvs, 0.2),
        bits_left=rng.uniform(10, 1e6, cvs),
        slot_s=5e-4,
        bandwidth_hz=1.67e6,
    )


@given(st.integers(1, 20), st.integers(0, 100), st.data())
def test_equal_keeps_the_constraints(prbs: int, seed: int, data: st.DataObject) -> None:
    slot = problem(data.draw(st.integers(1, prbs)), prbs, seed)
    allocation = solve(slot, "equal")
    cvs = len(slot.bits_left)
    assert set(allocation.owner) == set(range(cvs))  # C7, C8: every pRB has one owner, everybody one at least
    assert np.all(allocation.power_w >= 0)  # C11
    per_cv = np.bincount(allocation.owner, allocation.power_w, cvs)
    assert per_cv == pytest.approx(slot.max_power_w)  # C12, all of it
    assert np.all(allocation.rate_bps * slot.slot_s <= slot.bits_left * (1 + 1e-12))


def test_rate_like_a_plain_loop() -> None:
    slot = problem(3, 7)
    allocation = solve(slot, "equal")
    for cv in range(3):
        rate = sum(
            slot.bandwidth_hz * np.log2(1 + allocation.power_w[prb] * slot.snr_per_watt[cv, prb])
            for prb in range(7)
            if allocation.owner[prb] == cv
        )
        assert allocation.rate_bps[cv] == pytest.approx(min(rate, slot.bits_left[cv] / slot.slot_s))


def test_urgent_cvs_get_the_odd_prbs() -> None:
    assert np.bincount(solve(problem(3, 10), "equal").owner).tolist() == [4, 3, 3]
