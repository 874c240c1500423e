"""Keys without effect: those that the chosen kind of mobility, data, RAT method or scheme does not look at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Table
from vefl_sim.experiment.scheme_tables import AggregationTable

_GRID = ("block_m", "blocks", "exits", "signals", "green_s")
_DRIVER = ("max_accel_mps2", "comfort_decel_mps2", "headway_s", "min_gap_m", "length_m", "driver_spread")
_SUMO = ("client", "lane_limits", "fringe_factor")
_DEMAND = ("mean_in_coverage", "arrivals_per_s", "warm_start", "through_share", "leaving_weight")
_UNUSED_BY_MOBILITY = {
    "idm": {"mobility": ("file", "origin_m", "origin_deg", "start_s"), "sumo": _SUMO},
    "playback": {"roads": _GRID, "traffic": _DEMAND, "mobility": ("origin_deg", *_DRIVER), "sumo": _SUMO},
    "sumo": {"roads": _GRID, "traffic": ("through_share", "leaving_weight"), "mobility": ("driver_spread",)},
}
_IN_A_SUMOCFG = {"traffic": _DEMAND[:3], "mobility": _DRIVER[:-1], "sumo": _SUMO[1:]}
"""Keys that a source of traffic does not look at; those that a configuration of SUMO says itself."""
_RULE = ("sojourn_weight", "p_suc", "normalize")
_SUM = ("form", "weights_over")
_WITHOUT_ROUNDS = ("buffer", "server_rate")
_PROBLEM = ("method", "sojourn_weight", "min_local_iterations", "upload_share")
_BY_DATA = {
    "aggregation": (*_RULE, *_WITHOUT_ROUNDS),
    "vefl": _PROBLEM,
    "server": ("retry_s",),
    "scheme": ("rounds",),
}
_BUFFERED = {
    "aggregation": (*_RULE, *_SUM),
    "vefl": _PROBLEM,
    "server": ("early_close",),
    "learning": ("proximal_mu",),
}
_UNUSED_BY: dict[str, dict[str, tuple[str, ...]]] = {
    "pdpc": {
        "aggregation": ("sojourn_weight", "weights_over", *_WITHOUT_ROUNDS),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fdpc": {
        "aggregation": _WITHOUT_ROUNDS,
        "vefl": ("sojourn_weight", "upload_share"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fedprox": _BY_DATA,
    "fedavg": _BY_DATA | {"learning": ("proximal_mu",)},
    "random": {
        "aggregation": ("sojourn_weight", "weights_over", *_WITHOUT_ROUNDS),
        "vefl": ("method", "sojourn_weight", "min_local_iterations"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "afa-cd": _BUFFERED,
    "fedbuff": _BUFFERED | {"scheme": ("rounds",)},
    "centralized": {
        "aggregation": (*_RULE, *_SUM, *_WITHOUT_ROUNDS),
        "vefl": (*_PROBLEM, "upload_margin"),
        "server": ("early_close", "retry_s"),
        "scheme": ("constrained", "rounds"),
        "learning": ("proximal_mu", "iterations_per_step"),
    },  # not what it leaves out of the world that it shares with others: radio, SLAs, money, who holds which data
}
"""Keys that a scheme does not look at."""
_UNUSED_BY_AFA_CD_IN_ROUNDS = {
    "aggregation": (*_RULE, "form", "buffer"),
    "vefl": _PROBLEM,
    "server": ("retry_s",),
    "learning": ("proximal_mu",),
}
_SUMMING_TO_ONE = {"aggregation": ("form",)}
"""The two forms agree where the applied weights sum to one."""
_UNUSED_BY_DATA = {"signs": ("dir",), "mnist": ("image_px",), "fashion-mnist": ("image_px",), "cifar10": ("image_px",)}
_UNUSED_BY_PARTITION = {
    "dirichlet": ("shards_per_cv",),
    "iid": ("dirichlet_alpha", "shards_per_cv"),
    "shards": ("dirichlet_alpha",),
}
"""Keys of [data] that a kind or a partition does not look at."""


def ignored_keys(e: Experiment) -> Iterator[tuple[str, str]]:
    """Keys that differ from their defaults though nobody looks at them, with a sentence each."""
    for cause, keys in _unused(e):
        for key in _changed(e, keys):
            yield key, f"{key} has no effect with {cause}: remove it."


def without_ignored(e: Experiment) -> Experiment:
    """The same experiment with every ignored key at its default: such a key changes no result and no run's name."""
    for key, _ in [*ignored_keys(e)]:
        name, _, inner = key.partition(".")
        table = getattr(e, name)
        e = e.model_copy(update={name: table.model_copy(update={inner: _default(table, inner)})})
    return e


