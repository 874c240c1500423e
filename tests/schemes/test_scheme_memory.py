"""Members of a user's scheme that see updates: what they do, and that they are checked."""

import signal
from pathlib import Path

import numpy as np
import pytest

from tests.resumable import Kill, Killer, Silent, contents
from tests.schemes.plain_world import PlainWorld, experiment, models_of
from vefl_sim import Aggregated, Experiment, Local, simulate, trees
from vefl_sim.core.errors import ExperimentError, RunFailed, RunInterrupted, VeflWarning
from vefl_sim.protocol.server.orders import checked_local
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.simulation.scenario import make_scheme


class Penalized(FedAvg):
    """A term (0.1/2)·‖ω − ω_k‖² of the user's own: the same as μ = 0.1."""

    def local_term(self, local, start):  # type: ignore[no-untyped-def]
        import jax

        squares = jax.tree.map(lambda a, b: ((a - b) ** 2).sum(), local, start)
        return 0.05 * sum(jax.tree.leaves(squares))


class OwnMu(FedAvg):
    """The same μ, asked for every order."""

    def local(self, cv: int) -> Local:
        return Local(proximal_mu=0.1)


@pytest.mark.parametrize("kind", ["Penalized", "OwnMu"])
def test_terms_of_the_local_objective(kind: str, tmp_path: Path) -> None:
    """A term of one's own, or μ by order, is the same as μ = 0.1 of FedProx."""
    own = {"kind": f"{__name__}:{kind}", "constrained": True}
    of = experiment("fedavg", scheme=own, vefl={"budget": 1e6}, run={"rounds": 1})
    world, [model] = PlainWorld(of), models_of(simulate(of, out=tmp_path))
    plain = world.sizes / world.sizes.sum() @ world.all(world.start, mu=0.1)
    np.testing.assert_allclose(model, plain, atol=1e-5)
    assert np.abs(world.sizes / world.sizes.sum() @ world.all(world.start) - plain).max() > 1e-3


def of_kind(kind: str) -> Experiment:
    """An experiment with a scheme of this module."""
    own = {"kind": f"{__name__}:{kind}", "constrained": True}
    return experiment("fedavg", scheme=own, vefl={"budget": 1e6})


class WrongShape(FedAvg):
    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        return {"params": {"Dense_0": {"kernel": np.zeros(3), "bias": np.zeros(3)}}}


class TwoWeights(FedAvg):
    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        return Aggregated(model, np.ones(2))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("WrongShape", "params.Dense_0.kernel has the shape"), ("TwoWeights", "2 weights for 5 updates")],
)
def test_a_wrong_model_fails_the_run(kind: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=sentence):
        simulate(of_kind(kind), out=tmp_path)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (0.5, "vefl_sim.Local"),
        (Local(proximal_mu=-1.0), "proximal_mu = -1.0"),
        (Local(slope={"params": {"w": np.zeros(2)}}), "slope of local"),
    ],
)
def test_a_wrong_term_fails_the_run(returned: object, sentence: str) -> None:
    with pytest.raises(RunFailed, match=sentence):
        checked_local(returned, {"params": {"w": np.zeros(3)}})


class Unsaved(FedAvg):
    """Averages with the model that it began with, and remembers the rest in vain."""

    resumable = False

    def begin(self, model):  # type: ignore[no-untyped-def]
        self.first = model

    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        return trees.mean([self.first, *(update.model for update in updates)])


def test_what_cannot_be_saved_starts_again_from_round_1(tmp_path: Path) -> None:
    undisturbed = simulate(of_kind("Unsaved"), out=tmp_path / "undisturbed")
    with pytest.raises(Kill):
        simulate(of_kind("Unsaved"), out=tmp_path / "killed", watcher=Killer(3))
    with pytest.warns(VeflWarning, match="starts again from round 1"):
        again = simulate(of_kind("Unsaved"), out=tmp_path / "killed")
    assert contents(again) == contents(undisturbed)


class Stopped(Silent):
    """Asks for an orderly stop at the end of round 2."""

    def round(self, report) -> None:  # type: ignore[no-untyped-def]
        if report.round == 2:
            signal.raise_signal(signal.SIGINT)


def test_a_stop_says_that_nothing_could_be_saved(tmp_path: Path) -> None:
    with pytest.raises(RunInterrupted, match="what its scheme remembers cannot be saved, so start again with: python"):
        simulate(of_kind("Unsaved"), out=tmp_path, watcher=Stopped())


class OtherArguments(FedAvg):
    def aggregate_updates(self, updates):  # type: ignore[no-untyped-def]
        return updates


class ListOfMemories(FedAvg):
    memory = (1, 2)


class HalfAModel(FedAvg):
    models_per_update = 0.5


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("OtherArguments", "OtherArguments.aggregate_updates must take"),
        ("ListOfMemories", "memory must be a dict"),
        ("HalfAModel", "models_per_update = 0.5"),
    ],
)
def test_wrong_members_are_one_sentence(kind: str, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence):
        make_scheme(of_kind(kind))


@pytest.mark.parametrize(
    ("kind", "tables"),
    [("fedavg", {"update": {"codec": "qsgd"}}), ("scaffold", {"aggregation": {"server_rate": 3.0}})],
)
def test_variances_stay_positive(kind: str, tables: dict[str, dict[str, object]], tmp_path: Path) -> None:
    run = simulate(experiment(kind, model={"factory": "tests.learning.networks:normed"}, **tables), out=tmp_path)
    assert all((run.model(k).arrays["batch_stats.BatchNorm_0.var"] > 0).all() for k in run.kept_models)
    assert run.rounds["loss"].notna().all()


class TestTrees:
    ONE, TWO = ({"b": np.float32([1, 2]) * k, "a": {"c": np.float32([[3]]) * k}} for k in (1, 2))

    def test_arithmetic(self) -> None:
        assert trees.vector(self.ONE).tolist() == [3, 1, 2]
        assert trees.vector(trees.minus(self.TWO, self.ONE)).tolist() == [3, 1, 2]
        assert trees.vector(trees.plus(self.ONE, self.TWO, 0.5)).tolist() == [6, 2, 4]
        assert trees.vector(trees.times(self.ONE, 3.0)).tolist() == [9, 3, 6]
        assert trees.vector(trees.weighted_sum([self.ONE, self.TWO], [1.0, -1.0])).tolist() == [-3, -1, -2]
        assert trees.vector(trees.mean([self.ONE, self.TWO])).tolist() == [4.5, 1.5, 3]
        assert trees.vector(trees.zeros(self.ONE)).tolist() == [0, 0, 0]

    def test_a_vector_becomes_its_tree_again(self) -> None:
        again = trees.from_vector(trees.vector(self.ONE), self.TWO)
        assert {name: array.tolist() for name, array in trees.leaves(again)} == {"a.c": [[3]], "b": [1, 2]}
        assert all(array.dtype == np.float32 for _, array in trees.leaves(again))

    def test_statistics_have_no_slope(self) -> None:
        both = {"params": {"w": np.ones(2)}, "batch_stats": {"var": np.ones(2)}}
        assert trees.vector(trees.parameters_only(both)).tolist() == [0, 0, 1, 1]
