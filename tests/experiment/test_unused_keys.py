"""Keys that are declared as unused have no effect: another value changes no table."""

from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vefl_sim import simulate
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.kinds import PARTITIONS, RAT_METHODS, SCHEMES
from vefl_sim.experiment.plugins import declaration
from vefl_sim.experiment.toml import from_tables, to_toml, validated
from vefl_sim.experiment.unused_keys import unused_by_cause, unused_environment, without_unused_keys
from vefl_sim.records import identity
from vefl_sim.records.identity import Identity
from vefl_sim.simulation import scenario

Tables = dict[str, dict[str, Any]]

OTHER: dict[str, Any] = {
    "agent.action": "select",
    "agent.features": ["distance"],
    "agent.levels": 9,
    "agent.max_cvs": 9,
    "agent.policy": "tests.gym.policies:Three",
    "adversary.share": 0.5,
    "aggregation.buffer": 2,
    "aggregation.byzantine_share": 0.4,
    "aggregation.form": "models",
    "aggregation.normalize": True,
    "aggregation.p_suc": "history",
    "aggregation.server_rate": 0.03,
    "aggregation.sojourn_weight": 0.25,
    "aggregation.weights_over": "coverage",
    "data.dir": "nowhere",
    "data.horizon_s": 9,
    "data.holders": 50,
    "data.image_px": 20,
    "data.dirichlet_alpha": 7.0,
    "data.partition": "shards",
    "data.shards_per_cv": 3,
    "downlink.kind": "broadcast",
    "downlink.noise_figure_db": 3.0,
    "downlink.rate_floor": 5e4,
    "downlink.tx_power_w": 1e-3,
    "flower.arguments": {"beta": 0.1},
    "flower.select": True,
    "flower.strategy": "tests.gym.policies:Three",
    "learning.iterations_per_step": 3,
    "learning.proximal_mu": 5.0,
    "mac.special_uplink_symbols": 9,
    "model.float_bits": 8,
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
    "radio.alpha": 0.1,
    "radio.csi_margin_db": 3.0,
    "radio.delay_spread_s": 0.0,
    "radio.p0_dbm": -120.0,
    "radio.rician_k_db": 20.0,
    "rat.circuit_power_w": 3.0,
    "rat.efficiency_weight": 40.0,
    "roads.block_m": 200.0,
    "roads.blocks": 9,
    "roads.exits": "outside",
    "roads.green_s": 7.0,
    "roads.signals": "none",
    "scheme.constrained": False,
    "scheme.rounds": True,
    "scheme.selected": 2,
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
    "update.codec": "top-k",
    "update.keep_share": 0.5,
    "update.levels": 3,
    "vefl.budget": 20.0,
    "vefl.method": "sca-printed",
    "vefl.min_local_iterations": 9,
    "vefl.sojourn_weight": 0.0,
    "vefl.upload_margin": 3.0,
    "vefl.upload_share": "selected",
}
"""Values that change the tables wherever the key is used."""
READ_BY_ALL = {
    "aggregation.form": "two forms of a sum, which differ in the last digit where its weights sum to one",
    "aggregation.weights_over": "`theorem2_sum` of a round",
    "downlink.kind": "worst-case times of orders, and an empty table of broadcasts",
    "update.codec": "worst-case uploads",
    "vefl.sojourn_weight": "`plan_objective` of a baseline's plan",
    "vefl.upload_margin": "worst-case uploads, which show in the tables of plans without constraints, too",
    "vefl.upload_share": "worst-case uploads",
}
"""Keys that are read under every scheme, and what they change; `without_unused_keys` resets them before that."""

SMALL: Tables = {
    "run": {"name": "small", "rounds": 3},
    "traffic": {"mean_in_coverage": 9.0},
    "radio": {"prbs": 3, "max_tx_power_w": 0.01},  # uploads take long, and some are lost
    "vefl": {"round_s": 2.0, "budget": 100.0},
    "scheme": {"selected": 4},
    "data": {"train_samples": 600, "test_samples": 10, "image_px": 16},
    "learning": {"kind": "none"},
}
LEARNING: Tables = {
    "run": {"rounds": 2},
    "radio": {"max_tx_power_w": 0.2},
    "learning": {"kind": "jax"},
    "model": {"factory": "vefl_models.logistic:logistic"},
}
TRAINED = (
    *("fedavg", "afa-cd", "fedbuff", "centralized", "fednova", "fedadam", "scaffold", "feddyn", "oort", "median"),
    *("trimmed-mean", "krum", "fedasync"),
)
"""Schemes that do not use a key of training, which shows in the model only."""
POSITIONS: Tables = {
    "run": {"rounds": 15},
    "data": {"kind": "positions", "partition": "own", "train_samples": 60, "image_px": 28, "min_samples": 1},
    "model": {"factory": "vefl_models.mlp:mlp"},
    "learning": {"loss": "mse"},
}
OTHER_CAUSES: list[Tables] = [
    {"radio": {"fading": "none"}},
    {"roads": {"signals": "none"}},
    {"traffic": {"through_share": 1.0}},
    *({"data": {"partition": kind}} for kind in PARTITIONS if kind != "own"),
    *({"rat": {"method": kind}} for kind in RAT_METHODS if declaration("rat.method", kind, "unused_keys", ())),
]
"""What makes keys useless besides the scheme: each is tried with one of the schemes, in their order."""
SCHEME_WORLDS: dict[str, Tables] = {
    **{kind: {"scheme": {"kind": kind}} for kind in SCHEMES},
    **{f"{kind}, unconstrained": {"scheme": {"kind": kind, "constrained": False}} for kind in ("pdpc", "fedprox")},
    "afa-cd, in rounds": {"scheme": {"kind": "afa-cd", "rounds": True}},
    "fdpc, normalized": {"scheme": {"kind": "fdpc"}, "aggregation": {"normalize": True}},
}


