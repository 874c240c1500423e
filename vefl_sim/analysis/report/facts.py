"""What a page says in words: the run in one sentence, key figures, changed keys, warnings, and where it comes from."""

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

from vefl_sim.analysis.reasons import in_words, why_nobody
from vefl_sim.analysis.report.document import html, pairs, table
from vefl_sim.analysis.report.source import Source
from vefl_sim.core.errors import NotResumable, printable
from vefl_sim.experiment.experiment import TABLES, Experiment
from vefl_sim.experiment.plugins import declaration, is_part
from vefl_sim.records.identity import require_same_version
from vefl_sim.records.totals import energy_text

_OVERRUNS = {
    "upload_slots": "upload took more slots than its worst case",
    "vehicle_energy": "CV used more energy than planned",
    "vehicle_cost": "CV charged more than planned",
    "deadline": "upload ended after its deadline",
    "round_cost": "round cost more than its budget",
}
_FEW, _MANY = 0.1, 0.25  # shares from which lost updates, and ineligible CVs or lost grants, are worth a warning


def sentence(source: Source) -> str:
    """Scheme, data, seed, rounds, and what came out, in one sentence."""
    experiment, data, done, unit = source.experiment, source.experiment.data, len(source.rounds), source.unit
    scheme = _label("scheme.kind", experiment.scheme.kind) + " (unconstrained)" * (not experiment.scheme.constrained)
    split = f"Dirichlet α = {data.dirichlet_alpha:g}" if data.partition == "dirichlet" else data.partition
    what = f"{scheme} on {_label('data.kind', data.kind)} ({split}), seed {experiment.run.seed}"
    if not done:
        return f"{what}: no round has been recorded yet."
    rounds = f"{done} {unit}s" if done == experiment.rounds else f"{done} of {experiment.rounds} {unit}s"
    end = " and ".join(_results(source))
    return f"{what[0].upper()}{what[1:]}: in {rounds} ({source.end_s:,.0f} s of simulated time) {end}."


def _results(source: Source) -> Iterator[str]:
    metric = source.metric
    if (last := metric.of_summary("last", source.summary)) is not None:
        yield f"the final {metric.name} on the test set was {metric.short_text(last)}"
    elif source.experiment.learning.kind == "none":
        yield "nothing was learnt (only the network was simulated)"
    if not source.trains_centrally:
        yield f"{source.total('delivered'):,} of {source.total('ordered'):,} ordered updates arrived"


def figures(source: Source) -> Iterator[tuple[str, str, str]]:
    """The key figures, to be shown large: name, value, and a few words about it."""
    summary, rounds, metric = source.summary, source.rounds, source.metric
    if not rounds:
        return
    if (last := metric.of_summary("last", summary)) is not None:
        best = metric.of_summary("best", summary)
        yield f"final {metric.name}", metric.short_text(last), f"best {metric.short_text(best or last)}"
    if source.trains_centrally:
        yield "rounds", f"{len(rounds):,}", f"{source.end_s:,.0f} s simulated"
        return
    ordered, delivered = source.total("ordered"), source.total("delivered")
    share = f"{delivered / ordered:.1%}" if ordered else "–"
    yield "delivered", share, f"{ordered - delivered:,} of {ordered:,} lost"
    paid, budget = source.total("cost"), source.budget
    limited = source.experiment.scheme.constrained and budget > 0
    amount = f"{paid:,.0f}" if paid >= 100 else f"{paid:.3g}"
    yield "paid", amount, f"{paid / budget:.0%} of the budget" if limited else "no budget applied"
    joules = source.total("energy_j")
    each = f"{energy_text(joules / delivered)} per delivered update" if delivered else ""
    yield "energy", energy_text(joules), each
    if grants := source.grants:
        yield "grants lost", f"{grants.lost_share:.1%}", grants.lost_text
    plans, slots = summary.get("plans_audited", 0), summary.get("slots_audited", 0)
    broken = sum(summary.get("plan_breaches", {}).values())
    if plans:
        yield "audit", f"{broken} broken" if broken else "passed", f"{plans:,} plans, {slots:,} slots"
    else:
        yield "audit", "–", "nothing to audit"


