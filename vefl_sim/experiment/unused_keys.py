"""Keys without effect: those that the chosen kind of mobility, data set, RAT method or scheme does not use."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Table
from vefl_sim.experiment.scheme_tables import AggregationTable

_GRID_KEYS = ("block_m", "blocks", "exits", "signals", "green_s")
_DRIVER_KEYS = ("max_accel_mps2", "comfort_decel_mps2", "headway_s", "min_gap_m", "length_m", "driver_spread")
_SUMO_KEYS = ("client", "lane_limits", "fringe_factor")
_DEMAND_KEYS = ("mean_in_coverage", "arrivals_per_s", "warm_start", "through_share", "leaving_weight")
_UNUSED_BY_MOBILITY = {
    "idm": {"mobility": ("file", "origin_m", "origin_deg", "start_s"), "sumo": _SUMO_KEYS},
    "playback": {
        "roads": _GRID_KEYS,
        "traffic": _DEMAND_KEYS,
        "mobility": ("origin_deg", *_DRIVER_KEYS),
        "sumo": _SUMO_KEYS,
    },
    "sumo": {"roads": _GRID_KEYS, "traffic": ("through_share", "leaving_weight"), "mobility": ("driver_spread",)},
}
"""Keys that a kind of mobility does not use."""
_SET_BY_SUMOCFG = {"traffic": _DEMAND_KEYS[:3], "mobility": _DRIVER_KEYS[:-1], "sumo": _SUMO_KEYS[1:]}
"""Keys that a SUMO configuration sets itself."""
_RULE_KEYS = ("sojourn_weight", "p_suc", "normalize")
_SUM_KEYS = ("form", "weights_over")
_BUFFER_KEYS = ("buffer", "server_rate")
_PROBLEM_KEYS = ("method", "sojourn_weight", "min_local_iterations", "upload_share")
_UNUSED_BY_FEDPROX = {
    "aggregation": (*_RULE_KEYS, *_BUFFER_KEYS),
    "vefl": _PROBLEM_KEYS,
    "server": ("retry_s",),
    "scheme": ("rounds",),
}
_UNUSED_WITHOUT_ROUNDS = {
    "aggregation": (*_RULE_KEYS, *_SUM_KEYS),
    "vefl": _PROBLEM_KEYS,
    "server": ("early_close",),
    "learning": ("proximal_mu",),
}
_UNUSED_BY_SCHEME: dict[str, dict[str, tuple[str, ...]]] = {
    "pdpc": {
        "aggregation": ("sojourn_weight", "weights_over", *_BUFFER_KEYS),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fdpc": {
        "aggregation": _BUFFER_KEYS,
        "vefl": ("sojourn_weight", "upload_share"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fedprox": _UNUSED_BY_FEDPROX,
    "fedavg": _UNUSED_BY_FEDPROX | {"learning": ("proximal_mu",)},
    "random": {
        "aggregation": ("sojourn_weight", "weights_over", *_BUFFER_KEYS),
        "vefl": ("method", "sojourn_weight", "min_local_iterations"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "afa-cd": _UNUSED_WITHOUT_ROUNDS,
    "fedbuff": _UNUSED_WITHOUT_ROUNDS | {"scheme": ("rounds",)},
    "centralized": {
        "aggregation": (*_RULE_KEYS, *_SUM_KEYS, *_BUFFER_KEYS),
        "vefl": (*_PROBLEM_KEYS, "upload_margin"),
        "server": ("early_close", "retry_s"),
        "scheme": ("constrained", "rounds"),
        "learning": ("proximal_mu", "iterations_per_step"),
    },
}
"""Keys that a scheme does not use."""
_UNUSED_ENVIRONMENT = {
    **dict.fromkeys(("fdpc", "fedprox", "fedavg"), ("scheme.selected",)),
    "centralized": ("data.dirichlet_alpha", "data.partition", "data.shards_per_cv", "scheme.selected", "vefl.budget"),
}
"""Keys of the environment that schemes share, which change no result of this scheme. They are not refused."""
_UNUSED_BY_AFA_CD_IN_ROUNDS = {
    "aggregation": (*_RULE_KEYS, "form", "buffer"),
    "vefl": _PROBLEM_KEYS,
    "server": ("retry_s",),
    "learning": ("proximal_mu",),
}
_UNUSED_IF_SUM_IS_ONE = {"aggregation": ("form",)}
"""Both forms give the same model where the applied weights sum to one."""
_UNUSED_BY_DATA = {"signs": ("dir",), "mnist": ("image_px",), "fashion-mnist": ("image_px",), "cifar10": ("image_px",)}
_UNUSED_BY_PARTITION = {
    "dirichlet": ("shards_per_cv",),
    "iid": ("dirichlet_alpha", "shards_per_cv"),
    "shards": ("dirichlet_alpha",),
}
"""Keys of [data] that a data set (above) or a partition does not use."""


def unused_keys(e: Experiment) -> Iterator[tuple[str, str]]:
    """Yield (key, sentence) for each key that differs from its default although the experiment does not use it."""
    for cause, keys in _unused_by_cause(e):
        for key in _changed(e, keys):
            yield key, f"{key} has no effect with {cause}: remove it."


def without_unused_keys(e: Experiment) -> Experiment:
    """The experiment with every unused key at its default, so that it affects neither results nor the run's name."""
    return _with_defaults(e, [key for key, _ in unused_keys(e)])