def merged(*sets: Tables) -> Tables:
    """Merge several sets of tables; later values replace earlier ones."""
    tables: Tables = {}
    for new in sets:
        for name, keys in new.items():
            tables[name] = tables.get(name, {}) | keys
    return tables


WORLDS: dict[str, Tables] = {
    **{
        name: merged(SMALL, LEARNING if name in TRAINED else {}, tables, other)
        for (name, tables), other in zip_longest(SCHEME_WORLDS.items(), OTHER_CAUSES, fillvalue={})
    },
    "positions": merged(SMALL, POSITIONS),
}


def unused(tables: Tables) -> set[str]:
    """The keys that are declared as unused in this experiment."""
    return {key for _, keys in unused_by_cause(validated(tables)) for key in keys}


def changed(tables: Tables, keys: Iterable[str]) -> Experiment:
    """The experiment with other values of these keys, without refusing unused ones; each must really be another one."""
    split = [(*key.split("."), OTHER[key]) for key in keys]
    other = validated(merged(tables, *({name: {key: value}} for name, key, value in split)))
    plain = without_unused_keys(validated(tables))
    for name, key, _ in split:
        assert getattr(getattr(other, name), key) != getattr(getattr(plain, name), key), f"OTHER: {name}.{key}"
    return other


def same(tables: Tables, keys: Iterable[str], out: Path) -> bool:
    """Whether other values of these keys leave all tables except the timings unchanged."""
    return plain_digest(without_unused_keys(validated(tables)), out) == digest(changed(tables, keys), out)


def digest(experiment: Experiment, out: Path) -> str:
    return simulate(experiment, out=out, fresh=True).summary["content_digest"]


_PLAIN: dict[str, str] = {}


def plain_digest(experiment: Experiment, out: Path) -> str:
    """The digest of an experiment without unused keys: it is the same in all tests, so it is run once."""
    if (toml := to_toml(experiment)) not in _PLAIN:
        _PLAIN[toml] = digest(experiment, out)
    return _PLAIN[toml]


@pytest.fixture
def unused_keys_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the values of unused keys in the simulation, so that any code that reads them changes the tables."""
    for module in (scenario, identity):
        monkeypatch.setattr(module, "without_unused_keys", lambda experiment: experiment)
    monkeypatch.setattr(identity, "mobility_digest", lambda experiment: "an unused file, which need not exist")


def effective(tables: Tables, keys: set[str], out: Path) -> list[str]:
    """The keys that change a table: all are tried at once, and one by one only if that changes something."""
    if same(tables, sorted(keys), out):
        return []
    return [key for key in sorted(keys) if not same(tables, [key], out)]


@pytest.mark.usefixtures("unused_keys_kept")
@pytest.mark.parametrize("world", WORLDS)
def test_no_table_and_no_model_depends_on_an_unused_key(world: str, tmp_path: Path) -> None:
    tables = WORLDS[world]
    assert effective(tables, unused(tables) - READ_BY_ALL.keys(), tmp_path) == []


@pytest.mark.parametrize("kind", ["centralized", "fdpc", "fedavg"])
def test_no_result_depends_on_the_unused_environment(kind: str, tmp_path: Path) -> None:
    tables = merged(SMALL, {"scheme": {"kind": kind}}, LEARNING if kind == "centralized" else {})
    keys = unused_environment(kind)
    assert keys
    plain = simulate(validated(tables), out=tmp_path)
    other = simulate(changed(tables, keys), out=tmp_path)
    assert other.path != plain.path  # a single run has them in its name
    for name in ("rounds", "events"):
        pd.testing.assert_frame_equal(other.table(name), plain.table(name))
    held = ["samples"] if kind == "centralized" else []  # by each CV, according to the split of the data
    pd.testing.assert_frame_equal(other.vehicles.drop(columns=held), plain.vehicles.drop(columns=held))


@pytest.mark.usefixtures("unused_keys_kept")
def test_no_table_depends_on_a_key_that_a_recording_replaces(tmp_path: Path) -> None:
    recorded = simulate(from_tables(SMALL), out=tmp_path)
    tables = merged(SMALL, {"mobility": {"kind": "playback", "file": str(recorded.path)}})
    assert effective(tables, unused(tables) - READ_BY_ALL.keys(), tmp_path) == []


USED = {
    "pdpc": ["vefl.method", "vefl.sojourn_weight", "aggregation.normalize"],
    "fdpc": ["aggregation.p_suc", "server.early_close"],
    "afa-cd": ["aggregation.buffer", "server.retry_s", "vefl.sojourn_weight"],
}


@pytest.mark.usefixtures("unused_keys_kept")
@pytest.mark.parametrize("kind", USED)
def test_the_values_of_this_test_change_tables_where_keys_are_used(kind: str, tmp_path: Path) -> None:
    """So the tests above can fail. Includes keys of READ_BY_ALL that are read although they are unused."""
    tables = merged(SMALL, {"scheme": {"kind": kind}})
    assert [key for key in USED[kind] if same(tables, [key], tmp_path)] == []


@pytest.mark.parametrize("world", WORLDS)
def test_a_key_that_every_scheme_reads_is_reset_if_it_is_unused(world: str) -> None:
    tables = WORLDS[world]
    keys = unused(tables) & READ_BY_ALL.keys()
    assert Identity(changed(tables, keys)).experiment == Identity(validated(tables)).experiment
