"""The summary of a run, as printable lines."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from vefl_sim.analysis.reasons import why_nobody
from vefl_sim.core.errors import RunNotFound
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration, is_part
from vefl_sim.learning.datasets.kinds import Rule
from vefl_sim.learning.metric import metric_of_summary
from vefl_sim.records.run_directory import Run
from vefl_sim.records.totals import energy_text

if TYPE_CHECKING:  # slow to import, and not needed for a run without lost grants
    import pandas as pd


class GrantCounts(NamedTuple):
    """How many grants were used, one for each CV and slot in which it sent, and how many of them were lost."""

    used: int = 0
    lost: int = 0

    @classmethod
    def of(cls, outages: "pd.DataFrame") -> "GrantCounts":
        """Count the grants in rows of the table `outages`; one above the capacity of its slot is lost."""
        return cls(int(outages["tx_slots"].sum()), int(outages["lost_slots"].sum()))

    @property
    def lost_share(self) -> float:
        """Share of the grants that were lost; 0 if there were none."""
        return self.lost / self.used if self.used else 0.0

    @property
    def lost_text(self) -> str:
        """How many grants of how many were lost, for example "8,789 of 67,969"."""
        return f"{self.lost:,} of {self.used:,}"


def summary_lines(run: Run, rule: Rule | None = None) -> Iterator[str]:
    """The key figures of a run, its directory and its tables, as printable lines.

    `rule`: what the model is compared with. It needs the data of the run, so only the process that ran it knows it.
    """
    try:
        figures = list(_figures(run, rule))
    except (KeyError, TypeError):  # of another version of vefl_sim
        raise RunNotFound(f"{run.path / 'summary.json'} lacks figures of this version of vefl_sim.") from None
    for name, text in figures:
        yield f"{name:16}{text}"
    tables = ", ".join(sorted(file.name for file in (run.path / "tables").glob("*.parquet")))
    yield f"{'in':16}{run.path}: {tables}"


def _figures(run: Run, rule: Rule | None) -> Iterator[tuple[str, str]]:
    """Name and text of each line."""
    summary = run.summary
    lost = {cause: number for cause, number in dict(summary["updates_lost"]).items() if number}
    causes = ", ".join(f"{number} {cause}" for cause, number in lost.items()) or "none"
    yield (
        "rounds",
        f"{summary['rounds']} in {summary['simulated_s']:.1f} s of simulated time, {summary['wall_s']:.1f} s of wall "
        f"time (plus {summary['prepare_s']:.1f} s for preparation)",
    )
    yield "updates", f"{summary['updates_delivered']} of {summary['updates_ordered']} delivered; lost: {causes}"
    if summary["mean_staleness"] or summary["server_steps"] > summary["rounds"]:  # a scheme without rounds
        left = summary["updates_delivered"] - summary["updates_applied"]
        yield (
            "server",
            f"{summary['server_steps']} steps with {summary['updates_applied']} updates, "
            f"{summary['mean_staleness']:.2f} steps old on average; {left} remained in the buffer",
        )
    metric = metric_of_summary(run.experiment.learning.loss, summary)
    values = {which: metric.of_summary(which, summary) for which in ("first", "best", "last")}
    if any(value is not None for value in values.values()):
        shown = (f"{'–' if value is None else metric.text(value)} {which}" for which, value in values.items())
        yield metric.name, ", ".join(shown)
        if metric.is_root and (text := _comparison(run, rule)):
            yield "compare with", text
    if summary["diverged"]:
        yield "warning", "training has diverged (the loss is NaN): try a smaller learning.learning_rate"
    if why := why_empty(run):
        yield "warning", f"no CV got an order: most often {why}"
    yield "audit", _audit(summary)
    yield "paid", f"{summary['cost']:.1f}"
    yield "energy", energy_text(summary["energy_j"])
    if summary.get("gnb_energy_j"):
        yield "gNB energy", f"{energy_text(summary['gnb_energy_j'])} for broadcasts of the model"
    if line := _grants(run):
        yield "grants", line
    yield "content digest", str(summary["content_digest"])[:16]


def _comparison(run: Run, rule: Rule | None) -> str:
    """The error of the rule that a model should surpass, or how to print it; empty if the data set has no rule."""
    if rule:
        return f"{math.sqrt(rule[1]):#.4g}, the rmse of {rule[0]} on the same samples, without any learning"
    name = declaration("data.kind", run.experiment.data.kind, "rule_name", "")
    return f"the rmse of {name}, which python -m vefl_sim evaluate {run.path} prints" if name else ""


def _grants(run: Run) -> str:
    """What became of the grants, in runs that can lose some; empty if their table is missing."""
    if not run.experiment.radio.csi_delay_slots:
        return ""
    with suppress(RunNotFound):  # the other figures are known without it
        grants = GrantCounts.of(run.table("outages"))
        if grants.lost:
            return (
                f"{grants.lost_text} lost ({grants.lost_share:.1%}), because they were above the capacity of their slot"
            )
        return f"none of {grants.used:,} lost" if grants.used else ""
    return ""


def trains_centrally(experiment: Experiment) -> bool:
    """Whether no CV ever gets an order; a user-defined scheme is not loaded, as it may no longer exist."""
    scheme = experiment.scheme.kind
    return not is_part(scheme) and bool(declaration("scheme.kind", scheme, "trains_centrally", False))


def why_empty(run: Run) -> str:
    """Why no CV of a run got an order, as a clause; empty if one did, or if the scheme trains centrally."""
    if run.summary["updates_ordered"] or not run.summary["rounds"]:
        return ""
    if trains_centrally(run.experiment):
        return ""
    ineligible = Counter(run.vehicles.query("state == 'ineligible'")["reason"].tolist())
    words = why_nobody(Counter(run.rounds["plan_status"].tolist()), ineligible)
    radio = run.experiment.radio
    if radio.csi_delay_slots and not radio.csi_margin_db and "time" in dict(ineligible.most_common(1)):
        words += "; plans count only on grants that arrive (radio.csi_delay_slots), so try radio.csi_margin_db = 3"
    return words


def _audit(summary: dict[str, Any]) -> str:
    """How many plans and slots were audited, and which limits were exceeded."""
    overruns = ", ".join(f"{number} × {name}" for name, number in summary["overruns"].items() if number) or "none"
    broken = ", ".join(f"{number} × {law}" for law, number in summary["plan_breaches"].items())
    if not summary["plans_audited"]:
        return "nothing to audit, because the scheme has no constraints"
    violations = f"your scheme violates {broken}" if broken else "no violations"
    audited = f"{summary['plans_audited']} plans and {summary['slots_audited']} slots checked"
    return f"{audited}, {violations}; overruns: {overruns}"
