"""The RAT methods at absurd scales: nothing overflows, cancels or hangs, and small numbers count beside large ones."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz import rat_problems
from tests.optimize.problems import saved_problems
from vefl_sim.core.arrays import Floats
from vefl_sim.optimize.rat.exact import assign
from vefl_sim.optimize.rat.problem import RatProblem, solve

EXACT = ("exact", "auto")


def problem_of(
    gain: Floats, floor: Floats, *, cap: float = 1e12, tradeoff: float = 1.0, beta: float = 0.0
) -> RatProblem:
    """A problem with P_max = 1 W, κ = 1 s and W′ = 1 Hz, so that gains are SNRs and bits are nats."""
    cvs = len(gain)
    return RatProblem(
        snr_per_watt=np.asarray(gain, float),
        max_power_w=np.ones(cvs),
        bits_left=np.maximum(np.full(cvs, cap), floor),
        floor_bps=np.asarray(floor, float),
        mean_bps=np.zeros(cvs),
        slot_s=1.0,
        bandwidth_hz=float(np.log(2)),
        tradeoff=tradeoff,
        efficiency=beta,
    )


def test_the_laws_of_a_slot_hold_at_any_scale() -> None:
    """Problems and laws are those of the attack "rat-problems": new ones, and those that once broke a method."""
    rng = np.random.default_rng(1)
    for fields in [*(rat_problems.draw(rng) for _ in range(150)), *saved_problems("rat-problems")]:
        rat_problems.laws(fields | {"references": False})


def test_the_water_level_at_a_low_snr() -> None:
    """At g·P = 2e-7 the powers summed to 1.5e-9 too much, at 1e-13 rates were 1 % above capacity."""
    rng = np.random.default_rng(0)
    for snr in (2e-7, 1e-10, 1e-13):
        gain = snr * (1 + 0.05 * snr * rng.random((1, 10)))  # close enough for all pRBs to get power
        allocation = solve(problem_of(gain, np.zeros(1)))
        assert allocation.power_w.sum() == pytest.approx(1.0, rel=1e-14)
        assert allocation.rate_bps[0] == pytest.approx(np.log1p(gain * allocation.power_w).sum(), rel=1e-13)
        assert np.all(allocation.power_w > 0)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("small", [2.0, 1e-4, 1e-9])
def test_a_small_floor_counts_beside_large_ones(method: str, small: float) -> None:
    """The third CV needs the pRB on which the first one would gain most; the others can do without it."""
    nats_hz = 1e9 / np.log1p(8e8)  # so that floors of 1e6 to 1e9 bit/s can be met
    gain = np.array([[1e9, 9e8, 0, 0], [0, 0, 1e9, 1e9], [3 * small / nats_hz, 0, 0, 0]])
    problem = replace(
        problem_of(gain, np.zeros(3)),
        bandwidth_hz=nats_hz * np.log(2),
        floor_bps=np.array([1e6, 1e9, small]),
        bits_left=np.full(3, 1e12),
    )
    allocation = solve(problem, method)
    assert allocation.status == "optimal"
    assert allocation.owner.tolist() == [2, 0, 1, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_assignment_of_values_that_are_not_finite_ends(bad: float) -> None:
    column = np.empty(4, np.int64)
    assign(np.full((4, 4), bad), column)
    assert np.all((column >= 0) & (column < 4))


@pytest.mark.parametrize(
    "change",
    [{"tradeoff": 1e308}, {"snr_per_watt": np.full((2, 3), 1e308), "max_power_w": np.full(2, 1e9)},
     {"bandwidth_hz": 1e-300, "bits_left": np.full(2, 1e20)}, {"efficiency": 1e300, "tradeoff": 1e30}],
)  # fmt: skip
def test_problems_that_overflow_are_refused(change: dict) -> None:
    with pytest.raises(ValueError, match="too large"):
        replace(problem_of(np.ones((2, 3)), np.zeros(2)), **change)
