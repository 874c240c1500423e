"""A key that is declared without effect has none: another value of it changes no table."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.sweep.test_comparison import written
from vefl_sim import simulate
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import from_tables, validated
from vefl_sim.experiment.unused_keys import _unused, without_ignored
from vefl_sim.simulation import scenario
from vefl_sim.simulation.parts import SCHEMES
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.variants import load_variants

Tables = dict[str, dict[str, Any]]

OTHER: dict[str, Any] = {
    "aggregation.buffer": 2,
    "aggregation.form": "models",
    "aggregation.normalize": True,
    "aggregation.p_suc": "history",
    "aggregation.server_rate": 0.03,
    "aggregation.sojourn_weight": 0.25,
    "aggregation.weights_over": "coverage",
    "data.dir": "nowhere",
    "data.dirichlet_alpha": 7.0,
    "data.shards_per_cv": 3,
    "learning.iterations_per_step": 3,
    "learning.proximal_mu": 5.0,
    "mobility.comfort_decel_mps2": 1.0,
    "mobility.driver_spread": 0.4,
    "mobility.file": "nowhere.xml",
    "mobility.headway_s": 2.0,
    "mobility.length_m": 9.0,
    "mobility.max_accel_mps2": 3.0,
    "mobility.min_gap_m": 5.0,
    "mobility.origin_deg": (50.0, 8.0),
    "mobility.origin_m": (30.0, -20.0),
    "mobility.start_s": 9.0,
    "rat.circuit_power_w": 3.0,
    "rat.efficiency_weight": 40.0,
    "roads.block_m": 200.0,
    "roads.blocks": 9,
    "roads.exits": "outside",
    "roads.green_s": 7.0,
    "roads.signals": "none",
    "scheme.constrained": False,
    "scheme.rounds": True,
    "server.early_close": True,
    "server.retry_s": 0.25,
    "sumo.client": "traci",
    "sumo.fringe_factor": 3.0,
    "sumo.lane_limits": False,
    "traffic.arrivals_per_s": 0.5,
    "traffic.leaving_weight": 0.9,
    "traffic.mean_in_coverage": 20.0,
    "traffic.through_share": 0.7,
    "traffic.warm_start": False,
    "vefl.budget": 20.0,
    "vefl.method": "sca-printed",
    "vefl.min_local_iterations": 9,
    "vefl.sojourn_weight": 0.0,
    "vefl.upload_margin": 3.0,
    "vefl.upload_share": "selected",
}
"""A value that would show if anybody looked at the key."""
READ_BY_ALL = {
    "aggregation.form": "two forms of a sum, which differ in the last digit where its weights sum to one",
    "aggregation.weights_over": "`theorem2_sum` of a round",
    "vefl.sojourn_weight": "`plan_objective` of a baseline's plan",
    "vefl.upload_margin": "worst-case uploads, which show in the tables of plans without constraints, too",
    "vefl.upload_share": "worst-case uploads",
}
"""Keys that are read whatever the scheme is, and where; at their defaults by then, they have no effect."""
IN_MODELS = {"learning.proximal_mu", "learning.iterations_per_step"}
"""Keys whose effect only a model shows."""

SMALL: Tables = {
    "run": {"name": "small", "rounds": 3},
    "traffic": {"mean_in_coverage": 9.0},
    "radio": {"prbs": 3, "max_tx_power_w": 0.01},  # uploads take long, and some are lost
    "vefl": {"round_s": 2.0, "budget": 100.0},
    "scheme": {"selected": 4},
    "data": {"train_samples": 600, "test_samples": 10, "image_px": 16},
    "learning": {"kind": "none"},
}
LEARNING: Tables = {"run": {"rounds": 2}, "radio": {"max_tx_power_w": 0.2}, "learning": {"kind": "jax"}}
LEARNING["model"] = {"factory": "vefl_models.logistic:logistic"}
WORLDS: dict[str, Tables] = {
    **{kind: {"scheme": {"kind": kind}} for kind in SCHEMES},
    **{f"{kind}, unconstrained": {"scheme": {"kind": kind, "constrained": False}} for kind in ("pdpc", "fedprox")},
    "afa-cd, in rounds": {"scheme": {"kind": "afa-cd", "rounds": True}},
    "fdpc, normalized": {"scheme": {"kind": "fdpc"}, "aggregation": {"normalize": True}},
    "no signals": {"roads": {"signals": "none"}},
    "everybody passes": {"traffic": {"through_share": 1.0}},
    "equal shares of pRBs": {"rat": {"method": "equal"}},
    "iid": {"data": {"partition": "iid"}},
    "shards": {"data": {"partition": "shards"}},
}


def merged(*several: Tables) -> Tables:
    """One set of tables; later ones go first."""
    tables: Tables = {}
    for one in several:
        for name, keys in one.items():
            tables[name] = tables.get(name, {}) | keys
    return tables


def unused(tables: Tables) -> set[str]:
    """The keys that are declared without effect in this experiment."""
    declared = _unused(validated(tables))
    return {f"{table}.{key}" for _, keys in declared for table, inside in keys.items() for key in inside}


def changed(tables: Tables, keys: Iterable[str]) -> Experiment:
    """The experiment with other values of these keys, whether or not they do anything."""
    split = [(*key.split("."), OTHER[key]) for key in keys]
    return validated(merged(tables, *({name: {key: value}} for name, key, value in split)))


def same(tables: Tables, keys: Iterable[str], out: Path) -> bool:
    """Whether other values of these keys leave all tables as they are, but for the timings."""
    plain = simulate(without_ignored(validated(tables)), out=out, fresh=True)
    return plain.content_digest() == simulate(changed(tables, keys), out=out, fresh=True).content_digest()


@pytest.fixture
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put back to its default, so that it shows who reads a key."""
    monkeypatch.setattr(scenario, "without_ignored", lambda experiment: experiment)


