"""Each baseline on an ideal network, against a plain reimplementation of its publication in numpy."""

from pathlib import Path

import numpy as np
import pytest

from tests.schemes.plain_world import ROUNDS, STEPS, PlainWorld, experiment, simulated
from vefl_sim import simulate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.schemes.selection import Oort
from vefl_sim.simulation.scenario import build_scenario


def assert_same(models: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(models) == len(expected) == ROUNDS
    assert not np.allclose(models[0], models[-1], atol=1e-3)
    for model, plain in zip(models, expected, strict=True):
        np.testing.assert_allclose(model, plain, atol=2e-5)


def averaged(world: PlainWorld, next_model) -> list[np.ndarray]:  # type: ignore[no-untyped-def]
    """Models after each round, where next_model(w, p) computes the next one with p = D/Σ D."""
    models, w = [], world.start
    for _ in range(ROUNDS):
        w = next_model(w, world.sizes / world.sizes.sum())
        models.append(w)
    return models


def test_fedavg_with_momentum(tmp_path: Path) -> None:
    world, models = simulated(tmp_path, "fedavg", learning={"momentum": 0.7})
    assert_same(models, averaged(world, lambda w, p: p @ world.all(w, momentum=0.7)))


def test_fednova_normalizes_by_the_steps_of_each_cv(tmp_path: Path) -> None:
    """Batches of 20: CVs with more samples take more steps, and the weights make up for it."""
    of = experiment("fednova", learning={"proximal_mu": 0.0, "batch_size": 20, "momentum": 0.4})
    run, world = simulate(of, out=tmp_path), PlainWorld(of)
    p, steps = world.sizes / world.sizes.sum(), STEPS * np.ceil(world.sizes / 20)
    norm = np.array([sum((1 - 0.4 ** (t - i)) / 0.6 for i in range(int(t))) for t in steps])
    first = run.events.query("kind == 'update_aggregated' and round == 1").sort_values("cv")
    np.testing.assert_allclose(first["weight"], (p @ norm) * p / norm, rtol=1e-9)
    assert len(set(steps)) > 1


@pytest.mark.parametrize("kind", ["fedadam", "fedyogi"])
def test_server_optimizers(kind: str, tmp_path: Path) -> None:
    world, models = simulated(tmp_path, kind, aggregation={"server_rate": 0.05})
    start = 0.0 if kind == "fedadam" else 1e-6  # as optax starts the moments
    m, v, t = start, start, 0

    def step(w: np.ndarray, p: np.ndarray) -> np.ndarray:
        nonlocal m, v, t
        gradient, t = -(p @ (world.all(w) - w)), t + 1
        m = 0.9 * m + 0.1 * gradient
        square = gradient**2
        v = 0.99 * v + 0.01 * square if kind == "fedadam" else v - 0.01 * np.sign(v - square) * square
        return w - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-3)

    assert_same(models, averaged(world, step))


def test_scaffold_sends_twice_as_much(tmp_path: Path) -> None:
    once, twice = (
        simulate(experiment(kind, run={"rounds": 1}), out=tmp_path).events["bits"].max()
        for kind in ("fedavg", "scaffold")
    )
    assert twice == 2 * once == 2 * 33 * 15


def krum(trained: np.ndarray) -> np.ndarray:
    """The model whose n − f − 2 nearest others are nearest, of five with one adversary."""
    squares = ((trained[:, None] - trained) ** 2).sum(axis=2)
    return trained[int(np.argmin(np.sort(squares, axis=1)[:, 1:3].sum(axis=1)))]


