"""Results on screen: the summary of a run, and its events as lines."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console

from vefl_sim.records.run_directory import Run

if TYPE_CHECKING:
    pass


def print_summary(run: Run, console: Console) -> None:
    """A short table and the paths written."""
    for name, text in _figures(run.summary, run.experiment.scheme.kind):
        console.print(f"{name:16}{text}", highlight=False, markup=False, soft_wrap=True)
    tables = ", ".join(sorted(file.name for file in (run.path / "tables").glob("*.parquet")))
    console.print(f"{'in':16}{run.path}: {tables}", highlight=False, markup=False, soft_wrap=True)


def _figures(summary: dict[str, Any], scheme: str) -> Iterator[tuple[str, str]]:
    lost = {cause: number for cause, number in dict(summary["updates_lost"]).items() if number}
    causes = ", ".join(f"{number} {cause}" for cause, number in lost.items()) or "none"
    yield (
        "rounds",
        f"{summary['rounds']} in {summary['simulated_s']:.1f} s simulated, {summary['wall_s']:.1f} s wall "
        f"(and {summary['prepare_s']:.1f} s to prepare)",
    )
    yield "updates", f"{summary['updates_delivered']} of {summary['updates_ordered']} delivered; lost: {causes}"
    if _without_rounds(summary):
        left = summary["updates_delivered"] - summary["updates_applied"]
        yield (
            "server",
            f"{summary['server_steps']} steps with {summary['updates_applied']} updates, "
            f"{summary['mean_staleness']:.2f} steps old on average; {left} left in the buffer",
        )
    if summary["last_accuracy"] is not None:
        yield (
            "accuracy",
            f"{summary['first_accuracy']:.4f} first, {summary['best_accuracy']:.4f} best, "
            f"{summary['last_accuracy']:.4f} last",
        )
    if summary["diverged"]:
        yield "warning", "the loss is not a number: training has diverged, try a smaller learning.learning_rate"
    if not summary["updates_ordered"] and scheme != "centralized":
        yield "warning", "nobody got an order: see plan_status in the rounds table, and reason in the vehicles table"
    yield "audit", _audited(summary)
    yield "paid", f"{summary['cost']:.1f}"
    yield "energy", f"{summary['energy_j']:.1f} J"
    yield "content digest", str(summary["content_digest"])[:16]


def _without_rounds(summary: dict[str, Any]) -> bool:
    """Where updates are stale, or the server has stepped more often than there are windows."""
    return bool(summary["mean_staleness"]) or summary["server_steps"] > summary["rounds"]


def _audited(summary: dict[str, Any]) -> str:
    """What was checked, and what came out worse than planned."""
    worse = ", ".join(f"{number} × {name}" for name, number in summary["overruns"].items() if number) or "none"
    broken = ", ".join(f"{number} × {law}" for law, number in summary["plan_breaches"].items())
    if not summary["plans_audited"]:
        return "nothing to audit without constraints"
    message = f"{summary['plans_audited']} plans and {summary['slots_audited']} slots hold; overruns: {worse}"
    return f"{message}; plans of your scheme break {broken}" if broken else message
