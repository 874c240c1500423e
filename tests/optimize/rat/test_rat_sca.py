from dataclasses import replace

import numpy as np
import pytest

from tests.optimize.rat.rat_problems import NATS, check_constraints, exact, random_problem, scaled_rates
from vefl_sim.optimize.rat.problem import Allocation
from vefl_sim.optimize.rat.sca import Relaxation, algorithm4

pytest.importorskip("cvxpy")


@pytest.mark.parametrize("perspective", [False, True])
@pytest.mark.parametrize(("cvs", "prbs", "seed"), [(1, 4, 0), (2, 6, 1), (2, 6, 2), (3, 6, 3), (4, 8, 4), (5, 5, 5)])
def test_feasible_and_never_above_the_optimum(cvs: int, prbs: int, seed: int, perspective: bool) -> None:
    problem = random_problem(np.random.default_rng(seed), cvs, prbs)
    scaled = problem.scaled
    allocation = algorithm4(problem, perspective=perspective)
    rate = scaled_rates(allocation)
    check_constraints(scaled, Allocation(allocation.owner, allocation.power_w, rate))
    unit = NATS * problem.largest_weight
    least, optimum = exact(scaled)
    assert allocation.objective == pytest.approx(
        unit * (scaled.weight @ rate - scaled.price * allocation.power_w.sum()), rel=1e-9
    )
    assert np.isnan(allocation.bound)
    if allocation.status == "gap":
        assert least == 0
        assert np.all(rate >= scaled.floor * (1 - 1e-9))
        assert allocation.objective <= unit * optimum * (1 + 1e-7)
    else:
        assert allocation.status == "infeasible_floors"
        assert np.any(rate < scaled.floor * (1 - 1e-9))


def test_the_perspective_form_gets_close_for_two_cvs() -> None:
    shares = []
    for seed in range(8):
        problem = random_problem(np.random.default_rng(seed), 2, 8)
        allocation = algorithm4(problem, perspective=True)
        if allocation.status == "gap":
            shares.append(allocation.objective / NATS / problem.largest_weight / exact(problem.scaled)[1])
    assert len(shares) >= 3
    assert np.mean(shares) > 0.9


def test_equal_sharing_if_nothing_can_be_solved() -> None:
    problem = random_problem(np.random.default_rng(0), 2, 4)
    impossible = np.full(2, 1e12)
    problem = replace(problem, floor_bps=impossible, bits_left=impossible)
    allocation = algorithm4(problem)
    assert allocation.owner.tolist() == [0, 1, 0, 1]
    assert allocation.status == "infeasible_floors"


def test_the_last_iterate_is_used_if_the_solver_fails_later(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(np.random.default_rng(1), 2, 6)
    first = algorithm4(problem, iterations=1)
    solve, calls = Relaxation.solve, []

    def fail_later(self: Relaxation, penalty: float, share: np.ndarray) -> np.ndarray | None:
        calls.append(penalty)
        return solve(self, penalty, share) if len(calls) == 1 else None

    monkeypatch.setattr(Relaxation, "solve", fail_later)
    np.testing.assert_array_equal(algorithm4(problem).owner, first.owner)
    assert calls == [1.0, 2.0]
