"""A scheme works with the base class and without it, and every run of a scenario has a scheme of its own."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.resumable import Kill, Killer, contents
from tests.schemes.plain_world import experiment
from vefl_sim import AsynchronousScheme, Experiment, Plan, Run, Scheme, simulate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.unused_keys import is_used
from vefl_sim.schemes.scheme import AnyScheme
from vefl_sim.simulation.scenario import build_scenario, make_scheme
from vefl_sim.sweep.wall_time import wall_time_s


def planned(observation: Any) -> Plan:
    count = len(observation.cv)
    return Plan(observation.cv, np.full(count, 3), np.full(count, 1e9), bypasses_network=True)


class Methods:
    """Orders all CVs; the weights depend on the number of rounds that the scheme remembers."""

    def plan(self, observation):  # type: ignore[no-untyped-def]
        return planned(observation)

    def aggregate(self, observation, plan, delivered):  # type: ignore[no-untyped-def]
        return np.full(len(delivered), 0.2 / (1 + self.memory["rounds"]))

    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        self.memory["rounds"] += 1


class Derived(Methods, Scheme):
    """Inherits from the base class."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.memory = {"rounds": 0}


class Slots:
    """Has no __dict__, so that nothing can be added to it."""

    __slots__ = ("memory",)
    plan, aggregate, aggregate_updates = Methods.plan, Methods.aggregate, Methods.aggregate_updates

    def __init__(self, experiment: Experiment) -> None:
        self.memory = {"rounds": 0}


@dataclass(frozen=True)
class Frozen:
    """Cannot be changed, and saves what it remembers itself."""

    experiment: Experiment
    seen: list[int] = field(default_factory=list)

    plan = Methods.plan

    def aggregate(self, observation, plan, delivered):  # type: ignore[no-untyped-def]
        self.seen.append(len(delivered))
        return np.full(len(delivered), 0.2 / len(self.seen))

    def state(self) -> dict[str, Any]:
        return {"seen": [*self.seen]}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen[:] = state["seen"]


def of_kind(name: str, **tables: dict[str, object]) -> Experiment:
    return experiment("fedavg", scheme={"kind": f"{__name__}:{name}", "constrained": True}, **tables)


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(of_kind("Derived"), out=tmp_path_factory.mktemp("derived"))


@pytest.mark.parametrize("name", ["Slots", "Frozen"])
def test_a_scheme_without_the_base_class_is_the_same(name: str, derived: Run, tmp_path: Path) -> None:
    """Also if the run is killed: what the scheme remembers is in the checkpoint."""
    assert derived.rounds["weight_sum"].tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    with pytest.raises(Kill):
        simulate(of_kind(name), out=tmp_path / "killed", watcher=Killer(3))
    assert contents(simulate(of_kind(name), out=tmp_path / "killed")) == contents(derived)


def test_defaults_are_those_of_the_base_class() -> None:
    derived, plain = make_scheme(of_kind("Derived")), make_scheme(of_kind("Slots"))
    optional = [name for name in vars(AnyScheme) if not name.startswith("_")]
    assert {"memory", "buffer", "theorem2_sum", "wall_s_per_s"} <= {*optional}
    for name in {*optional} - {"aggregate_updates"}:
        assert getattr(plain, name) == getattr(derived, name)
    assert wall_time_s(of_kind("Slots")) == wall_time_s(of_kind("Derived"))


class Nothing(Scheme):
    def plan(self, observation):  # type: ignore[no-untyped-def]
        return planned(observation)


class NoWeights(AsynchronousScheme):
    buffer = 3
    plan = Nothing.plan


class Wrong(Slots):
    proximal_mu = "much"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Nothing", "Nothing has no method aggregate(observation, plan, delivered)"),
        ("NoWeights", "NoWeights has no method weights(received)"),
        ("Wrong", "Wrong.proximal_mu = 'much'"),
    ],
)
def test_an_error_names_the_users_class(name: str, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(sentence)):
        make_scheme(of_kind(name))


class Minimal(Nothing):
    """Reads no keys, and sees no updates."""

    def aggregate(self, observation, plan, delivered):  # type: ignore[no-untyped-def]
        return np.full(len(delivered), 1 / len(delivered))


def test_the_base_class_neither_uses_keys_nor_hides_them() -> None:
    """Its `aggregate_updates` is None, so `aggregation.form` counts."""
    assert is_used(of_kind("Minimal"), "aggregation.form")
    assert not is_used(of_kind("Derived"), "aggregation.form")


class Coarse:
    """A codec without the base class."""

    feedback = True

    def __init__(self, experiment: Experiment) -> None:
        self.factor = 1.0

    def bits(self, numbers: int) -> int:
        return 16 * numbers

    def encode(self, change, rng):  # type: ignore[no-untyped-def]
        self.factor *= 0.9
        return (change * self.factor).astype("<f2").tobytes()

    def decode(self, message, numbers):  # type: ignore[no-untyped-def]
        return np.frombuffer(message, "<f2").astype(np.float32)


@pytest.mark.parametrize(
    "of",
    [experiment("scaffold"), experiment("fedavg", update={"codec": f"{__name__}:Coarse"})],
    ids=["scaffold", "own codec"],
)
def test_a_second_run_of_a_scenario_is_like_the_first(
    of: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = build_scenario(of)
    monkeypatch.setattr("vefl_sim.simulation.run.build_scenario", lambda *_: scenario)
    first, second = (contents(simulate(of, out=tmp_path / number)) for number in ("1", "2"))
    assert "model.npz" in first
    assert first == second
