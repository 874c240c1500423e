"""A run in one sentence, its key figures, and the keys in which its experiment differs from the defaults."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from vefl_sim.analysis.report.source import Source
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.kinds import FAMILIES
from vefl_sim.experiment.plugins import declaration, is_part
from vefl_sim.learning.metric import Metric
from vefl_sim.records.totals import energy_text


class Figure(NamedTuple):
    """A number with a few words about it."""

    label: str
    value: str
    note: str = ""


def sentence(source: Source) -> str:
    """Scheme, data, seed, rounds, and what came out, in one sentence."""
    experiment, summary = source.experiment, source.summary
    what = f"{scheme_name(experiment)} on {data_name(experiment)}, seed {experiment.run.seed}"
    if not source.rounds:
        return f"{what}: no round has been recorded yet."
    done = summary.get("rounds", 0)
    unit = source.unit
    rounds = f"{done} {unit}s" if done == experiment.rounds else f"{done} of {experiment.rounds} {unit}s"
    parts = [*_results(source)]
    end = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
    return f"{what[0].upper()}{what[1:]}: in {rounds} ({source.end_s:,.0f} s of simulated time) {end}."


def _results(source: Source) -> Iterator[str]:
    summary = source.summary
    if (last := source.metric.of_summary("last", summary)) is not None:
        yield f"the model reached {_reached(source.metric, last)} on the test set"
    elif source.experiment.learning.kind == "none":
        yield "nothing was learnt (only the network was simulated)"
    if not source.trains_centrally:
        ordered, delivered = summary.get("updates_ordered", 0), summary.get("updates_delivered", 0)
        yield f"{delivered:,} of {ordered:,} ordered updates arrived"
        used = energy_text(summary.get("energy_j", 0.0))
        yield f"the CVs were paid {_amount(summary.get('cost', 0))} and used {used}"
    yield audit(source)


def _reached(metric: Metric, value: float) -> str:
    """The value of a metric in a sentence."""
    text = metric.short_text(value)
    return f"{text} {metric.name}" if metric.is_share else f"{_article(metric.name)} {metric.name} of {text}"


def _article(name: str) -> str:
    """The article before a name; abbreviations are spelt out."""
    return "an" if name[0] in "aeiou" or name in ("rmse", "mse", "mae") else "a"


def audit(source: Source) -> str:
    """What the audit of the run found, as a clause."""
    summary = source.summary
    if "plans_audited" not in summary:
        return "the audit has no result yet"
    if not summary["plans_audited"]:
        return "there were no constraints to audit"
    if broken := sum(summary.get("plan_breaches", {}).values()):
        return f"the audit found broken constraints ({broken})"
    return f"the audit of {summary['plans_audited']:,} plans and {summary.get('slots_audited', 0):,} slots passed"


def figures(source: Source) -> Iterator[Figure]:
    """The key figures, to be shown large."""
    summary, rounds = source.summary, source.rounds
    if not rounds:
        return
    metric = source.metric
    if (last := metric.of_summary("last", summary)) is not None:
        best = metric.of_summary("best", summary)
        yield Figure(f"final {metric.name}", metric.short_text(last), f"best {metric.short_text(best or last)}")
    if source.trains_centrally:
        yield Figure("rounds", f"{len(rounds):,}", f"{source.end_s:,.0f} s simulated")
        return
    ordered, delivered = summary.get("updates_ordered", 0), summary.get("updates_delivered", 0)
    lost = ordered - delivered
    yield Figure("delivered", f"{delivered / ordered:.1%}" if ordered else "–", f"{lost:,} of {ordered:,} lost")
    budget = source.experiment.vefl.budget * len(rounds)
    limited = source.experiment.scheme.constrained and budget > 0
    paid = float(summary.get("cost", 0.0))
    yield Figure("paid", _amount(paid), f"{paid / budget:.0%} of the budget" if limited else "no budget applied")
    joules = float(summary.get("energy_j", 0.0))
    each = f"{energy_text(joules / delivered)} per delivered update" if delivered else ""
    yield Figure("energy", energy_text(joules), each)
    if grants := source.grants:
        yield Figure("grants lost", f"{grants.lost_share:.1%}", grants.lost_text)
    yield Figure("audit", *_verdict(summary))


def _amount(value: float) -> str:
    """A number with at least three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(summary: dict[str, Any]) -> tuple[str, str]:
    plans, slots = summary.get("plans_audited", 0), summary.get("slots_audited", 0)
    if not plans:
        return "–", "nothing to audit"
    broken = sum(summary.get("plan_breaches", {}).values())
    return f"{broken} broken" if broken else "passed", f"{plans:,} plans, {slots:,} slots"


def scheme_name(experiment: Experiment) -> str:
    """The scheme as the paper writes it."""
    name = _label("scheme.kind", experiment.scheme.kind)
    return (
        name if experiment.scheme.constrained or "constrained" not in _used(experiment) else f"{name} (unconstrained)"
    )


def _used(experiment: Experiment) -> set[str]:
    """Keys of [scheme] with a value other than the default."""
    return {name for name, value in experiment.scheme if value != type(experiment.scheme).model_fields[name].default}


def data_name(experiment: Experiment) -> str:
    """The data set, and how it is split."""
    data = experiment.data
    split = f"Dirichlet α = {data.dirichlet_alpha:g}" if data.partition == "dirichlet" else data.partition
    return f"{_label('data.kind', data.kind)} ({split})"


def changed_keys(experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """Key, value and default of every key whose value differs from its default."""
    for table_name, table in experiment:
        for name, field in type(table).model_fields.items():
            value, default = getattr(table, name), field.get_default()
            if f"{table_name}.{name}" == "run.name" or value is None or value == default:
                continue
            if default is None:
                default = _implied(experiment, f"{table_name}.{name}")
            if value != default:
                yield f"{table_name}.{name}", _shown(value), _shown(default)


def _implied(experiment: Experiment, key: str) -> Any:
    """What a run uses for a key whose default is to have no value, or words for it."""
    if key in ("data.train_samples", "data.test_samples"):
        kind = experiment.data.kind
        own = None if is_part(kind) else declaration("data.kind", kind, key.partition(".")[2], None)
        return own or "all"
    return {"run.duration_s": 2000.0, "traffic.mean_in_coverage": 35.0}.get(key, "not given")


def _shown(value: Any) -> str:
    """A value as in TOML, at most a line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)[:200] or '""'


def _label(key: str, value: str) -> str:
    """The name of a built-in kind; a user-defined part is not loaded."""
    return value if is_part(value) or key not in FAMILIES else str(declaration(key, value, "label", None) or value)
