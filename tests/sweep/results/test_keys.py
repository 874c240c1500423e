"""Which stored keys match which experiment."""

import tomllib

import pytest

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import validated
from vefl_sim.sweep.points import flat
from vefl_sim.sweep.results.keys import key_digest, keys_of, matches, matches_network, toml_of


def experiment(**tables: dict[str, object]) -> Experiment:
    return validated({"run": {"name": "x"} | tables.pop("run", {}), **tables})


PLAIN = keys_of(experiment())


@pytest.mark.parametrize(
    "tables",
    [
        {"run": {"name": "y", "checkpoint_every": 3}, "learning": {"threads": 2}},
        {"trace": {"slots": "full"}, "sumo": {"client": "traci"}},
        {"data": {"dir": "elsewhere"}},
        {"traffic": {"mean_in_coverage": 35.0}, "run": {"duration_s": 2000.0}},
    ],
)
def test_presentation_and_explicit_defaults_do_not_count(tables: dict[str, dict[str, object]]) -> None:
    assert matches(PLAIN, keys_of(experiment(**tables)))


@pytest.mark.parametrize(
    "tables",
    [
        {"run": {"seed": 2}},
        {"vefl": {"budget": 999.0}},
        {"learning": {"batch_size": 32}},  # has no default but None
        {"data": {"kind": "folder", "dir": "elsewhere"}},
        {"sla": {"base_fee": (10.0, 21.0)}},
    ],
)
def test_all_other_keys_count(tables: dict[str, dict[str, object]]) -> None:
    assert not matches(PLAIN, keys_of(experiment(**tables)))
    assert not matches(keys_of(experiment(**tables)), PLAIN)


def test_a_key_that_was_added_later_has_its_default_and_a_removed_key_matches_nothing() -> None:
    old = {key: value for key, value in PLAIN.items() if key != "vefl.budget"}
    assert matches(old, PLAIN)
    assert not matches(old, keys_of(experiment(vefl={"budget": 999.0})))
    assert not matches(PLAIN | {"vefl.gone": 1}, PLAIN)


def test_files_are_compared_without_their_folders() -> None:
    here, there = ({"mobility": {"kind": "playback", "file": f"{folder}/a.parquet"}} for folder in ("here", "there"))
    assert matches(keys_of(experiment(**here)), keys_of(experiment(**there)))


def test_a_result_with_learning_matches_a_point_without() -> None:
    without_learning = keys_of(experiment(learning={"kind": "none"}))
    assert matches_network(keys_of(experiment(learning={"learning_rate": 0.1, "batch_size": 8})), without_learning)
    assert not matches_network(keys_of(experiment(vefl={"budget": 999.0})), without_learning)
    assert not matches_network(without_learning, PLAIN)
    assert not matches(PLAIN, without_learning)


def test_centralized_learning_does_not_depend_on_the_partition() -> None:
    for kind, is_same in (("centralized", True), ("fdpc", False)):
        first, second = (keys_of(experiment(scheme={"kind": kind}, data={"dirichlet_alpha": a})) for a in (0.1, 10.0))
        assert matches(first, second) == (key_digest(first) == key_digest(second)) == is_same
        before = first | {"data.dirichlet_alpha": 10.0, "scheme.selected": 8, "vefl.budget": 999.0}  # stored with them
        assert matches(before, first) == matches_network(before, first | {"learning.kind": "none"}) == is_same
        assert not matches(before | {"run.seed": 2}, first)


def test_keys_survive_a_round_trip_through_toml() -> None:
    assert flat(tomllib.loads(toml_of(PLAIN))) == PLAIN
    assert key_digest(PLAIN) == key_digest(dict(reversed(PLAIN.items()))) != key_digest(PLAIN | {"run.seed": 2})
