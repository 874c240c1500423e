"""Schemes with a memory for each CV, while CVs come and go: models as a plain version in numpy computes them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.schemes.plain_world import RATE, PlainWorld, experiment, models_of
from tests.scripted import ScriptedCars
from vefl_sim import Run, simulate

ROUNDS = 8


class ComingAndGoing(ScriptedCars):
    """Rounds last a second, and cars are present from and until the given seconds; x is their place."""

    paths = (
        lambda s: (-120.0, 50.0),
        lambda s: (-60.0, 50.0) if s < 2.1 or s > 4.9 else None,  # misses rounds 4 and 5, loses its update of round 3
        lambda s: (0.0, 50.0) if s > 2.9 else None,  # is late
        lambda s: (60.0, 50.0) if s < 3.9 else None,  # leaves, and its update of round 4 is lost
        lambda s: (120.0, 50.0) if 4.9 < s < 6.9 else None,  # is there for two rounds only
    )


def delivered(run: Run) -> list[tuple[list[int], list[int]]]:
    """The CVs whose updates arrived in each round, and their numbers of iterations, read from the trace."""
    orders = run.events.query("kind == 'training_ordered'").set_index(["round", "cv"])["iterations"].astype(int)
    used = run.events.query("kind == 'update_aggregated'").sort_values(["round", "cv"])
    by_round = {k: rows["cv"].astype(int).tolist() for k, rows in used.groupby("round")}
    return [(cvs, [int(orders[k, cv]) for cv in cvs]) for k, cvs in sorted(by_round.items())]


def changing(tmp_path, kind: str, next_model: Callable, **tables) -> None:
    """Compare the models of a run with those of next_model(world, ω, CVs, their iterations), round by round."""
    tables["scheme"] = {"kind": kind, "constrained": True}
    tables["mobility"] = {"kind": "tests.schemes.test_changing_world:ComingAndGoing"}
    tables["run"] = {"rounds": ROUNDS}
    tables["vefl"] = {"max_local_iterations": 12, "budget": 5e3}
    tables["sla"] = {"cycles_per_bit": [3e4, 6e4]}  # few iterations fit into a round, depending on the data
    of = experiment(kind, **tables)
    run, world = simulate(of, out=tmp_path), PlainWorld(of)
    rounds, w = delivered(run), world.start
    first = [{cv: k for k in range(ROUNDS, 0, -1) for cv in rounds[k - 1][0]}[cv] for cv in range(1, 6)]
    assert first == [1, 1, 4, 1, 6]  # CVs come late, and lose an update after they delivered one
    assert set(run.events.query("kind == 'update_lost'")["cv"]) >= {2, 4}
    assert all(len(set(iterations)) > 1 for _, iterations in rounds)
    for (cvs, iterations), model in zip(rounds, models_of(run), strict=True):
        w = next_model(world, w, cvs, iterations)
        np.testing.assert_allclose(model, w, atol=5e-5)


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
