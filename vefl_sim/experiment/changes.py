"""Keys that change during a run: which keys can, and the experiment that is in force at a time.

Random numbers belong to a seed, a CV and a slot, not to the order of draws. So up to the change a run is the run
without it, and both go on in the same world.
"""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from vefl_sim.core.clock import to_ns
from vefl_sim.experiment.complaints import complaints_about, is_key, shown, unknown
from vefl_sim.experiment.experiment import TABLES, Experiment

AT_ANY_TIME = ("radio.on", "radio.max_tx_power_w")
"""Keys that slots read, so that they can also change within a round (`at_s`)."""
BETWEEN_ROUNDS = {
    *AT_ANY_TIME,
    *("radio.prbs", "radio.noise_dbm_per_hz", "radio.noise_figure_db", "radio.flexible_symbol_uplink"),
    *("radio.power", "radio.p0_dbm", "radio.alpha"),
    *("mac.start", "mac.scheduler", "rat.method", "rat.efficiency_weight", "rat.circuit_power_w"),
    *("downlink.rate_floor", "downlink.tx_power_w", "downlink.noise_figure_db"),
    *("sla.energy_budget_j", "sla.cycles_per_bit", "sla.price_per_joule", "sla.base_fee"),
    *("sla.cpu_min_hz", "sla.cpu_max_hz"),
    *("vefl.method", "vefl.budget", "vefl.min_local_iterations", "vefl.max_local_iterations"),
    *("vefl.sojourn_weight", "vefl.upload_share", "vefl.upload_margin"),
    *("server.early_close", "server.retry_s", "scheme.selected", "scheme.constrained"),
    *("aggregation.form", "aggregation.weights_over", "aggregation.sojourn_weight", "aggregation.p_suc"),
    *("aggregation.normalize", "aggregation.buffer", "aggregation.server_rate", "aggregation.byzantine_share"),
    *("learning.learning_rate", "learning.proximal_mu", "adversary.share"),
}
"""Keys that decisions read afresh, so that they can change at the start of a round (`from_round`)."""
_WHY_NOT = {
    "run": "it belongs to the run as a whole",
    **dict.fromkeys(("roads", "mobility", "sumo", "traffic"), "traffic is driven ahead of the rounds"),
    "data": "data are split over the CVs at the start",
    "model": "the model is made at the start",
    "update": "the size of an update is fixed at the start",
    "trace": "tables are the same during a run",
    "vefl.round_s": "the length of rounds is fixed at the start",
    "scheme.kind": "a scheme knows what it did in earlier rounds",
}
"""Why a key, or those of a table, cannot change; others are read once, when the run starts."""


def begun(experiment: Experiment, round: int, time_ns: int) -> tuple[int, ...]:
    """Indices of the changes that are in force in this round at this time, which is not before its start."""
    return tuple(
        index
        for index, change in enumerate(experiment.change)
        if (change.from_round is not None and change.from_round <= round)
        or (change.at_s is not None and to_ns(change.at_s) <= time_ns)
    )


def with_changes(experiment: Experiment, indices: Sequence[int]) -> Experiment:
    """The experiment with the keys of these changes; of two that change the same key, the later in the file counts."""
    if not indices:
        return experiment
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True, exclude={"change"})
    for index in indices:
        for table, keys in experiment.change[index].tables.items():
            tables[table] = tables.get(table, {}) | keys
    return Experiment.model_validate(tables).model_copy(update={"change": experiment.change})


def wrong_changes(experiment: Experiment) -> Iterator[str]:
    """Yield one sentence for each change that cannot be made."""
    places = dict[tuple[int | None, float | None, str], int]()
    for index, change in enumerate(experiment.change):
        where, problems = f"change {index + 1}", [*_problems_of(experiment, index)]
        for key in change.keys:
            first = places.setdefault((change.from_round, change.at_s, key), index)
            if first != index:
                problems.append(f"{key} is changed at the same time by change {first + 1}: keep one of them")
        if not problems:
            try:
                with_changes(experiment, [index])
            except ValidationError as error:
                problems = [sentence.rstrip(".") for sentence in complaints_about(error.errors())]
        yield from (f"{where}: {problem}." for problem in problems)


def _problems_of(experiment: Experiment, index: int) -> Iterator[str]:
    change = experiment.change[index]
    if (change.from_round is None) == (change.at_s is None):
        yield "give it either from_round (the first round with the new values) or at_s (a time in seconds)"
    if change.from_round is not None and change.from_round > experiment.rounds:
        yield f"from_round = {change.from_round} is after the last round, {experiment.rounds}: choose an earlier one"
    if change.at_s is not None and to_ns(change.at_s) >= experiment.duration_ns:
        yield f"at_s = {change.at_s:g} is not before the end of the run at {experiment.duration_ns / 1e9:g} s"
    if not change.tables:
        yield "it changes no key: add one, for example vefl.budget = 2000.0"
    for name, keys in change.tables.items():
        if name not in TABLES:
            yield unknown((name,)).rstrip(".")
        elif not isinstance(keys, dict):
            yield f"{name} must be a table, not {shown(keys)}"
    for key in change.keys:
        table, name = key.split(".", 1)
        if table not in TABLES:
            continue
        if not is_key(table, name):
            yield unknown((table, name)).rstrip(".")
        elif key not in BETWEEN_ROUNDS:
            yield f"{key} cannot change during a run: {_WHY_NOT.get(key) or _WHY_NOT.get(table, 'it is read once')}"
        elif change.at_s is not None and key not in AT_ANY_TIME:
            yield f"{key} changes only between rounds: use from_round ({' and '.join(AT_ANY_TIME)} can have at_s)"
