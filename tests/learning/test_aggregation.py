import numpy as np
import pytest

from vefl_sim.learning.aggregation import normalized, pdpc_weights, weights


def test_weights_are_importance_over_both_probabilities() -> None:
    p, q, p_suc = np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 0.25]), np.array([1.0, 0.5, 0.8])
    assert weights(p, q, p_suc) == pytest.approx([1.0, 0.6, 1.0])


def test_full_participation_is_the_case_of_certain_orders() -> None:
    assert weights(np.array([0.7, 0.3]), np.ones(2), np.ones(2)) == pytest.approx([0.7, 0.3])


def test_pdpc_divides_by_the_number_ordered() -> None:
    assert pdpc_weights(3, ordered=4, in_coverage=35) == pytest.approx([0.25] * 3)


def test_pdpc_normalized_divides_by_the_number_delivered() -> None:
    assert pdpc_weights(3, ordered=4, in_coverage=35, normalize=True) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("normalize", [False, True])
def test_nothing_delivered_weighs_nothing(normalize: bool) -> None:
    assert len(pdpc_weights(0, ordered=4, in_coverage=35, normalize=normalize)) == 0


def test_normalized_weights_keep_their_ratios() -> None:
    assert normalized(np.array([1.0, 3.0])) == pytest.approx([0.25, 0.75])


def test_the_rule_is_unbiased_with_true_probabilities_and_uniform_selection() -> None:
    """E[Σ weight · Δ] = Σ p · Δ over random orders and losses (p_v equal, as the paper asks)."""
    rng, cvs, ordered, repeats = np.random.default_rng(0), 5, 2, 20_000
    update, p_suc = rng.normal(size=cvs), np.array([0.5, 0.9, 1.0, 0.7, 0.6])
    applied = weights(np.full(cvs, 1 / cvs), np.full(cvs, ordered / cvs), p_suc)
    selected = rng.permuted(np.tile(np.arange(cvs) < ordered, (repeats, 1)), axis=1)
    received = selected & (rng.random((repeats, cvs)) < p_suc)
    assert (received @ (applied * update)).mean() == pytest.approx(update.mean(), abs=0.02)
