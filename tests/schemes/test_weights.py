"""Aggregation weights by hand."""

import numpy as np
import pytest

from tests.schemes.rounds import observed
from vefl_sim.schemes.weights import fdpc_weights, pdpc_weights, weights


def test_weights_by_hand() -> None:
    p, q, p_suc = np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 0.25]), np.array([1.0, 0.5, 0.8])
    assert weights(p, q, p_suc) == pytest.approx([1.0, 0.6, 1.0])
    assert weights(p, q, p_suc, normalize=True) == pytest.approx(np.array([1.0, 0.6, 1.0]) / 2.6)
    half = np.array([0.25, 0.25])  # of four CVs, two delivered
    assert fdpc_weights(half, np.array([1.0, 0.5])) == pytest.approx([0.25, 0.5])
    assert fdpc_weights(half, np.ones(2), normalize=True) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("delivered", "normalize", "weight"), [(3, False, 1 / 4), (3, True, 1 / 3), (0, True, 0)])
def test_pdpc_divides_by_the_number_ordered_or_delivered(delivered: int, normalize: bool, weight: float) -> None:
    applied = pdpc_weights(np.ones(delivered), ordered=4, in_coverage=35, normalize=normalize)
    assert applied == pytest.approx([weight] * delivered)


def test_importance_mixes_shares_of_data_and_sojourn() -> None:
    round = observed([1, 3], [6.0, 2.0])
    assert [round.importance(weight)[0] for weight in (0.0, 1.0, 0.5)] == pytest.approx([0.25, 0.75, 0.5])
    assert observed([0, 0], [0.0, 0.0]).importance(0.5) == pytest.approx([0.5, 0.5])


def test_equal_p_is_not_needed_for_an_unbiased_step() -> None:
    """A CV is received with probability q·p_suc, so it counts p on average; with realized p_suc it counts less."""
    p, p_suc = np.array([0.1, 0.2, 0.3, 0.25, 0.15]), np.array([0.9, 0.5, 0.7, 1.0, 0.6])
    assert 2 / 5 * p_suc * weights(p, np.full(5, 2 / 5), p_suc) == pytest.approx(p)
    assert 2 / 5 * p_suc * pdpc_weights(p_suc, 2, 5) == pytest.approx([0.2] * 5)
    assert p_suc * fdpc_weights(p, p_suc) == pytest.approx(p)
    assert p_suc * pdpc_weights(np.ones(5), 5, 5) == pytest.approx(p_suc / 5)