def unused_environment(kind: str) -> tuple[str, ...]:
    """Keys of the environment that change no result of this kind of scheme, such as the split of the data over CVs.

    They are not refused, because other schemes of the same environment use them.
    """
    return _UNUSED_ENVIRONMENT.get(kind, ())


def without_unused_environment(e: Experiment) -> Experiment:
    """The experiment with these keys at their defaults: points of a sweep that differ only in them are one run."""
    return _with_defaults(e, unused_environment(e.scheme.kind))


def _with_defaults(e: Experiment, keys: Iterable[str]) -> Experiment:
    for key in keys:
        table_name, _, name = key.partition(".")
        table = getattr(e, table_name)
        e = e.model_copy(update={table_name: table.model_copy(update={name: _default(table, name)})})
    return e


def _unused_by_cause(e: Experiment) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """Yield (the setting that makes keys useless, these keys by table)."""
    if e.mobility.kind in _UNUSED_BY_MOBILITY:
        yield f'mobility.kind = "{e.mobility.kind}"', _UNUSED_BY_MOBILITY[e.mobility.kind]
    if e.is_sumo_configuration:
        yield f'mobility.file = "{e.mobility.file}", which sets it itself', _SET_BY_SUMOCFG
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
    elif e.scheme.kind in _UNUSED_BY_SCHEME:
        yield f'scheme.kind = "{e.scheme.kind}"', _UNUSED_BY_SCHEME[e.scheme.kind]
    else:
        yield "a scheme of your own, which decides it itself", {"scheme": ("constrained", "rounds")}
        yield "a scheme of your own, which returns the weights itself", {"aggregation": ("weights_over",)}
    if e.scheme.kind in _UNUSED_BY_SCHEME and not e.scheme.constrained:
        vefl = ("method", "budget", "min_local_iterations", "upload_share", "upload_margin")
        unused = {"vefl": vefl, "server": ("early_close", "retry_s"), "aggregation": _SUM_KEYS}
        yield "scheme.constrained = false", unused
    yield from _unused_forms(e.scheme.kind, e.aggregation)


def _unused_forms(kind: str, aggregation: AggregationTable) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """Yield the keys of [aggregation] that other keys of [aggregation] make useless."""
    over = aggregation.weights_over or ("delivered" if kind in ("fedprox", "fedavg") else "ordered")
    if aggregation.normalize and kind in ("fdpc", "pdpc", "random"):
        yield "aggregation.normalize = true, which makes the weights sum to one", {"aggregation": _SUM_KEYS}
    elif over == "delivered" and (kind in ("fedprox", "fedavg") or aggregation.p_suc == "realized"):
        yield "weights over the delivered updates, which sum to one (aggregation.weights_over)", _UNUSED_IF_SUM_IS_ONE


def _changed(e: Experiment, keys: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield those of the keys that differ from their defaults."""
    for name, names in keys.items():
        table = getattr(e, name)
        yield from (f"{name}.{key}" for key in names if getattr(table, key) != _default(table, key))


def _default(table: Table, key: str) -> Any:
    return type(table).model_fields[key].default
