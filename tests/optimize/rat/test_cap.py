"""No method lets a CV send more than the bits it has left."""

from dataclasses import replace

import numpy as np
import pytest

from tests.optimize.problems import COMPILED, random_problem
from vefl_sim.optimize.rat.problem import solve

BITS = np.array([10.0, 3.0])


@pytest.mark.parametrize("method", COMPILED)
def test_few_bits_are_all_sent_and_no_more(method: str) -> None:
    """Power costs nothing here (β = 0), and any pRB could carry more than ten bits."""
    for seed in range(20):
        problem = replace(random_problem(2, 6, seed), bits_left=BITS, floor_bps=np.zeros(2), efficiency=0.0)
        allocation = solve(problem, method)
        owns = np.isin([0, 1], allocation.owner)
        assert owns.all() or method in ("max-snr", "proportional-fair")  # which may leave a CV without a pRB
        assert allocation.rate_bps * problem.slot_s == pytest.approx(np.where(owns, BITS, 0.0), rel=1e-6)