@pytest.mark.parametrize(
    ("kind", "share", "rule"),
    [
        ("median", None, lambda trained: np.sort(trained, axis=0)[2]),
        ("trimmed-mean", 0.25, lambda trained: np.sort(trained, axis=0)[1:-1].mean(axis=0)),
        ("krum", 0.2, krum),
    ],
)
def test_robust_rules(kind: str, share: float | None, rule, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    world, models = simulated(tmp_path, kind, aggregation={} if share is None else {"byzantine_share": share})
    assert_same(models, averaged(world, lambda w, p: rule(world.all(w))))


def test_fedasync_mixes_models_one_by_one(tmp_path: Path) -> None:
    of = experiment("fedasync", aggregation={"server_rate": 0.5}, learning={"proximal_mu": 0.1})
    run, world = simulate(of, out=tmp_path), PlainWorld(of)
    versions, used = [world.start], run.events.query("kind == 'update_aggregated'").sort_values("id")
    assert used["staleness"].max() > 1
    for row in used.itertuples():
        assert row.staleness == len(versions) - 1 - row.version
        assert row.weight == pytest.approx(0.5 / np.sqrt(1 + row.staleness))
        trained = world.train(versions[int(row.version)], int(row.cv), mu=0.1)
        versions.append((1 - row.weight) * versions[-1] + row.weight * trained)
    last = run.model().arrays
    found = np.concatenate([last["params.Dense_0.bias"], last["params.Dense_0.kernel"].ravel()])
    np.testing.assert_allclose(found, versions[-1], atol=2e-5)


class TestOort:
    def test_its_utility_is_the_loss_before_training(self, tmp_path: Path) -> None:
        of = experiment("oort", run={"rounds": 1}, scheme={"selected": 5})
        world, noted = PlainWorld(of), {}
        original = Oort.aggregate_updates

        def noting(self, updates, model):  # type: ignore[no-untyped-def]
            noted.update({u.cv: (u.loss_before.mean, u.loss_after.mean) for u in updates})
            result = original(self, updates, model)
            noted["utility"] = dict(self.memory["utility"])
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Oort, "aggregate_updates", noting)
            simulate(of, out=tmp_path)
        for cv, size in zip(world.cars, world.sizes, strict=True):
            before = world.losses(world.start, cv)
            after = world.losses(world.train(world.start, cv, mu=0.01), cv)
            assert noted[cv] == pytest.approx((before.mean(), after.mean()), rel=1e-4)
            assert noted["utility"][cv] == pytest.approx(size * np.sqrt((before**2).mean()), rel=1e-4)

    def test_scores(self) -> None:
        """Two CVs of equal utility in round 50; the second was used in round 1 and took four times the median."""
        scheme = Oort(experiment("oort", scheme={"selected": 2}))
        scheme.memory = {
            "utility": {1: 3.0, 2: 3.0, 3: 1.5},
            "delay_s": {1: 1.0, 2: 4.0, 3: 1.0},
            "round": {1: 49, 2: 1, 3: 49},
        }
        scheme._round = 50
        bonus = np.sqrt(0.1 * np.log(50) / np.array([49, 1, 49]))
        expected = (np.array([1.0, 1.0, 0.5]) + bonus) * np.array([1.0, 1 / 16, 1.0])
        np.testing.assert_allclose(scheme._utilities(np.array([1, 2, 3])), expected)


class TestAdversaries:
    def test_labels_of_adversaries_are_flipped(self) -> None:
        honest, mixed, all_flip = (
            build_scenario(experiment("fedavg", adversary={"share": share})) for share in (0.0, 0.5, 1.0)
        )
        flipped = {
            cv: (mixed.dataset.train_targets[own] == 2 - honest.dataset.train_targets[own]).all()
            for cv, own in honest.shards.items()
        }
        assert 0 < sum(flipped.values()) < len(flipped)
        assert (all_flip.dataset.train_targets == 2 - honest.dataset.train_targets).all()
        assert (mixed.dataset.test_targets == honest.dataset.test_targets).all()

    def test_krum_and_median_resist_where_the_mean_does_not(self, tmp_path: Path) -> None:
        """Two of five cars flip their labels: the mean of all models is far less sure of the true classes."""
        worlds = {"adversary": {"share": 0.4}, "run": {"rounds": 6, "seed": 2}, "data": {"partition": "iid"}}
        kinds = ("krum", "median", "fedavg")
        loss = {k: simulate(experiment(k, **worlds), out=tmp_path / k).summary["last_loss"] for k in kinds}
        assert max(loss["krum"], loss["median"]) < loss["fedavg"] - 0.05

    def test_a_regression_has_no_labels_to_flip(self) -> None:
        own = {"kind": "tests.learning.networks:plane", "partition": "iid"}
        with pytest.raises(ExperimentError, match="no classes"):
            build_scenario(experiment("fedavg", data=own, adversary={"share": 0.5}, learning={"loss": "mse"}))


@pytest.mark.parametrize(
    ("kind", "tables", "words"),
    [
        ("fednova", {"learning": {"optimizer": "adam"}}, "sgd"),
        ("fednova", {"learning": {"momentum": 0.9, "proximal_mu": 0.1}}, "set learning.proximal_mu = 0"),
        ("scaffold", {"learning": {"optimizer": "adam"}}, "sgd"),
        ("afa-cd", {"learning": {"momentum": 0.9}}, "learning.momentum"),
        ("feddyn", {"learning": {"proximal_mu": 0.0}}, "above 0"),
        ("fedavg", {"aggregation": {"byzantine_share": 0.1}}, "byzantine_share has no effect"),
        ("fedavg", {"update": {"codec": "qsgd"}, "model": {"float_bits": 8}}, "float_bits has no effect"),
        ("fedavg", {"learning": {"momentum": 0.5, "optimizer": "adam"}}, "sgd"),
        ("fedavg", {"learning": {"momentum": 0.5, "iterations_per_step": 2}}, "plain gradient steps"),
        ("krum", {"aggregation": {"byzantine_share": 0.5}}, "byzantine_share"),
        ("centralized", {"update": {"codec": "qsgd"}, "scheme": {"constrained": True}}, "codec has no effect"),
    ],
)
def test_contradictions_are_one_sentence(kind: str, tables: dict, words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        experiment(kind, **tables)


def test_scaffold_refuses_codecs() -> None:
    with pytest.raises(ExperimentError, match="several vectors"):
        build_scenario(experiment("scaffold", update={"codec": "qsgd"}))
