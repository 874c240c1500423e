"""Aggregation weights by hand, and on average over random orders and losses."""

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


P = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
P_SUC = np.array([0.9, 0.5, 0.7, 1.0, 0.6])


@pytest.mark.parametrize(
    ("ordered", "weigh", "expected"),
    [
        (2, lambda p_suc: weights(P, np.full(5, 2 / 5), p_suc), P),
        (2, lambda p_suc: pdpc_weights(p_suc, 2, 5), np.full(5, 0.2)),
        (5, lambda p_suc: fdpc_weights(P, p_suc), P),
        (5, lambda p_suc: pdpc_weights(np.ones(5), 5, 5), P_SUC / 5),  # realized p_suc: biased towards good channels
    ],
    ids=["unequal p", "pdpc", "fdpc", "realized"],
)
def test_on_average_every_cv_has_its_p(ordered: int, weigh, expected: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    """E[ω_{k+1}] = Σ p_v·ω_v over uniform selections and random losses, with the true p_suc in the rule."""
    rng, repeats = np.random.default_rng(0), 20_000
    selected = rng.permuted(np.tile(np.arange(5) < ordered, (repeats, 1)), axis=1)
    received = selected & (rng.random((repeats, 5)) < P_SUC)
    assert received.mean(axis=0) * weigh(P_SUC) == pytest.approx(expected, abs=0.01)
