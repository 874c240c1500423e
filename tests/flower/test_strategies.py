"""Strategies of Flower in our runs; `make flower-test` calls these tests in an environment that has Flower."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import call
from tests.resumable import EXPERIMENT, Kill, Killer, contents
from tests.schemes.plain_world import ROUNDS, experiment, models_of
from vefl_sim import Experiment, Run, from_tables, simulate
from vefl_sim.core.errors import ExperimentError, RunFailed
from vefl_sim.core.state import pack, unpack
from vefl_sim.flower import attributes
from vefl_sim.schemes import baselines
from vefl_sim.simulation.scenario import make_scheme

KIND = "vefl_sim.flower:Strategy"
FLOWER, OWN = "flwr.server.strategy", "tests.flower.strategies"
needs_flower = pytest.mark.skipif(find_spec("flwr") is None, reason="Flower is missing: make flower-test")


def of(strategy: str, **flower: Any) -> Experiment:
    """The plain world, in which all cars deliver, with a strategy."""
    return experiment(KIND, flower={"strategy": strategy} | flower)


def constrained(strategy: str, **flower: Any) -> Experiment:
    """A world in which updates are lost, with a strategy."""
    scheme = {"scheme": {"kind": KIND}, "flower": {"strategy": strategy} | flower}
    return from_tables(EXPERIMENT | scheme)


@needs_flower
@pytest.mark.parametrize(
    ("strategy", "arguments", "kind", "tables"),
    [
        (f"{FLOWER}:FedAvg", {}, "fedavg", {}),
        (f"{FLOWER}:FedProx", {"proximal_mu": 0.5}, "fedprox", {"learning": {"proximal_mu": 0.5}}),
        (f"{FLOWER}:FedMedian", {}, "median", {}),
        (f"{FLOWER}:FedTrimmedAvg", {"beta": 0.2}, "trimmed-mean", {}),
        (f"{FLOWER}:Krum", {"num_malicious_clients": 1}, "krum", {}),
        (f"{OWN}:AdamAsPublished", {"eta": 0.05, "tau": 1e-12}, "fedadam", {"aggregation": {"server_rate": 0.05}}),
    ],
    ids=lambda value: value.rpartition(":")[2] if isinstance(value, str) else "",
)
def test_strategies_compute_what_our_schemes_compute(
    strategy: str, arguments: dict[str, Any], kind: str, tables: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """τ of Adam: ours is added to the corrected moment, Flower's to the other one, so both are made negligible."""
    monkeypatch.setitem(baselines._OPTIONS, "eps", 1e-12)
    ours = models_of(simulate(experiment(kind, **tables), out=tmp_path))
    theirs = models_of(simulate(of(strategy, arguments=arguments), out=tmp_path))
    assert len(ours) == len(theirs) == ROUNDS
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


@needs_flower
@pytest.mark.parametrize(
    ("strategy", "flower"),
    [
        (f"{FLOWER}:FedAdam", {"arguments": {"eta": 0.01}}),
        (f"{OWN}:private", {"arguments": {"noise_multiplier": 0.01, "clipping_norm": 1.0}, "select": True}),
        (f"{OWN}:Drawing", {}),
    ],
)
def test_a_killed_run_is_the_same(strategy: str, flower: dict[str, Any], tmp_path: Path) -> None:
    wanted = constrained(strategy, **flower)
    undisturbed = simulate(wanted, out=tmp_path / "undisturbed")
    assert undisturbed.summary["updates_applied"] > 5
    with pytest.raises(Kill):
        simulate(wanted, out=tmp_path / "killed", watcher=Killer(4))
    resumed = simulate(wanted, out=tmp_path / "killed")
    assert resumed.summary["content_digest"] == undisturbed.summary["content_digest"]
    assert contents(resumed) == contents(undisturbed)


def ordered(run: Run) -> list[int]:
    return run.rounds["ordered"].tolist()


@needs_flower
def test_the_strategy_chooses_who_trains(tmp_path: Path) -> None:
    def run(select: bool, **arguments: Any) -> Run:
        return simulate(of(f"{FLOWER}:FedAvg", select=select, arguments=arguments), out=tmp_path)

    assert ordered(run(False, fraction_fit=0.6)) == [5] * ROUNDS
    chosen = run(True, fraction_fit=0.6)
    assert ordered(chosen) == [3] * ROUNDS
    trained = chosen.events[chosen.events["kind"] == "training_ordered"].groupby("round")["cv"].agg(tuple)
    assert len({*trained}) > 1, "not the same cars in every round"
    assert ordered(run(True, min_available_clients=6)) == [0] * ROUNDS


