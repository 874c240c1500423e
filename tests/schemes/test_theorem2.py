"""Theorem 2 of the paper: its sum by hand and in the tables, its bound with known constants."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.schemes.rounds import observed
from tests.schemes.test_schemes import ROUND, scheme
from vefl_sim import Plan, Run, RunFailed, from_tables, simulate, with_settings
from vefl_sim.protocol.server.orders import checked_theorem2_sum
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.pdpc import Pdpc

SUCCESS = [0.5, 1.0, 1.0, 0.8]


def sum_of(kind: str, observation: Observation, **aggregation: object) -> float | None:
    """The sum of Theorem 2 of a scheme for its own plan."""
    tested = scheme(kind, aggregation=aggregation)
    return tested.theorem2_sum(observation, tested.plan(observation))


@pytest.mark.parametrize("kind", ["pdpc", "random"])
def test_the_sum_is_over_all_in_coverage_not_over_the_ordered(kind: str) -> None:
    # V = 4 and 2 ordered: p/q = (1/4)/(2/4) = 1/2 each; over the success rates 1/2·(2 + 1 + 1 + 1.25).
    assert sum_of(kind, observed(**ROUND)) == pytest.approx(2.0)
    assert sum_of(kind, observed(**ROUND, success=SUCCESS), p_suc="history") == pytest.approx(2.625)
    assert sum_of(kind, observed(**ROUND, success=SUCCESS)) == pytest.approx(2.0)  # realized: p_suc = 1


def test_the_sum_of_fdpc_has_q_of_one() -> None:
    # p = (10, 4, 2, 24)/40: 0.25/0.5 + 0.1 + 0.05 + 0.6/0.8.
    assert sum_of("fdpc", observed(**ROUND)) == pytest.approx(1.0)
    assert sum_of("fdpc", observed(**ROUND, success=SUCCESS), p_suc="history") == pytest.approx(1.4)


def test_ineligible_cvs_count_in_pdpc_but_not_in_fdpc() -> None:
    """FDPC has p_v = 0 for ineligible CVs; PDPC has p_v = 1/V for all, as if any CV could have been drawn."""
    gone = observed([40, 20, 10, 30], [10.0, 4.0, 0.0004, 26.0], success=[1.0, 1.0, 0.1, 0.5])
    assert sum_of("fdpc", gone, p_suc="history") == pytest.approx(10 / 40 + 4 / 40 + 26 / 40 / 0.5, rel=1e-4)
    assert sum_of("pdpc", gone, p_suc="history") == pytest.approx((1 + 1 + 10 + 2) / 2)


@pytest.mark.parametrize("kind", ["pdpc", "random", "fdpc"])
def test_there_is_no_sum_without_orders_nor_for_normalized_weights(kind: str) -> None:
    assert sum_of(kind, observed(**ROUND, budget=1.0)) is None
    assert sum_of(kind, observed([], [])) is None
    assert sum_of(kind, observed(**ROUND), normalize=True) is None


def test_the_column_of_the_rounds_table(golden: Run) -> None:
    rounds = golden.rounds
    assert rounds["theorem2_sum"].tolist() == pytest.approx((rounds["in_coverage"] / rounds["ordered"]).tolist())


@pytest.mark.parametrize("kind", ["fedprox", "afa-cd", "centralized"])
def test_other_schemes_have_no_sum(kind: str) -> None:
    assert scheme(kind).theorem2_sum is None


def test_the_column_divides_by_the_success_rate_of_the_rounds_before(tmp_path) -> None:
    """CV 2 has delivered in the first round and not in the second: (1 + 1)/(1 + 2). CV 1 has delivered in both."""
    longer = with_settings(from_tables(EXPERIMENT), "aggregation.p_suc=history", "run.rounds=3")
    rounds = simulate(longer, out=tmp_path).rounds
    assert (rounds["in_coverage"].tolist(), rounds["ordered"].tolist()) == ([3, 2, 2], [3, 2, 2])
    assert rounds["theorem2_sum"].tolist() == pytest.approx([1.0, 1.0, (1 + 3 / 2) / 2])


class Vague(Pdpc):
    """A user-defined scheme that returns a string."""

    def theorem2_sum(self, observation: Observation, plan: Plan) -> float | None:
        return "much"  # type: ignore[return-value]


def test_an_invalid_sum_is_one_sentence() -> None:
    with pytest.raises(RunFailed, match="must return a finite number or None from theorem2_sum"):
        simulate(with_settings(from_tables(EXPERIMENT), f"scheme.kind={__name__}:Vague"), out=None)
    for returned in (np.nan, np.inf, np.ones(1)):
        with pytest.raises(RunFailed, match="must return a finite number or None"):
            checked_theorem2_sum(returned)
    assert [checked_theorem2_sum(value) for value in (None, 1, np.float32(0.5))] == [None, 1.0, 0.5]


@dataclass(frozen=True)
class Quadratics:
    """Losses F_v(ω) = ½·(ω − a_v)ᵀ·A_v·(ω − a_v), and local training on them, so that L, σ, B and γ are known."""

    hessian: np.ndarray  # A_v: (CVs, parameters, parameters), symmetric
    centre: np.ndarray  # a_v
    model: np.ndarray  # ω_k
    p: np.ndarray  # p_v of the global loss f = Σ p_v·F_v
    mu: float
    steps: int = 5  # of gradient descent at each CV; 0: the exact minimum

    @classmethod
    def drawn(cls, seed: int, p: np.ndarray, lowest: float, mu: float, steps: int) -> "Quadratics":
        """Random quadratics with eigenvalues from `lowest` to 2, of which both limits occur, in random directions."""
        rng, cvs, size = np.random.default_rng(seed), len(p), 3
        axes = np.linalg.qr(rng.normal(size=(cvs, size, size)))[0]
        eigenvalues = rng.uniform(lowest, 2.0, (cvs, size))
        eigenvalues[0, :2] = lowest, 2.0
        hessian = np.einsum("vik,vk,vjk->vij", axes, eigenvalues, axes)
        return cls(hessian, rng.normal(size=(cvs, size)), rng.normal(size=size) * 2, p, mu, steps)

    @property
    def gradient(self) -> np.ndarray:
        """∇F_v(ω_k)."""
        return np.einsum("vij,vj->vi", self.hessian, self.model - self.centre)

    @property
    def update(self) -> np.ndarray:
        """ω_{v,k+1} − ω_k, by descent on F_v(ω) + (μ/2)·‖ω − ω_k‖²."""
        curvature = self.hessian + self.mu * np.eye(len(self.model))
        if not self.steps:
            return -np.linalg.solve(curvature, self.gradient[..., None])[..., 0]
        moved = np.zeros_like(self.centre)
        for _ in range(self.steps):
            moved -= (self.gradient + np.einsum("vij,vj->vi", curvature, moved)) / (self.smoothness + self.mu)
        return moved

    @property
    def smoothness(self) -> float:
        """L of Assumption 1, the same for all."""
        return float(np.abs(np.linalg.eigvalsh(self.hessian)).max())

    @property
    def convexity(self) -> float:
        """μ' = μ − σ of Assumption 3."""
        return self.mu + float(np.linalg.eigvalsh(self.hessian).min())

    @property
    def dissimilarity(self) -> float:
        """B of Assumption 2 at ω_k, the only place where the proof uses it."""
        return float(np.linalg.norm(self.gradient, axis=1).max() / np.linalg.norm(self.p @ self.gradient))

    @property
    def inexactness(self) -> float:
        """γ of Assumption 4: norm of the local objective's gradient after training, relative to that of ∇F_v(ω_k)."""
        curvature = self.hessian + self.mu * np.eye(len(self.model))
        left = self.gradient + np.einsum("vij,vj->vi", curvature, self.update)
        return float((np.linalg.norm(left, axis=1) / np.linalg.norm(self.gradient, axis=1)).max())

    def bound(self, total: float) -> float:
        """The right side of the theorem, with `total` as its sum."""
        assert self.convexity > 0
        assert self.inexactness <= 1
        reach = self.dissimilarity * (1 + self.inexactness) / self.convexity
        return reach * (1 + self.smoothness * reach / 2 * total) * float(np.sum((self.p @ self.gradient) ** 2))

    def expected_growth(self, applied: np.ndarray, together: np.ndarray) -> float:
        """Expectation of the growth; `together`: probability that two CVs both deliver (diagonal: that one does)."""
        curvature = np.einsum("v,vij->ij", self.p, self.hessian)
        pairs = np.einsum("ui,ij,vj->uv", self.update, curvature, self.update)
        first = (np.diag(together) * applied) @ (self.update @ (self.p @ self.gradient))
        return float(first + np.sum(together * np.outer(applied, applied) * pairs) / 2)


