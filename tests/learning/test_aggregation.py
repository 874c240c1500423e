import numpy as np
import pytest

from vefl_sim.learning.aggregation import fdpc_weights, mixed_shares, normalized, pdpc_weights, weights


def test_weights_are_importance_over_both_probabilities() -> None:
    p, q, p_suc = np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 0.25]), np.array([1.0, 0.5, 0.8])
    assert weights(p, q, p_suc) == pytest.approx([1.0, 0.6, 1.0])


@pytest.mark.parametrize(("delivered", "normalize", "weight"), [(3, False, 1 / 4), (3, True, 1 / 3), (0, True, 0)])
def test_pdpc_divides_by_the_number_ordered_or_delivered(delivered: int, normalize: bool, weight: float) -> None:
    applied = pdpc_weights(np.ones(delivered), ordered=4, in_coverage=35, normalize=normalize)
    assert applied == pytest.approx([weight] * delivered)


def test_normalized_weights_keep_their_ratios() -> None:
    assert normalized(np.array([1.0, 3.0])) == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("p", [[0.2] * 5, [0.5, 0.1, 0.1, 0.1, 0.2]], ids=["equal", "unequal"])
def test_the_rule_is_unbiased_with_true_probabilities_and_uniform_selection(p: list[float]) -> None:
    """E[Σ weight · Δ] = Σ p · Δ over random orders and losses. The paper requires equal p_v; unequal ones work, too."""
    rng, cvs, ordered, repeats = np.random.default_rng(0), 5, 2, 20_000
    update, p_suc = rng.normal(size=cvs), np.array([0.5, 0.9, 1.0, 0.7, 0.6])
    applied = weights(np.array(p), np.full(cvs, ordered / cvs), p_suc)
    selected = rng.permuted(np.tile(np.arange(cvs) < ordered, (repeats, 1)), axis=1)
    received = selected & (rng.random((repeats, cvs)) < p_suc)
    assert (received @ (applied * update)).mean() == pytest.approx(p @ update, abs=0.02)


def test_fdpc_weights_by_hand() -> None:
    p = np.array([0.25, 0.25])  # of four CVs, two delivered
    assert fdpc_weights(p, np.array([1.0, 0.5])) == pytest.approx([0.25, 0.5])
    assert fdpc_weights(p, np.ones(2), normalize=True) == pytest.approx([0.5, 0.5])


def test_mixed_shares_by_hand() -> None:
    samples, sojourn = np.array([1.0, 3.0]), np.array([6.0, 2.0])
    assert mixed_shares(samples, sojourn, 0.0) == pytest.approx([0.25, 0.75])
    assert mixed_shares(samples, sojourn, 1.0) == pytest.approx([0.75, 0.25])
    assert mixed_shares(samples, sojourn, 0.5) == pytest.approx([0.5, 0.5])
    assert mixed_shares(np.zeros(2), np.zeros(2), 0.5) == pytest.approx([0.5, 0.5])


def mean_weights(weigh, select, p_suc, rounds=20_000) -> np.ndarray:
    """Mean weight of each CV over rounds in which `select` draws the ordered CVs, and p_suc those that deliver."""
    rng, total = np.random.default_rng(1), np.zeros(len(p_suc))
    for _ in range(rounds):
        ordered = select(rng)
        delivered = ordered[rng.random(len(ordered)) < p_suc[ordered]]
        total[delivered] += weigh(ordered, delivered)
    return total / rounds


def test_fdpc_is_unbiased_with_the_true_p_suc() -> None:
    """E[ω_{k+1}] = Σ p_v·ω_v: on average every CV has weight p_v, whichever updates are lost."""
    p, p_suc = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.9, 0.5, 0.7, 1.0])
    mean = mean_weights(lambda _, d: fdpc_weights(p[d], p_suc[d]), lambda rng: np.arange(4), p_suc)
    assert mean == pytest.approx(p, abs=0.01)


def test_pdpc_is_unbiased_with_the_true_p_suc_and_uniform_selection() -> None:
    p_suc = np.array([0.9, 0.5, 0.7, 1.0, 0.6])
    mean = mean_weights(
        lambda ordered, d: pdpc_weights(p_suc[d], len(ordered), 5), lambda rng: rng.permutation(5)[:2], p_suc
    )
    assert mean == pytest.approx(np.full(5, 0.2), abs=0.01)


def test_realized_p_suc_is_biased_towards_good_channels() -> None:
    p_suc = np.array([0.9, 0.5])
    mean = mean_weights(lambda ordered, d: pdpc_weights(np.ones(len(d)), 2, 2), lambda rng: np.arange(2), p_suc)
    assert mean == pytest.approx(p_suc / 2, abs=0.01)
