"""Results on screen: the summary of a run, and its events as lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from vefl_sim.errors import RunNotFound
from vefl_sim.radio.check_sheet import Check
from vefl_sim.results import Run

_LEADING = ("id", "cause", "time_ns", "kind", "actor", "round", "cv")


def find_run(name: str, out: Path = Path("runs")) -> Run:
    """A run by its directory, or the newest in `out` whose name starts like this, finished ones first."""
    if Path(name).exists():
        return Run(name)
    folders = out.iterdir() if out.is_dir() else ()
    matches = [path for path in folders if path.name.startswith(name) and (path / "resolved.toml").is_file()]
    if not matches:
        raise RunNotFound(f"{name}: there is no such run directory, and none in {out} starts like this.")
    return Run(max(matches, key=lambda path: ((path / "DONE").exists(), path.stat().st_mtime)))


def print_summary(run: Run, console: Console) -> None:
    """A short table and the paths written."""
    for name, text in _figures(run.summary):
        console.print(f"{name:16}{text}", highlight=False, markup=False, soft_wrap=True)
    tables = ", ".join(sorted(file.name for file in (run.path / "tables").glob("*.parquet")))
    console.print(f"{'in':16}{run.path}: {tables}", highlight=False, markup=False, soft_wrap=True)


def event_lines(events: pd.DataFrame) -> Iterator[str]:
    """One line per event: time, number and cause, who, what, and the columns that are filled."""
    for _, event in events.iterrows():
        filled = (f"{name}={_short(event[name])}" for name in event.index if name not in _LEADING)
        details = [text for text, name in zip(filled, _others(event), strict=True) if not pd.isna(event[name])]
        cause = "" if pd.isna(event["cause"]) else f" <- {event['cause']}"
        where = "" if pd.isna(event["round"]) else f" round {event['round']}"
        whom = "" if pd.isna(event["cv"]) or event["actor"].startswith("cv ") else f" cv {event['cv']}"
        yield (
            f"{event['time_ns'] / 1e9:12.6f} s  #{event['id']}{cause}  {event['actor']}: {event['kind']}"
            f"{whom}{where}  {' '.join(details)}".rstrip()
        )


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    """The check sheet as a table, and a verdict."""
    yield f"{'what':48}{'source':13}{'reference':>14}{'ours':>16}{'difference':>13}"
    for check in checks:
        mark = "" if check.passed else "  DIFFERS"
        figures = f"{check.reference:14.6f}{check.ours:16.6f}{check.difference:13.1e}"
        yield f"{check.what:48}{check.source:13}{figures} {check.unit}{mark}".rstrip()
    yield f"{sum(check.passed for check in checks)} of {len(checks)} agree within the precision of their source"


def _others(event: pd.Series) -> list[str]:
    return [name for name in event.index if name not in _LEADING]


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _figures(summary: dict[str, object]) -> Iterator[tuple[str, str]]:
    lost = {cause: number for cause, number in dict(summary["updates_lost"]).items() if number}  # type: ignore[call-overload]
    causes = ", ".join(f"{number} {cause}" for cause, number in lost.items()) or "none"
    yield (
        "rounds",
        f"{summary['rounds']} in {summary['simulated_s']:.1f} s simulated, {summary['wall_s']:.1f} s wall "
        f"(and {summary['prepare_s']:.1f} s to prepare)",
    )
    yield "updates", f"{summary['updates_delivered']} of {summary['updates_ordered']} delivered; lost: {causes}"
    if summary["last_accuracy"] is not None:
        yield (
            "accuracy",
            f"{summary['first_accuracy']:.4f} first, {summary['best_accuracy']:.4f} best, "
            f"{summary['last_accuracy']:.4f} last",
        )
    if summary["diverged"]:
        yield "warning", "the loss is not a number: training has diverged, try a smaller learning.learning_rate"
    if not summary["updates_ordered"]:
        yield "warning", "nobody got an order: see plan_status in the rounds table, and reason in the vehicles table"
    yield "paid", f"{summary['cost']:.1f}"
    yield "energy", f"{summary['energy_j']:.1f} J"
    yield "content digest", str(summary["content_digest"])[:16]
