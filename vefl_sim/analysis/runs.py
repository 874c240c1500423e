"""Lists the runs in a folder, and finds a run by its name."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import RunNotFound, VeflError
from vefl_sim.core.files import read_text
from vefl_sim.experiment.complaints import shortened, shown
from vefl_sim.experiment.experiment import TABLES, Experiment
from vefl_sim.experiment.part_files import part_sources, parts_in
from vefl_sim.experiment.plugins import part_names
from vefl_sim.learning.metric import Metric, common_metric, metric_of_summary
from vefl_sim.records.identity import require_same_version
from vefl_sim.records.lock import is_locked
from vefl_sim.records.run_directory import Run

_USUAL_FOLDER = Path("runs")
_FIRST_RUN = "python -m vefl_sim new quickstart && python -m vefl_sim quickstart.toml"
_NOT_COMPARED = (  # they have their own column, or no effect
    *("run.seed", "run.checkpoint_every", "run.keep_checkpoints", "run.watch", "scheme.kind"),
)
_MOST_KEYS = 4  # shown for each run
_MOST_RUNS = 12  # of a sweep or comparison, in a message


@dataclass(frozen=True)
class RunOverview:
    """The state and progress of a run; a value that cannot be read is None."""

    name: str
    state: str
    rounds: int | None  # finished rounds; of an unfinished run, those up to the last checkpoint
    planned: int | None
    metric: Metric | None  # None if nothing was evaluated
    result: float | None  # last value of the metric
    age_s: float  # since a file of the run was last written
    experiment: Experiment | None


def list_runs(out: Path) -> list[RunOverview]:
    """All runs in a folder; the most recently written run is last."""
    if not out.is_dir():
        raise RunNotFound(f"{out} is not a folder: name the folder that contains the runs.")
    folders = [path for path in out.iterdir() if isfile(path / "resolved.toml")]
    return sorted(map(_overview, folders), key=lambda run: -run.age_s)


def _overview(path: Path) -> RunOverview:
    state, summary, experiment = "damaged", dict[str, Any](), None
    with suppress(VeflError, OSError, ValueError):  # of another version, or damaged: still listed
        run = Run(path)
        experiment = run.experiment
        summary = run.require_complete() if run.is_done else run.summary
        state = "damaged" if run.loss else run.state
    metric = metric_of_summary(experiment.learning.loss, summary) if experiment else None
    result = metric.of_summary("last", summary) if metric else None
    rounds = figure if isinstance(figure := summary.get("rounds"), int) else None
    planned, age_s = experiment.rounds if experiment else None, max(0.0, time.time() - _written(path))
    return RunOverview(
        path.name, state, rounds, planned, metric if result is not None else None, result, age_s, experiment
    )


def _written(path: Path) -> float:
    """When a file of a run was last written; the run may still replace its files meanwhile."""
    times = [0.0]
    for folder in (path, path / "checkpoints"):
        with suppress(OSError):
            times += [file.stat().st_mtime for file in (folder, *folder.iterdir())]
    return max(times)


def find_run(name: str, out: Path = _USUAL_FOLDER, *, unfinished: bool = False) -> Run:
    """Find a run by its directory, or the newest run in `out` whose name begins with `name`.

    Finished runs are preferred, or unfinished runs if `unfinished` is set. If the name is that of a sweep or
    comparison, the RunNotFound lists its runs.
    """
    if Path(name).exists():
        if not (Path(name) / "resolved.toml").is_file():
            _refuse_sweep(name, out, unfinished)
        return Run(name)
    folder, start = (Path(name).parent, Path(name).name) if len(Path(name).parts) > 1 else (out, name)
    folders = folder.iterdir() if folder.is_dir() else ()
    matches = [path for path in folders if path.name.startswith(start) and (path / "resolved.toml").is_file()]
    if not matches:
        _refuse_sweep(name, out, unfinished)
        raise RunNotFound(f"{name}: no such run directory, and no run in {folder} has a name that begins with this.")
    return Run(max(matches, key=lambda path: _preference(path, unfinished)))


def _refuse_sweep(name: str, out: Path, unfinished: bool) -> None:
    """Raise RunNotFound with a list of runs if this is the name, folder or TOML file of a sweep or comparison."""
    from vefl_sim.analysis.sweep_report.source import SweepSource, find_table  # slow to import

    if not (table := find_table(name, out)):
        return
    here = Path.cwd()  # paths are shown as they can be typed
    choices = SweepSource(table).choices.items()
    runs = [f"{path.relative_to(here) if path.is_relative_to(here) else path} ({words})" for path, words in choices]
    if not runs:
        raise RunNotFound(f"{name} is a sweep or comparison, not a run, and none of its runs is there: run it first.")
    more = f" … and {len(runs) - _MOST_RUNS} more, which `report {name}` lists" if len(runs) > _MOST_RUNS else ""
    whole = " To complete all of them, run its TOML file again." if unfinished else ""
    shown_runs = ", ".join(runs[:_MOST_RUNS])
    raise RunNotFound(f"{name} is a sweep or comparison, not a run: choose one of its runs: {shown_runs}{more}.{whole}")


def _preference(path: Path, unfinished: bool) -> tuple[bool, bool, bool, float]:
    """Sort key: the wanted state first, then runs without a running process, then no branches, then the newest."""
    branched = True
    with suppress(OSError, ValueError):  # what is wrong with it, is said by whoever reads it
        branched = bool(re.search(r"^(\[\[change\]\]|change = )", read_text(path / "resolved.toml"), re.MULTILINE))
    return (path / "DONE").exists() != unfinished, not is_locked(path), not branched, path.stat().st_mtime


def part_lines(run: Run, folder: Path | None = None, watch: Sequence[str] = ()) -> list[str]:
    """The files that resuming a run would import for its user-defined parts, searched first in `folder`.

    `watch`: names of further watchers.

    Nothing is imported to find them. Raises BadInput if a part is found only in a run directory or nowhere, or if the
    run was started with another version.
    """
    if run.is_done:
        return []
    require_same_version(run.path)  # another version may not understand the experiment
    watchers = [("run.watch", name) for name in (*(run.experiment.run.watch or ()), *watch)]
    return source_lines([*part_names(run.experiment), *watchers], folder)


def source_lines(parts: Iterable[tuple[str, str]], folder: Path | None = None) -> list[str]:
    """The files from which parts, given as (TOML key, `module:name`), would be imported; nothing is imported."""
    with parts_in(folder):
        files = {(key, name): ", ".join(part_sources(key, name)) for key, name in parts}
    return [f'{key} = "{name}" would be loaded from {where or "Python itself"}' for (key, name), where in files.items()]


def run_lines(out: Path) -> Iterator[str]:
    """The runs in a folder as a printable table; the folder that a first run creates may be missing."""
    runs = list_runs(out) if out != _USUAL_FOLDER or out.exists() else []
    if not runs:
        yield f"no runs yet in {out}; to start one: {_FIRST_RUN}"
        return
    schemes = [shortened(run.experiment.scheme.kind) if run.experiment else "–" for run in runs]
    heading, results = _results(runs)
    columns = [run.name for run in runs], ["scheme", *schemes], [heading, *results]
    widths = [max(map(len, texts)) + 2 for texts in columns]
    yield (
        f"{'run':{widths[0]}}{'state':12}{'scheme':{widths[1]}}{'seed':>5}{'rounds':>14}{heading:>{widths[2]}}{'age':>12}"
        "  differs in"
    )
    for run, scheme, result, settings in zip(runs, schemes, results, _differences(runs), strict=True):
        rounds = "–" if run.rounds is None else f"{run.rounds}/{run.planned or '?'}"
        seed = run.experiment.run.seed if run.experiment else "–"
        figures = f"{seed:>5}{rounds:>14}{result:>{widths[2]}}{_age(run.age_s):>12}"
        yield f"{run.name:{widths[0]}}{run.state:12}{scheme:{widths[1]}}{figures}  {settings}".rstrip()


def _results(runs: Sequence[RunOverview]) -> tuple[str, list[str]]:
    """Heading and cells of the metric; if the runs have different ones, each cell names its own."""
    metrics = [run.metric for run in runs if run.metric]
    common, texts = common_metric(metrics), []
    for run in runs:
        name = "" if common or run.metric is None else f"{run.metric.name} "
        texts.append("–" if run.metric is None or run.result is None else name + run.metric.text(run.result))
    return common.name if common else "result" if metrics else "accuracy", texts


def _differences(runs: Sequence[RunOverview]) -> Iterator[str]:
    """For each run, the keys in which it differs from another one of the same `run.name`, as --set options."""
    first, varied = dict[str, Experiment](), dict[str, set[tuple[str, str]]]()  # by run.name
    for experiment in filter(None, (run.experiment for run in runs)):
        other = first.setdefault(experiment.run.name, experiment)
        varied.setdefault(experiment.run.name, set()).update(_different_keys(experiment, other))
    for run in runs:
        keys = varied[run.experiment.run.name] if run.experiment else ()
        values = {f"{table}.{key}": getattr(getattr(run.experiment, table), key) for table, key in sorted(keys)}
        settings = [f"{key}={shown(value)}" for key, value in values.items() if value is not None]
        settings += map(str, run.experiment.change if run.experiment else ())
        more = f" … and {len(settings) - _MOST_KEYS} more" if len(settings) > _MOST_KEYS else ""
        yield " ".join(settings[:_MOST_KEYS]) + more


def _different_keys(one: Experiment, other: Experiment) -> Iterator[tuple[str, str]]:
    """Table and key of all values that differ, except for those that have a column or change no result."""
    for name in TABLES:
        own, others = vars(getattr(one, name)), vars(getattr(other, name))
        if own != others:
            yield from ((name, key) for key in own if own[key] != others[key] and f"{name}.{key}" not in _NOT_COMPARED)


def _age(seconds: float) -> str:
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