@needs_flower
def test_a_strategy_that_chooses_everybody_is_one_that_does_not_choose(tmp_path: Path) -> None:
    one, other = (simulate(constrained(f"{FLOWER}:FedAvg", select=select), out=tmp_path) for select in (True, False))
    assert ordered(one) == ordered(other)
    assert sum(ordered(one)) > 0


@needs_flower
def test_without_a_returned_model_the_model_stays(tmp_path: Path) -> None:
    first, *_, last = models_of(simulate(of(f"{OWN}:Refusing"), out=tmp_path))
    np.testing.assert_array_equal(first, last)


@needs_flower
def test_a_strategy_that_cannot_be_saved_says_so() -> None:
    scheme: Any = make_scheme(of(f"{OWN}:Locked"))
    assert not scheme.resumable
    with pytest.raises(attributes.NotSaved, match=r"Locked\.lock is a lock"):
        scheme.state()


@needs_flower
def test_attributes_come_back_as_they_were() -> None:
    from tests.flower.strategies import Drawing

    one, other, arrays = Drawing(), Drawing(), dict[str, np.ndarray]()
    one.rng.random(), one.seen.update({7: [np.float64(0.1), np.arange(3)]})
    attributes.restore(other, unpack(pack(attributes.saved(one), arrays), arrays))
    assert other.rng.random() == one.rng.random()
    assert repr((other.mean, other.seen)) == repr((one.mean, one.seen))


@needs_flower
@pytest.mark.parametrize(
    ("flower", "sentence"),
    [
        ({"strategy": "flwr.server.strategy:FedAverage"}, r'flower.strategy = "flwr.server.*has no .FedAverage'),
        ({"strategy": "no_such_module:A"}, r'flower.strategy = "no_such_module:A": there is no module'),
        ({"strategy": "flwr.serverapp.strategy:FedAvg"}, r"is not a strategy.*name one of flwr.server.strategy"),
        (
            {"strategy": f"{FLOWER}:FedTrimmedAvg", "arguments": {"bet": 0.1}},
            r"do not fit.*'bet'; its arguments are .*beta\.$",
        ),
        ({"strategy": f"{FLOWER}:FedTrimmedAvg", "arguments": {"beta": 0.7}}, r"flower.arguments do not fit.*range"),
        ({"strategy": f"{FLOWER}:FedAvg", "arguments": {"x": float("nan")}}, r"flower.arguments = .*not nan"),
        ({}, r"flower.strategy names no strategy: set flower.strategy = "),
    ],
)
def test_what_is_no_strategy_is_one_sentence(flower: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence) as caught:
        make_scheme(experiment(KIND, flower=flower))
    assert len(caught.value.problems) == 1


@needs_flower
@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        ("Half", "returns 1 arrays for a model of 2"),
        ("Calling", "fails in aggregate_fit: NotImplementedError: it calls"),
    ],
)
def test_a_strategy_that_fails_is_named(strategy: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=rf"flower.strategy.*{sentence}"):
        simulate(of(f"{OWN}:{strategy}"), out=tmp_path)


@needs_flower
def test_a_wrong_strategy_ends_with_exit_code_2(tmp_path: Path) -> None:
    settings = (f"scheme.kind={KIND}", "flower.strategy=flwr.server.strategy:Krum", "flower.arguments={malicious = 1}")
    words = [word for setting in settings for word in ("--set", setting)]
    ended = call("experiments/quickstart.toml", *words, "--set", "scheme.selected=", "--out", tmp_path)
    assert ended.returncode == 2
    assert "flower.arguments do not fit flower.strategy" in ended.stderr


def test_a_missing_flower_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vefl_sim.flower.scheme.find_spec", lambda name: None)
    with pytest.raises(ExperimentError, match=r"needs Flower: pip install 'vefl_sim\[flower\]'"):
        of(f"{FLOWER}:FedAvg")


def test_other_schemes_do_not_use_the_table() -> None:
    with pytest.raises(ExperimentError, match=r'flower.select has no effect with .*only with "vefl_sim.flower:Strat'):
        experiment("fedavg", flower={"select": True})
