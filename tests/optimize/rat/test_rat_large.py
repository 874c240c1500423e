import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import random_problem
from tests.optimize.rat.rat_problems import enumerated, exact, missed, random_scaled
from vefl_sim.optimize.rat.large import (
    Holdings,
    fill_lists,
    gain_in,
    large,
    new_holdings,
    new_market,
    offer,
    outcome,
    survey,
)
from vefl_sim.optimize.rat.problem import Allocation, SlotProblem, new_allocation
from vefl_sim.optimize.rat.water import demand_of, water_fill

seeds = st.integers(0, 2**32 - 1)


def solved(scaled: SlotProblem) -> tuple[float, float, float, Allocation]:
    """(objective, bound, deficit, allocation) by `large`; every entry of the allocation must be filled."""
    allocation = new_allocation(*scaled.gain.shape)
    for part in allocation:
        part[:] = -1
    objective, bound = large(scaled, allocation)
    return objective, bound, missed(scaled, allocation), allocation


def test_close_to_the_optimum_on_average() -> None:
    ratios = []
    for seed in range(30):
        scaled = random_scaled(np.random.default_rng(seed), 4, 8)
        ratios.append(solved(scaled)[0] / exact(scaled)[1])
    assert np.mean(ratios) > 0.99


@given(seeds, st.integers(1, 12), st.integers(0, 60), st.sampled_from([0.0, 1.0, 3.0]))
def test_every_allocation_keeps_the_constraints(seed: int, cvs: int, more: int, tight: float) -> None:
    """C7, C11 and C12; rates follow from the powers, do not exceed the cap, and the bound holds."""
    scaled = random_scaled(np.random.default_rng(seed), cvs, cvs + more, tight=tight)
    objective, bound, deficit, (owner, watts, rate) = solved(scaled)
    assert 0 <= owner.min() <= owner.max() < cvs
    assert np.all(watts >= 0)
    assert np.all(np.bincount(owner, watts, cvs) <= scaled.power * (1 + 1e-9))
    assert np.all(rate <= scaled.cap * (1 + 1e-9))
    carried = np.bincount(owner, np.log1p(scaled.gain[owner, np.arange(cvs + more)] * watts), cvs)
    np.testing.assert_allclose(carried, rate, rtol=1e-7, atol=1e-9)
    assert deficit > 0 or bound >= objective


@given(seeds, st.integers(2, 3), st.integers(3, 5))
def test_floors_are_met_whenever_any_assignment_meets_them_and_the_bound_holds(seed: int, cvs: int, prbs: int) -> None:
    scaled = random_scaled(np.random.default_rng(seed), cvs, prbs)
    least, optimum = enumerated(scaled)
    assert exact(scaled) == pytest.approx((least, optimum), rel=1e-7, abs=1e-9)
    objective, bound, deficit, *_ = solved(scaled)
    assert deficit >= least - 1e-9
    if least == 0:
        assert deficit == 0
        assert objective <= optimum + 1e-9 * abs(optimum)
        assert max(survey(scaled).prices_bound, objective) >= bound >= optimum - 1e-9 * abs(optimum)


@given(seeds, st.integers(2, 5), st.integers(0, 6), st.sampled_from([0.0, 1.0, 3.0, 20.0]), st.booleans())
def test_no_exchange_gains_more_than_its_bound(seed: int, cvs: int, more: int, tight: float, random: bool) -> None:
    """Moves and swaps that `offer` rules out cannot help, from good owners or from any."""
    rng = np.random.default_rng(seed)
    scaled = random_scaled(rng, cvs, cvs + more, tight=tight)
    found, holdings = survey(scaled), new_holdings(cvs, cvs + more)
    market = new_market(found.gains)
    holdings.owner[:] = rng.integers(0, cvs, cvs + more) if random else solved(scaled)[3].owner
    fill_lists(found.ground, holdings)
    before = [outcome(found.ground, holdings, v, -1, -1) for v in range(cvs)]
    aim = 0 if sum(deficit for deficit, *_ in before) > 0 else 1
    for v in range(cvs):
        market.now[v] = before[v]
        offer(found.ground, holdings, market, v, aim)

    def gain(v: int, drop: int, add: int) -> float:
        return gain_in(aim, found.ground.scale, before[v], outcome(found.ground, holdings, v, drop, add))

    for one, u in enumerate(holdings.owner):
        assert market.kept[one] == market.worth[u, one]
        for v in set(range(cvs)) - {u}:
            bound = market.worth[v, one] - market.worth[u, one]
            assert gain(u, one, -1) + gain(v, -1, one) <= bound + 1e-9 * found.ground.scale[aim]
            for two in np.flatnonzero(holdings.owner == v):
                swap = bound + market.worth[u, two] - market.worth[v, two]
                assert gain(u, one, two) + gain(v, two, one) <= swap + 1e-9 * found.ground.scale[aim]


@pytest.mark.parametrize(("cvs", "prbs", "share"), [(10, 50, 0.2), (25, 50, 0.3)])
def test_sizes_of_sets_explain_most_of_the_gap_of_the_prices(cvs: int, prbs: int, share: float) -> None:
    """With few pRBs per CV, D is far above every allocation; what remains of that gap is certified."""
    of_prices, of_sizes = [], []
    for seed in range(8):
        scaled = random_problem(cvs, prbs, seed).scaled
        objective, bound, deficit, *_ = solved(scaled)
        if deficit == 0:
            of_prices.append(survey(scaled).prices_bound - objective)
            of_sizes.append(bound - objective)
    assert len(of_prices) >= 6
    assert np.median(of_sizes) <= share * np.median(of_prices)


@given(seeds, st.sampled_from([0.0, 1.0, 20.0]), st.sampled_from([0.01, 1.0, 100.0]))
def test_the_quick_water_filling_equals_the_plain_one(seed: int, tight: float, dearer: float) -> None:
    rng = np.random.default_rng(seed)
    scaled = random_scaled(rng, 1, 7, tight=tight)
    scaled = scaled._replace(price=scaled.price * dearer, cap=np.maximum(scaled.cap, rng.choice([0.0, 50.0])))
    mine = rng.permutation(7)[: rng.integers(1, 8)]
    rate, spent = water_fill(scaled.gain[0], mine.copy(), demand_of(scaled, 0), np.zeros(7))
    add = mine[0]  # added again below; one further pRB is dropped
    held = np.setdiff1d(np.arange(7), mine)[:1].tolist() + mine[1:].tolist()
    drop = held[0] if len(held) == len(mine) else -1
    held = sorted(held, key=lambda z: -scaled.gain[0, z])
    holdings = Holdings(np.zeros(7, np.int64), np.array([held], np.int64), np.array([len(held)]))
    deficit, value, *_ = outcome(survey(scaled).ground, holdings, 0, drop, add)
    assert value == pytest.approx(scaled.weight[0] * rate - scaled.price * spent, rel=1e-9, abs=1e-9)
    assert deficit == pytest.approx(max(0, scaled.floor[0] - rate), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1e9])
def test_units_of_the_objective_do_not_matter(scale: float) -> None:
    objective, bound, _, allocation = solved(random_scaled(np.random.default_rng(5), 10, 50))
    other = solved(random_scaled(np.random.default_rng(5), 10, 50, scale=scale))
    assert (other[0], other[1]) == pytest.approx((objective * scale, bound * scale), rel=1e-6)
    np.testing.assert_array_equal(other[3].owner, allocation.owner)
