"""Keys without effect: those that a part of the experiment declares as unused, or that another key makes useless."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.plugins import Unused, declaration, declared_results, is_part, kinds_of, load_part

_UNUSED_WITHOUT_CONSTRAINTS = (
    *("vefl.method", "vefl.budget", "vefl.min_local_iterations", "vefl.upload_share", "vefl.upload_margin"),
    *("server.early_close", "server.retry_s", "aggregation.form", "aggregation.weights_over", "downlink.kind"),
)
_BROADCAST_KEYS = ("downlink.rate_floor", "downlink.tx_power_w", "downlink.noise_figure_db")
_TABLES_OF_SCHEMES = {"agent": "vefl_sim.gym:PolicyScheme", "flower": "vefl_sim.flower:Strategy"}
"""Tables that only one scheme uses, which says so itself (`uses_table`)."""


def unused_keys(e: Experiment) -> Iterator[tuple[str, str]]:
    """Yield (key, sentence) for each key that differs from its default although the experiment does not use it."""
    causes: dict[str, str] = {}  # the first that makes a key useless
    for cause, keys in unused_by_cause(e):
        causes = dict.fromkeys(keys, cause) | causes
    for key, cause in causes.items():
        table, name = key.split(".")
        if getattr(getattr(e, table), name) != _default(e, key):
            remove = f"remove it (on the command line: --set {key}=)"
            yield key, f"{key} has no effect with {cause}: {remove}{_remedy(cause, key)}."


def _remedy(cause: str, key: str) -> str:
    """Which other kinds of a part use the key, for the end of a sentence; empty if the cause is something else."""
    setting, _, name = cause.partition(" = ")
    if setting not in FAMILIES or is_part(name.strip('"')):
        return ""
    users = [f'"{kind}"' for kind in FAMILIES[setting] if all(key not in keys for _, keys in _unused_by(setting, kind))]
    return f", or set {setting} = {' or '.join(users[:3])}" if users and name not in users else ""


def length_note(e: Experiment, settings: Sequence[str]) -> str:
    """A sentence if --set options change the length of a run, and with it the samples of every CV; empty if not."""
    changed = {setting.partition("=")[0].strip() for setting in settings} & {"run.rounds", "run.duration_s"}
    if not changed or e.data.holders or not is_used(e, "data.holders"):
        return ""
    return (
        f"with another {changed.pop()}, the data are split over other CVs: a short run is not the beginning of a long "
        "one, unless data.holders is set (docs/data.md)."
    )


def without_unused_keys(e: Experiment) -> Experiment:
    """The experiment with every unused key at its default, so that it affects neither results nor the run's name."""
    return _with_defaults(e, [key for key, _ in unused_keys(e)])


def without_unused_environment(e: Experiment) -> Experiment:
    """The experiment with these keys at their defaults: points of a sweep that differ only in them are one run.

    The default of `data.partition` needs classes, so it is kept if there may be none.
    """
    keys = unused_environment(e.scheme.kind)
    needed = () if e.learning.loss == "cross-entropy" else ("data.partition",)
    return _with_defaults(e, [key for key in keys if key not in needed])


def _with_defaults(e: Experiment, keys: Iterable[str]) -> Experiment:
    for key in keys:
        table, name = key.split(".")
        e = e.model_copy(update={table: getattr(e, table).model_copy(update={name: _default(e, key)})})
    return e


def unused_environment(kind: str) -> Sequence[str]:
    """Keys of the environment that change no result of this kind of scheme, such as the split of the data over CVs.

    They are not refused, because other schemes of the same environment use them.
    """
    keys: Sequence[str] = declaration("scheme.kind", kind, "unused_environment", ())
    return keys


def is_used(e: Experiment, key: str) -> bool:
    """Whether a key has an effect in the experiment."""
    return all(key not in keys for _, keys in unused_by_cause(e))


def unused_by_cause(e: Experiment) -> Iterator[Unused]:
    """Yield (the setting that makes keys useless, these keys)."""
    for key, name in kinds_of(e):
        causes: list[Unused] = [*_unused_by(key, name), *declared_results(key, name, "unused_when", e)]
        yield from causes
        if key == "scheme.kind" and not e.scheme.constrained and "scheme.constrained" not in causes[0][1]:
            yield "scheme.constrained = false", _UNUSED_WITHOUT_CONSTRAINTS
    used = is_part(e.scheme.kind) and getattr(load_part("scheme.kind", e.scheme.kind), "uses_table", None)
    for table, kind in _TABLES_OF_SCHEMES.items():
        if table != used:
            keys = [f"{table}.{key}" for key in type(getattr(e, table)).model_fields]
            yield f'scheme.kind = "{e.scheme.kind}", only with "{kind}"', keys
    if used == "agent" and e.agent.action == "plan":
        yield 'agent.action = "plan"', ("vefl.method", "vefl.min_local_iterations")
    elif used == "agent":
        yield f'agent.action = "{e.agent.action}", only with "plan"', ("agent.levels",)
    if e.radio.fading != "rician":
        yield f'radio.fading = "{e.radio.fading}", only with "rician"', ("radio.rician_k_db",)
    if e.radio.fading == "none":
        yield 'radio.fading = "none"', ("radio.delay_spread_s",)
    if e.radio.fading == "rician" and e.radio.los == "never":
        yield 'radio.los = "never"', ("radio.rician_k_db",)
    if not e.radio.csi_delay_slots:
        yield "radio.csi_delay_slots = 0", ("radio.csi_margin_db",)
    if e.radio.power == "optimized":
        yield 'radio.power = "optimized", only with "open-loop"', ("radio.p0_dbm", "radio.alpha")
    if e.downlink.kind == "ignored":
        yield 'downlink.kind = "ignored", only with "broadcast"', _BROADCAST_KEYS
    if "S" not in e.mac.tdd:
        yield f'mac.tdd = "{e.mac.tdd}", which has no "S"', ("mac.special_uplink_symbols",)


def _unused_by(key: str, name: str) -> Iterator[Unused]:
    """Yield the keys that a part declares as unused; a user-defined scheme that declares nothing does not use a few."""
    declared = declaration(key, name, "unused_keys", None)
    if declared is not None or key != "scheme.kind":
        yield f'{key} = "{name}"' + (", which declares it as unused" if is_part(name) else ""), declared or ()
        return
    keys = ("scheme.constrained", "scheme.rounds", "aggregation.weights_over")
    yield "a scheme of your own, which decides it itself", keys
    if getattr(load_part(key, name), "aggregate_updates", None) is not None:
        yield "a scheme of your own that has aggregate_updates and declares no unused_keys", ("aggregation.form",)


def _default(e: Experiment, key: str) -> Any:
    table, name = key.split(".")
    return type(getattr(e, table)).model_fields[name].default
