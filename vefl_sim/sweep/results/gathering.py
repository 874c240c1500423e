"""Runs points one after the other, and stores the result of each: for results that take days, a few at a time."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from filelock import FileLock, Timeout

from vefl_sim.core.errors import BadInput, RunFailed, RunInterrupted, VeflError
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import to_toml
from vefl_sim.learning.datasets.files.inventory import require_whole
from vefl_sim.records.identity import config_digest, package_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.executors.child import work
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.results.keys import key_digest, keys_of, matches
from vefl_sim.sweep.results.probes import name_of, source_digest_now, variants
from vefl_sim.sweep.results.store import Store
from vefl_sim.sweep.wall_time import wall_time_s

CLAIMS, LOCK = ".claims", ".lock"  # in a store: who works on which point, and who on the probes
_SECONDS_BETWEEN = 60.0  # of two lines about one point
Say = Callable[[str], None]


class ResultsChanged(BadInput):
    """Probes that differ from what is written beside the results."""


@dataclass
class Gathering:
    """A store, the folder of the runs that fill it, and somebody who wants to hear how it goes."""

    store: Store
    out: Path
    say: Say

    def __post_init__(self) -> None:
        self._stop = StopRequest(lambda: self.say("stopping: the point saves what it has; once more stops at once"))

    def gather(self, points: Sequence[Point], most: int) -> list[str]:
        """Run the first `most` of these points that are not stored; returns what failed, one sentence each.

        The probe of each is run first, unless these sources have passed it: no result is of sources that its probe does
        not know. A point that another process works on is left to it. Raises ResultsChanged if a probe differs, and
        RunInterrupted if it was stopped.
        """
        done, failed = 0, list[str]()
        with self._stop.listening():
            for point in points:
                if done + len(failed) >= most:
                    break
                with self._claimed(point.experiment) as is_ours:
                    if not is_ours or self.has(point):
                        continue
                    require_whole(point.experiment.data)
                    require_equal(self.probe([point], again=False))
                    ended = self._gathered(point, f"{done + len(failed) + 1} of {most}")
                if ended.state == "done":
                    done += 1
                elif ended.state == "stopped":
                    raise RunInterrupted("what is done is stored, and the last point is kept as far as it came")
                elif ended.state != "busy":
                    failed.append(f"{point.title}: {ended.error}")
        return failed

    def has(self, point: Point) -> bool:
        """Whether a current result is stored, also if another process has just stored it."""
        self.store.refresh()
        found = self.store.find(point)
        return found is not None and not found.stale

    def _gathered(self, point: Point, number: str) -> JobOutcome:
        """Run a point and store its result."""
        self.say(f"{number}: {describe(point)}, about {duration(self.wall_s(point))}")
        began = time.monotonic()
        ended = self._run(point.experiment, self.out)
        if ended.state != "done":
            self.say(f"  {ended.state}{f': {ended.error}' if ended.error else ''}")
            return ended
        path = self.store.add(Run(self.out / ended.run))
        self.say(f"  done in {duration(time.monotonic() - began)}, {path.name}, {path.stat().st_size} bytes")
        return ended

    def probe(self, points: Sequence[Point], *, accept: bool = False, again: bool = True) -> dict[str, list[str]]:
        """Run the probes of these points and compare; returns what differs, by the name of the probe.

        What is equal, new or accepted is written. `again`: also those that these sources have passed before.
        """
        differ: dict[str, list[str]] = {}
        folder = self.out / "probes"
        folder.mkdir(parents=True, exist_ok=True)
        self.store.folder.mkdir(parents=True, exist_ok=True)
        with self._stop.listening(), FileLock(self.store.folder / LOCK, is_singleton=False):
            self.store.refresh()  # another process may have written probes meanwhile
            for keys, experiment in variants(point.experiment for point in points):
                known = self.store.probes.of(keys)
                if not again and known and source_digest_now(experiment) in known.sources:
                    continue
                self.say(f"probe: {name_of(keys)}")
                ended = self._run(experiment, folder)
                if ended.state == "stopped":
                    raise RunInterrupted("the probes are not all run: run them again")
                if ended.state != "done":
                    raise RunFailed(f"The probe {name_of(keys)} fails: {ended.error}")
                if apart := self.store.probes.take(keys, Run(folder / ended.run), accept=accept):
                    differ[name_of(keys)] = apart
                self.store.probes.write()
        return differ

    def wall_s(self, point: Point) -> float:
        """How long a point will take, by results like it, or else by a rule of thumb."""
        like = self.store.wall_times(point.experiment)
        return median(like) if like else wall_time_s(point.experiment)

    def _run(self, experiment: Experiment, out: Path) -> JobOutcome:
        """In a process of its own, with one thread."""
        job = Job(config_digest(experiment), to_toml(experiment), str(out.resolve()), os.getcwd(), package_digest())
        last = [time.monotonic()]

        def tell(report: Report) -> None:
            if report.share is not None and time.monotonic() - last[0] >= _SECONDS_BETWEEN:
                last[0] = time.monotonic()
                self.say(f"  {100 * report.share:.0f} %")

        out.mkdir(parents=True, exist_ok=True)
        return work(job, tell, lambda: self._stop.made)

    @contextmanager
    def _claimed(self, experiment: Experiment) -> Iterator[bool]:
        """Whether nobody else works on an experiment; nobody does while the block lasts. The sources do not matter."""
        folder = self.store.folder / CLAIMS  # not in `out`: two processes may have one store, and each its own runs
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / key_digest(keys_of(experiment)), is_singleton=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def add_runs(store: Store, runs: Iterable[Run], points: Sequence[Point], say: Say) -> int:
    """Store finished runs that are of one of these points; returns how many. Of two of a point the later one stays."""
    wanted = [keys_of(point.experiment) for point in points]
    added = 0
    for run in sorted(runs, key=_ended_ns):
        try:
            keys = keys_of(run.experiment)
            if not any(one["run.seed"] == keys["run.seed"] and matches(keys, one) for one in wanted):
                say(f"{run.path.name} is left out: it is of none of the points")
                continue
            path = store.add(run)
        except VeflError as error:  # damaged, or of a version whose keys are gone
            say(f"{run.path.name} is left out: {error}")
            continue
        added += 1
        say(f"{run.path.name}: {path.name}, {path.stat().st_size} bytes")
    return added


def _ended_ns(run: Run) -> int:
    """When a finished run ended, or the folder was changed last."""
    mark = run.path / "DONE"
    return (mark if mark.exists() else run.path).stat().st_mtime_ns


def describe(point: Point) -> str:
    """A point with its data set and scheme."""
    experiment = point.experiment
    kind = "" if experiment.learning.kind == "jax" else ", no learning"
    return f"{experiment.scheme.kind}, {experiment.data.kind}, {point.title}{kind}"


def duration(seconds: float) -> str:
    """Hours and minutes, or minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes}:{rest:02d} min"


def require_equal(differ: dict[str, list[str]]) -> None:
    """Raise ResultsChanged if probes differ from what is written."""
    problems = [f"{name}: {message}" for name, all_told in differ.items() for message in all_told]
    if problems:
        raise ResultsChanged([*problems, "The code gives other results than those that are stored."])