def both_arrive(ordered: int, p_suc: np.ndarray) -> np.ndarray:
    """Probabilities that two CVs both deliver: `ordered` are drawn uniformly, and each succeeds with its p_suc."""
    cvs = len(p_suc)
    pairs = np.outer(p_suc, p_suc) * ordered * (ordered - 1) / max(1, cvs * (cvs - 1))
    np.fill_diagonal(pairs, p_suc * ordered / cvs)
    return pairs


P_SUC = np.array([0.3, 0.9, 1.0, 0.7, 0.5, 0.8])


def aggregated_round(
    kind: str, p_suc: np.ndarray, selected: int, used: str = "history"
) -> tuple[np.ndarray, float, np.ndarray]:
    """A round built by hand: the weight of each CV if it delivers, the sum of Theorem 2, and p_v of the global loss."""
    cvs = len(p_suc)
    round = observed([10] * cvs, np.linspace(3.0, 12.0, cvs), success=p_suc, max_selected=selected)
    tested = scheme(kind, scheme={"selected": selected}, aggregation={"p_suc": used})
    plan = tested.plan(round)
    assert len(plan.cv) == selected
    p = round.importance(1.0) if kind == "fdpc" else np.full(cvs, 1 / cvs)
    return tested.aggregate(round, plan, round.cv), tested.theorem2_sum(round, plan), p