def changed_keys(experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """Key, value and default of every key whose value differs from its default; of a change, what it was before."""
    for table_name in TABLES:
        keys = getattr(experiment, table_name)
        for name, field in type(keys).model_fields.items():
            key, value = f"{table_name}.{name}", getattr(keys, name)
            default = _implied(experiment, key) if field.default is None else field.get_default()
            if key != "run.name" and value is not None and value != default:
                yield key, _shown(value), _shown(default)
    for change in experiment.change:
        for key, value in change.keys.items():
            table, _, name = key.partition(".")
            yield f"{change.when}: {key}", _shown(value), _shown(getattr(getattr(experiment, table), name))


def _implied(experiment: Experiment, key: str) -> Any:
    """What a run uses for a key whose default is to have no value, or words for it."""
    if key in ("data.train_samples", "data.test_samples") and not is_part(experiment.data.kind):
        return declaration("data.kind", experiment.data.kind, key.partition(".")[2], None) or "all"
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
    return value if is_part(value) else str(declaration(key, value, "label", None) or value)


Caution = tuple[str, str, str]
"""A warning: "stop" (the figures mislead), "warn" or "note"; its title; its text."""


def cautions(source: Source) -> Iterator[Caution]:
    """All warnings about a run, the gravest first."""
    yield from _incomplete(source)
    if source.summary.get("diverged"):
        text = "The loss is not a number: try a smaller learning.learning_rate."
        yield "stop", "The training has diverged", text
    if source.rounds and not source.trains_centrally:
        yield from _participation(source)
        yield from _grants(source)
        yield from _limits(source)
    yield from _origin(source)


def _incomplete(source: Source) -> Iterator[Caution]:
    resume = f"python -m vefl_sim resume {shlex.quote(str(source.run.path))}"
    shown = "No round is recorded yet."
    if source.rounds:
        shown = f"This page shows what is recorded, up to {source.unit} {len(source.rounds)}."
    texts = {
        "failed": ("The run failed", f"{source.failure or 'It left no message.'} {shown}"),
        "unfinished": ("The run is not finished", f"{shown} Continue it with: {resume}"),
        "running": ("The run is still running", f"{shown} Make the page again when it is done."),
    }
    if source.state in texts:
        yield "stop", *texts[source.state]


def _participation(source: Source) -> Iterator[Caution]:
    rows, states = source.vehicles, Counter(row["state"] for row in source.vehicles)
    ineligible = Counter(row["reason"] for row in rows if row["state"] == "ineligible")
    empty = [row for row in source.rounds if not row["ordered"]]
    if empty:
        all_empty = len(empty) == len(source.rounds)
        of = f"any {source.unit}" if all_empty else f"{len(empty)} of {len(source.rounds)} {source.unit}s"
        cause = why_nobody(Counter(row["plan_status"] for row in empty), ineligible)
        yield "stop" if all_empty else "warn", f"No CV got an order in {of}", f"Most often {cause}."
    if len(rows) and states["ineligible"] >= _MANY * len(rows):
        (reason, count), total = ineligible.most_common(1)[0], states["ineligible"]
        text = f"{total:,} of {len(rows):,} decisions; in {count / total:.0%} of them {in_words(reason)}."
        yield "warn", f"{total / len(rows):.0%} of the CVs in coverage were not eligible", text
    ordered = states["lost"] + states["delivered"]
    if ordered and states["lost"] >= _FEW * ordered:
        reasons = Counter(row["reason"] for row in rows if row["state"] == "lost")
        text = "; ".join(f"{count:,} because {in_words(reason)}" for reason, count in reasons.most_common())
        yield "warn", f"{states['lost'] / ordered:.0%} of the ordered updates were lost", f"{text}."


def _grants(source: Source) -> Iterator[Caution]:
    """Many grants that were lost, and the keys on which that depends."""
    grants, radio = source.grants, source.experiment.radio
    if grants and grants.lost_share >= _MANY:
        age = "a slot" if radio.csi_delay_slots == 1 else f"{radio.csi_delay_slots} slots"
        text = (
            f"{grants.lost_text} were above the capacity of their slot, because the gNB knew the channel only as it "
            f"was {age} before (radio.csi_delay_slots). Their energy was spent in vain, and their bits had to be sent "
            f"again. A larger radio.csi_margin_db (here {radio.csi_margin_db:g}) makes lost grants rarer."
        )
        yield "warn", f"{grants.lost_share:.0%} of the grants were lost", text


def _limits(source: Source) -> Iterator[Caution]:
    summary, experiment = source.summary, source.experiment
    if broken := {law: number for law, number in summary.get("plan_breaches", {}).items() if number}:
        text = ", ".join(f"{number} × {law}" for law, number in broken.items())
        yield "stop", "The scheme violates constraints", f"{text}."
    if overruns := {name: number for name, number in summary.get("overruns", {}).items() if number}:
        text = "; ".join(f"{number:,} × {_OVERRUNS.get(name, name)}" for name, number in overruns.items())
        yield "warn", "Planned worst cases were exceeded", f"{text}."
    budget, paid = source.budget, source.total("cost")
    if experiment.scheme.constrained and budget > 0 and paid < 0.5 * budget:
        mean = paid / len(source.rounds)
        text = f"On average {mean:,.1f} of Ξ = {budget / len(source.rounds):,g} was paid per {source.unit}."
        yield "note", f"{1 - paid / budget:.0%} of the budget was left unspent", text


def _origin(source: Source) -> Iterator[Caution]:
    try:
        require_same_version(source.run.path)
    except NotResumable:
        text = "Its tables are shown as they are; figures that this version adds may be missing."
        yield "note", "Another version of vefl_sim made this run", text
    if not source.run.is_checked:
        text = "The run has recorded no digests of them, which would show whether they were changed afterwards."
        yield "note", "The tables are not checked", text


def provenance_html(source: Source) -> str:
    """Everything that identifies the run, and its wall time by part."""
    commands = "\n".join(commands_of(source))
    return (
        f"<div class='columns'><div><h3>Identity</h3>{pairs(_identity(source))}</div>"
        f"<div><h3>Wall time</h3>{_times(source)}</div></div>"
        f"<h3>To repeat it</h3><pre><code>{html(commands)}</code></pre>"
        f"<details><summary>Versions of Python and libraries</summary><div>{pairs(_versions(source))}</div></details>"
    )


def commands_of(source: Source) -> Iterator[str]:
    """The commands that repeat the run, as it was started and from its own directory."""
    path = shlex.quote(str(source.run.path))
    settings = source.versions.get("set", [])
    chosen = [f"--set {shlex.quote(str(setting))}" for setting in settings] if isinstance(settings, list) else []
    if chosen:
        yield f"# started with the options {printable(' '.join(chosen))}"  # one line: none of it can become a command
    yield f"python -m vefl_sim {path}/resolved.toml --fresh    # the same content digest"
    yield f"python -m vefl_sim verify {path}"


def _identity(source: Source) -> Iterator[tuple[str, object]]:
    yield "run", source.run.path.name
    yield "state", source.state
    yield "content digest", source.summary.get("content_digest") or "none before the run is done"
    yield "configuration digest", source.versions.get("configuration", "unknown")
    yield "seed", source.experiment.run.seed
    for name, digest in dict(source.versions.get("parts", {})).items():
        yield f"part {name}", digest


def _versions(source: Source) -> Iterator[tuple[str, object]]:
    versions = source.versions
    for name in ("python", "machine", "vefl_sim source"):
        yield name, versions.get(name, "unknown")
    yield from dict(versions.get("packages", {})).items()


def _times(source: Source) -> str:
    """Wall-clock seconds of each part of the run, with the rest."""
    timings, summary = source.table("timings"), source.summary
    rounds_s, prepare_s = float(summary.get("wall_s") or 0.0), float(summary.get("prepare_s") or 0.0)
    if not rounds_s:
        return "<p>Not recorded.</p>"
    by_part = {} if timings is None else timings.groupby("what")["wall_s"].sum().to_dict()
    rest_s = max(rounds_s - sum(by_part.values()), 0.0)
    parts = {"preparing traffic, data and model": prepare_s}
    parts |= {str(what): seconds for what, seconds in by_part.items()}
    parts |= {"network, compilation and the rest": rest_s, "together": rounds_s + prepare_s}
    rows = [(html(name), f"{s:,.1f} s", f"{s / (rounds_s + prepare_s):.0%}") for name, s in parts.items()]
    return table(("part", "wall time", "share"), rows, "Wall time by part")
