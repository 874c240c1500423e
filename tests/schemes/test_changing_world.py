"""Schemes with a memory for each CV, while CVs come and go: models as a plain version in numpy computes them."""

from pathlib import Path

import numpy as np
import pytest

from tests.schemes.changing_world import changing
from tests.schemes.plain_world import RATE, PlainWorld


@pytest.mark.parametrize(("merged", "momentum"), [(4, 0.0), (1, 0.6)])
def test_scaffold(merged: int, momentum: float, tmp_path: Path) -> None:
    """c: mean of all c_v; a new CV is not corrected; c_v of a CV that is away or loses its update stays."""
    variates: dict[int, np.ndarray] = {}

    def step(world: PlainWorld, w: np.ndarray, cvs: list[int], iterations: list[int]) -> np.ndarray:
        c = np.mean([*variates.values()], axis=0) if variates else np.zeros_like(w)
        changes = []
        for cv, count in zip(cvs, iterations, strict=True):
            own = variates.get(cv, c)
            change = world.train(w, cv, drift=c - own, momentum=momentum, steps=count, merged=merged) - w
            variates[cv] = own - c - change / (count * RATE)
            changes.append(change)
        return w + 0.8 * np.mean(changes, axis=0)

    learning, aggregation = {"iterations_per_step": merged, "momentum": momentum}, {"server_rate": 0.8}
    changing(tmp_path, "scaffold", step, learning=learning, aggregation=aggregation)


def test_feddyn(tmp_path: Path) -> None:
    """h: mean of all h_v; h_v of a CV that is away or loses its update stays."""
    alpha, merged, h_v = 0.2, 4, {}  # type: ignore[var-annotated]

    def step(world: PlainWorld, w: np.ndarray, cvs: list[int], iterations: list[int]) -> np.ndarray:
        trained = []
        for cv, count in zip(cvs, iterations, strict=True):
            own = h_v.get(cv, np.zeros_like(w))
            trained.append(world.train(w, cv, slope=-own, mu=alpha, steps=count, merged=merged))
            h_v[cv] = own - alpha * (trained[-1] - w)
        return np.mean(trained, axis=0) - np.mean([*h_v.values()], axis=0) / alpha

    changing(tmp_path, "feddyn", step, learning={"iterations_per_step": merged, "proximal_mu": alpha})


@pytest.mark.parametrize(("mu", "momentum", "merged"), [(0.5, 0.0, 4), (0.0, 0.5, 1)])
def test_fednova(mu: float, momentum: float, merged: int, tmp_path: Path) -> None:
    """ω + τ_eff·Σ p_v·d_v, where d_v is the mean of a CV's gradients with the factors that they have in its update."""

    def step(world: PlainWorld, w: np.ndarray, cvs: list[int], iterations: list[int]) -> np.ndarray:
        p = world.sizes[[world.cars.index(cv) for cv in cvs]]
        norms = np.array([factors(count, mu, momentum, merged).sum() for count in iterations])
        options = {"mu": mu, "momentum": momentum, "merged": merged}
        changes = np.array(
            [world.train(w, cv, steps=count, **options) - w for cv, count in zip(cvs, iterations, strict=True)]
        )
        p = p / p.sum()
        return w + (p @ norms) * (p @ (changes / norms[:, None]))

    learning = {"proximal_mu": mu, "momentum": momentum, "iterations_per_step": merged}
    changing(tmp_path, "fednova", step, learning=learning)


def factors(count: int, mu: float, momentum: float, merged: int) -> np.ndarray:
    """a_v: the factor of each gradient in the update, in units of δ; found by sending gradients of 1 one by one."""
    sizes = [min(merged, count - done) for done in range(0, count, merged)]
    found = []
    for index in range(len(sizes)):
        moved = velocity = 0.0
        for i, size in enumerate(sizes):
            velocity = momentum * velocity + (i == index) + mu * moved
            moved -= size * RATE * velocity
        found.append(-moved / RATE)
    return np.array(found)