@pytest.mark.parametrize("lowest", [0.2, -0.5], ids=["convex", "not convex"])
@pytest.mark.parametrize(("kind", "selected"), [("random", 1), ("random", 3), ("fdpc", 6)])
def test_the_bound_holds_on_average(kind: str, selected: int, lowest: float) -> None:
    """Uniform selection, Bernoulli success, true p_suc in the rule: the assumptions of the theorem."""
    applied, total, p = aggregated_round(kind, P_SUC, selected)
    for seed in range(3):
        losses = Quadratics.drawn(seed, p, lowest, mu=1.0, steps=5)
        assert losses.expected_growth(applied, both_arrive(selected, P_SUC)) <= losses.bound(total)


@pytest.mark.parametrize(("p_suc", "used", "holds"), [(0.02, 0.02, True), (1.0, 0.25, False)])
def test_the_bound_is_nearly_reached_when_the_average_loss_grows(p_suc: float, used: float, holds: bool) -> None:
    """One CV that delivers once in fifty rounds and then counts fifty-fold: a smaller sum would break the bound.

    p_suc of the rule must not be below the true one: a CV that always delivers counts four-fold if p̂_suc is 1/4.
    """
    applied, total, p = aggregated_round("fdpc", np.array([used]), 1)
    losses = Quadratics(np.array([[[2.0]]]), np.zeros((1, 1)), np.ones(1), p, mu=0.01, steps=0)
    grown = losses.expected_growth(applied, both_arrive(1, np.array([p_suc])))
    assert total == pytest.approx(1 / used)
    assert (grown <= losses.bound(total)) == holds
    assert grown > 0.85 * losses.bound(total)
    assert grown > losses.bound(0.8 * total) > losses.bound(1.0)  # with Σ p_v/q_v as the sum
