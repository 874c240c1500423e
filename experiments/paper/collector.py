"""Runs points one after the other and stores the result of each, for sweeps that take days, a few points at a time."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from filelock import FileLock, Timeout

from vefl_sim.core.errors import BadInput, RunFailed, RunInterrupted, VeflError
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_names
from vefl_sim.experiment.toml import to_toml
from vefl_sim.learning.datasets.public import require_whole
from vefl_sim.records.identity import Identity, config_digest, package_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.job import Job, Report, run_in_process
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.results.keys import key_digest, keys_of, matches
from vefl_sim.sweep.results.probes import probe_name, probes_for, source_digest
from vefl_sim.sweep.results.store import Store
from vefl_sim.sweep.wall_time import wall_time_s

CLAIMS, LOCK = ".claims", ".lock"  # in a store: locks of the points that are being run, and of the probes
_PROGRESS_INTERVAL_S = 60.0  # between two lines about one point
PrintLine = Callable[[str], None]


class ResultsChanged(BadInput):
    """Raised if probes differ from the figures stored beside the results."""


@dataclass
class ResultCollector:
    """Runs points in the folder `out` and stores their results in a store, with lines about the progress."""

    store: Store
    out: Path
    print_line: PrintLine

    def __post_init__(self) -> None:
        self._stop = StopRequest(lambda: self.print_line("stopping: the point is saved; a second signal stops at once"))

    def collect(self, points: Sequence[Point], limit: int) -> list[str]:
        """Run the first `limit` of these points that are not stored; returns one sentence for each that failed.

        The probe of a point is run first, unless the current sources have passed it, so that its probe lists the
        sources of every result. A point that another process works on is skipped. Raises ResultsChanged if a probe
        differs, and RunInterrupted if the user stopped it.
        """
        tried, failed = 0, list[str]()
        with self._stop.listening():
            for point in points:
                if tried == limit:
                    break
                with suppress(Timeout), self.claim(point):
                    if self.has_current(point):
                        continue
                    require_whole(point.experiment.data)
                    require_unchanged(self.probe([point], again=False))
                    end = self._run_and_store(point, f"{tried + 1} of {limit}")
                    if end.state == "stopped":
                        raise RunInterrupted("finished points are stored, the last one is saved: run the command again")
                    tried += end.state != "busy"
                    failed += [f"{point.title}: {end.error}"] if end.state in ("failed", "died") else []
        return failed

    def has_current(self, point: Point) -> bool:
        """Whether a current result of the point is stored, perhaps by another process."""
        self.store.refresh()
        result = self.store.find(point)
        return result is not None and not result.stale

    def _run_and_store(self, point: Point, number: str) -> Report:
        """Run a point and store its result."""
        experiment, started_s = point.experiment, time.monotonic()
        kind = "" if experiment.learning.kind == "jax" else ", no learning"
        words = f"{experiment.scheme.kind}, {experiment.data.kind}, {point.title}{kind}"
        self.print_line(f"{number}: {words}, about {duration(self.expected_s(point))}")
        outcome = self._run(experiment, self.out)
        if outcome.state != "done":
            self.print_line(f"  {outcome.state}{f': {outcome.error}' if outcome.error else ''}")
            return outcome
        path = self.store.add(Run(self.out / outcome.run))
        self.print_line(f"  done in {duration(time.monotonic() - started_s)}, {path.name}, {path.stat().st_size} bytes")
        return outcome

    def probe(self, points: Sequence[Point], *, accept: bool = False, again: bool = True) -> dict[str, list[str]]:
        """Run the probes of these points and compare them; returns the differences by the name of the probe.

        Probes that are equal, new or accepted are written. `again`: also run those that these sources have passed.
        """
        differ: dict[str, list[str]] = {}
        folder = self.out / "probes"
        folder.mkdir(parents=True, exist_ok=True)
        self.store.folder.mkdir(parents=True, exist_ok=True)
        with self._stop.listening(), FileLock(self.store.folder / LOCK, is_singleton=False):
            self.store.refresh()  # another process may have written probes while we waited for the lock
            for keys, experiment in probes_for(point.experiment for point in points):
                stored = self.store.probes.of(keys)
                if not again and stored and source_digest(Identity(experiment).versions) in stored.sources:
                    continue
                self.print_line(f"probe: {probe_name(keys)}")
                outcome = self._run(experiment, folder)
                if outcome.state == "stopped":
                    raise RunInterrupted("not all probes have been run: run them again")
                if outcome.state != "done":
                    raise RunFailed(f"The probe {probe_name(keys)} fails: {outcome.error}")
                if differences := self.store.probes.compare(keys, Run(folder / outcome.run), accept=accept):
                    differ[probe_name(keys)] = differences
                self.store.probes.write()
        return differ

    def expected_s(self, point: Point) -> float:
        """Expected wall time of a point on a quiet core: the median CPU time of stored results like it, or an estimate.

        A result without its CPU time counts with its wall time, which is longer where other work shared the core.
        """
        alike = ("scheme.kind", "scheme.constrained", "data.kind", "learning.kind", "vefl.round_s")
        keys = keys_of(point.experiment)
        files = [one.file for one in self.store if all(one.keys.get(key) == keys.get(key) for key in alike)]
        measured = [file.wall_s if file.cpu_s is None else file.cpu_s for file in files if file.wall_s]
        return median(measured) if measured else wall_time_s(point.experiment)

    def _run(self, experiment: Experiment, out: Path) -> Report:
        """Run an experiment in a process of its own with one thread, and print its progress."""
        job = Job(config_digest(experiment), to_toml(experiment), str(out.resolve()), os.getcwd(), package_digest())
        last_s = [time.monotonic()]

        def print_progress(report: Report) -> None:
            if report.share is not None and time.monotonic() - last_s[0] >= _PROGRESS_INTERVAL_S:
                last_s[0] = time.monotonic()
                self.print_line(f"  {100 * report.share:.0f} %")

        out.mkdir(parents=True, exist_ok=True)
        return run_in_process(job, print_progress, lambda: self._stop.made)

    def claim(self, point: Point) -> FileLock:
        """The lock of a point, whatever the sources; in the store, because `out` may differ between processes."""
        folder = self.store.folder / CLAIMS
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / key_digest(keys_of(point.experiment)), is_singleton=False, timeout=0)


def runs_in(folders: Iterable[Path]) -> Iterator[Run]:
    """The finished runs of some folders, each a run directory or the parent of run directories."""
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} does not exist: give a run directory, or a folder of run directories.")
        inside = [folder] if (folder / "resolved.toml").is_file() else sorted(folder.iterdir())
        yield from (run for path in inside if (path / "resolved.toml").is_file() and (run := Run(path)).is_done)


def add_runs(store: Store, runs: Iterable[Run], points: Sequence[Point], print_line: PrintLine) -> int:
    """Store the finished runs of these points and return their number; a later run of a point replaces an earlier."""
    wanted = [keys_of(point.experiment) for point in points]
    known_parts = {name for point in points for _, name in part_names(point.experiment)}
    added = 0
    for run in sorted(runs, key=lambda run: (run.path / "DONE").stat().st_mtime_ns):
        try:
            foreign = [name for _, name in part_names(run.experiment) if name not in known_parts]
            keys = {} if foreign else keys_of(run.experiment)  # which imports the parts
            if foreign or not any(one["run.seed"] == keys["run.seed"] and matches(keys, one) for one in wanted):
                print_line(f"{run.path.name} is left out: it belongs to none of the points")
                continue
            path = store.add(run)
            added += 1
            print_line(f"{run.path.name}: {path.name}, {path.stat().st_size} bytes")
        except VeflError as error:  # damaged, or of a version with keys that no longer exist
            print_line(f"{run.path.name} is left out: {error}")
    return added


def adopt_store(store: Store, other: Store, print_line: PrintLine) -> int:
    """Store the results that another store has and this one lacks; returns their number.

    A result whose probe gave other figures there, or that is stale there, would be stale here, and is left out.
    """
    store.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(store.folder / LOCK, is_singleton=False):
        store.refresh()  # another process may have written probes while we waited for the lock
        differ = store.probes.adopt(other.probes)
        store.probes.write()
    for problem in (*other.problems, *differ):
        print_line(problem)
    added = 0
    for result in other:
        if path := store.adopt(result):
            added += 1
            print_line(f"{path.name}, {path.stat().st_size} bytes")
        else:
            print_line(f"{result.name} is left out: it is stale, or a current one is stored")
    return added


def duration(seconds: float) -> str:
    """A time as text: hours and minutes, or minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes}:{rest:02d} min"


def require_unchanged(differ: dict[str, list[str]]) -> None:
    """Raise ResultsChanged if there are differences, given by the name of the probe."""
    if problems := [f"{name}: {difference}" for name, differences in differ.items() for difference in differences]:
        raise ResultsChanged([*problems, "The code no longer gives the results that are stored."])