def guilty(tables: Tables, keys: set[str], out: Path) -> list[str]:
    """Those of the keys that change something: all at once, and one by one if that shows that there is one."""
    if same(tables, sorted(keys), out):
        return []
    return [key for key in sorted(keys) if not same(tables, [key], out)]


@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("world", WORLDS)
def test_nobody_reads_a_key_that_is_declared_without_effect(world: str, tmp_path: Path) -> None:
    tables = merged(SMALL, WORLDS[world])
    assert guilty(tables, unused(tables) - READ_BY_ALL.keys() - IN_MODELS, tmp_path) == []


@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("kind", ["fedavg", "afa-cd", "fedbuff", "centralized"])
def test_no_model_shows_a_key_that_is_declared_without_effect(kind: str, tmp_path: Path) -> None:
    tables = merged(SMALL, LEARNING, {"scheme": {"kind": kind}})
    assert unused(tables) & IN_MODELS
    assert guilty(tables, unused(tables) & IN_MODELS, tmp_path) == []


@pytest.mark.usefixtures("as_it_is")
def test_nobody_reads_what_a_recording_replaces(tmp_path: Path) -> None:
    recorded = simulate(from_tables(SMALL), out=tmp_path)
    tables = merged(SMALL, {"mobility": {"kind": "playback", "file": str(recorded.path)}})
    assert guilty(tables, unused(tables) - READ_BY_ALL.keys(), tmp_path) == []


USED = {
    "pdpc": ["vefl.method", "vefl.sojourn_weight", "aggregation.normalize", "vefl.upload_share"],
    "fdpc": ["vefl.upload_share", "aggregation.sojourn_weight", "aggregation.p_suc", "server.early_close"],
    "afa-cd": ["aggregation.buffer", "server.retry_s", "vefl.sojourn_weight"],
}


@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("kind", USED)
def test_the_values_of_this_test_would_show(kind: str, tmp_path: Path) -> None:
    """Where the keys do something, these values do, and some of READ_BY_ALL where they should not."""
    tables = merged(SMALL, {"scheme": {"kind": kind}})
    assert [key for key in USED[kind] if same(tables, [key], tmp_path)] == []


@pytest.mark.parametrize("world", [*SCHEMES, "fedprox, unconstrained"])
def test_a_key_that_everybody_reads_is_at_its_default_by_then(world: str, tmp_path: Path) -> None:
    tables = merged(SMALL, WORLDS[world])
    assert guilty(tables, unused(tables) & READ_BY_ALL.keys(), tmp_path) == []


SHARED = """
[run]
name = "both"
rounds = 1
[vefl]
upload_share = "selected"
[learning]
kind = "none"
[[compare]]
label = "a"
scheme.kind = "fdpc"
"""
PDPC = '[[compare]]\nlabel = "b"\nscheme.kind = "pdpc"\n'


def test_a_key_that_all_variants_share_is_at_its_default_where_it_does_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, SHARED + PDPC)
    fdpc, pdpc = load_variants(file)
    assert (fdpc.experiment.vefl.upload_share, pdpc.experiment.vefl.upload_share) == ("all", "selected")
    assert [point.experiment.vefl for point in load_sweep(file).points] == [fdpc.experiment.vefl, pdpc.experiment.vefl]


def test_a_key_that_does_nothing_in_any_variant_is_refused(tmp_path: Path) -> None:
    for load in (load_variants, load_sweep):
        with pytest.raises(ExperimentError, match=r'vefl\.upload_share has no effect with scheme\.kind = "fdpc"'):
            load(written(tmp_path, SHARED))