def _unused(e: Experiment) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """(what makes keys useless, the keys by table)."""
    if e.mobility.kind in _UNUSED_BY_MOBILITY:
        yield f'mobility.kind = "{e.mobility.kind}"', _UNUSED_BY_MOBILITY[e.mobility.kind]
    if e.is_sumo_configuration:
        yield f'mobility.file = "{e.mobility.file}", which says it itself', _IN_A_SUMOCFG
    if e.mobility.kind == "idm" and e.roads.signals == "none":
        yield 'roads.signals = "none"', {"roads": ("green_s",)}
    if e.mobility.kind == "idm" and e.roads.nearest_end_m >= e.radio.coverage_radius_m:
        yield "streets that all end outside coverage (roads.blocks)", {"roads": ("exits",)}
    if e.mobility.kind == "idm" and e.traffic.through_share == 1:
        yield "traffic.through_share = 1", {"traffic": ("leaving_weight",)}
    if e.data.kind in _UNUSED_BY_DATA:
        yield f'data.kind = "{e.data.kind}"', {"data": _UNUSED_BY_DATA[e.data.kind]}
    yield f'data.partition = "{e.data.partition}"', {"data": _UNUSED_BY_PARTITION[e.data.partition]}
    if e.rat.method in ("equal", "max-snr", "proportional-fair"):
        yield f'rat.method = "{e.rat.method}"', {"rat": ("efficiency_weight", "circuit_power_w")}
    if e.scheme.kind == "afa-cd" and e.scheme.rounds:
        yield 'scheme.kind = "afa-cd" in rounds', _UNUSED_BY_AFA_CD_IN_ROUNDS
    elif e.scheme.kind in _UNUSED_BY:
        yield f'scheme.kind = "{e.scheme.kind}"', _UNUSED_BY[e.scheme.kind]
    else:
        yield "a scheme of your own, which says so in its plans (assured)", {"scheme": ("constrained", "rounds")}
        yield "a scheme of your own, which returns the weights itself", {"aggregation": ("weights_over",)}
    if e.scheme.kind in _UNUSED_BY and not e.scheme.constrained:
        vefl = ("method", "budget", "min_local_iterations", "upload_share", "upload_margin")
        unused = {"vefl": vefl, "server": ("early_close", "retry_s"), "aggregation": _SUM}
        yield "scheme.constrained = false", unused
    yield from _unused_forms(e.scheme.kind, e.aggregation)


def _unused_forms(kind: str, aggregation: AggregationTable) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """Keys of the sum that cancel each other."""
    over = aggregation.weights_over or ("delivered" if kind in ("fedprox", "fedavg") else "ordered")
    if aggregation.normalize and kind in ("fdpc", "pdpc", "random"):
        yield "aggregation.normalize = true, which makes the weights sum to one", {"aggregation": _SUM}
    elif over == "delivered" and (kind in ("fedprox", "fedavg") or aggregation.p_suc == "realized"):
        yield "weights over the delivered, which sum to one (aggregation.weights_over)", _SUMMING_TO_ONE


def _changed(e: Experiment, keys: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Those of the keys that differ from their defaults."""
    for name, inside in keys.items():
        table = getattr(e, name)
        yield from (f"{name}.{key}" for key in inside if getattr(table, key) != _default(table, key))


def _default(table: Table, key: str) -> Any:
    return type(table).model_fields[key].default
