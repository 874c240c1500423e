"""Results on screen: the summary of a run, and its events as lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console

from vefl_sim.analysis.references.sheet import Check
from vefl_sim.core.errors import RunNotFound
from vefl_sim.records.lock import is_locked
from vefl_sim.records.run_directory import Run

if TYPE_CHECKING:
    from vefl_sim.analysis.verify.verification import Finding

_LEADING = ("id", "cause", "time_ns", "kind", "actor", "round", "cv")


def find_run(name: str, out: Path = Path("runs"), *, unfinished: bool = False) -> Run:
    """A run by its directory, or the newest in `out` whose name starts like this; finished ones first, or last."""
    if Path(name).exists():
        return Run(name)
    folder, start = (Path(name).parent, Path(name).name) if len(Path(name).parts) > 1 else (out, name)
    folders = folder.iterdir() if folder.is_dir() else ()
    matches = [path for path in folders if path.name.startswith(start) and (path / "resolved.toml").is_file()]
    if not matches:
        raise RunNotFound(f"{name}: there is no such run directory, and none in {folder} starts like this.")
    return Run(max(matches, key=lambda path: _wanted(path, unfinished)))


def _wanted(path: Path, unfinished: bool) -> tuple[bool, bool, float]:
    return (path / "DONE").exists() != unfinished, not is_locked(path), path.stat().st_mtime


def print_summary(run: Run, console: Console) -> None:
    """A short table and the paths written."""
    for name, text in _figures(run.summary, run.experiment.scheme.kind):
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


def run_lines(out: Path) -> Iterator[str]:
    """The runs in a folder as a table."""
    from vefl_sim.analysis.runs import listed

    runs = listed(out)
    width = max((len(run.name) for run in runs), default=0) + 2
    if runs:
        yield f"{'run':{width}}{'state':12}{'rounds':>14}{'accuracy':>10}{'age':>12}"
    for run in runs:
        rounds = "–" if run.rounds is None else f"{run.rounds}/{run.planned or '?'}"
        accuracy = "–" if run.accuracy is None else f"{run.accuracy:.4f}"
        yield f"{run.name:{width}}{run.state:12}{rounds:>14}{accuracy:>10}{_age(run.age_s):>12}"
    if not runs:
        yield f"there are no runs in {out}"


def finding_lines(findings: Sequence["Finding"]) -> Iterator[str]:
    """What was verified, a line each."""
    for finding in findings:
        message = f"WRONG: {finding.fault}" if finding.fault else finding.note or "holds"
        yield f"{finding.what:16}{message}"


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    """The check sheet as a table, and a verdict."""
    yield f"{'what':48}{'source':13}{'reference':>14}{'ours':>16}{'difference':>13}"
    for check in checks:
        mark = "" if check.passed else "  DIFFERS"
        figures = f"{check.reference:14.6f}{check.ours:16.6f}{check.difference:13.1e}"
        yield f"{check.what:48}{check.source:13}{figures} {check.unit}{mark}".rstrip()
    yield f"{sum(check.passed for check in checks)} of {len(checks)} agree within the precision of their source"


def traffic_lines(seeds: Sequence[int] = (1, 2, 3), duration_s: float = 2000.0) -> Iterator[str]:
    """What the default traffic looks like at the paper's speeds, a line each as it becomes known."""
    from vefl_sim.analysis.references.mobility import SPEEDS_MPS, default_traffic

    yield ""
    yield f"default traffic, {duration_s:g} s, mean of seeds {', '.join(map(str, seeds))}"
    yield f"{'u_max':>9}{'unique CVs':>26}{'in coverage':>13}{'mean speed':>13}{'bound < 5 s':>13}{'< 2.5 s':>10}"
    for speed_mps in SPEEDS_MPS:
        seen = [default_traffic(speed_mps, seed, duration_s) for seed in seeds]
        unique = f"{mean(s.unique_cvs for s in seen):.0f} ({', '.join(str(s.unique_cvs) for s in seen)})"
        covered, driven_mps = mean(s.in_coverage for s in seen), mean(s.speed_mps for s in seen)
        below = [mean(s.share_below(bound_s) for s in seen) for bound_s in (5.0, 2.5)]
        yield f"{speed_mps:5g} m/s{unique:>26}{covered:13.1f}{driven_mps:9.2f} m/s{below[0]:13.1%}{below[1]:10.1%}"
    yield "paper: 287 to 299 unique CVs in five runs of 2000 s; at 26.82 m/s about 28% below 5 s, 13% below 2.5 s"


def _age(seconds: float) -> str:
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def _others(event: pd.Series) -> list[str]:
    return [name for name in event.index if name not in _LEADING]


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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
