"""The order of points, and what becomes of those that fail, die or are busy; the executor plays by a script."""

import math
from collections.abc import Collection
from pathlib import Path

import pandas as pd
import pytest

from vefl_sim.core.errors import BadInput, RunInterrupted
from vefl_sim.sweep import runner
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Sweep, load_sweep
from vefl_sim.sweep.runner import Runner
from vefl_sim.sweep.tasks import PointTask, Tasks, tasks_of


class Scripted:
    """Runs one point at a time; `script` has the outcomes of each digest, in order, and "done" after them."""

    def __init__(self, script: dict[str, list[JobOutcome]], workers: int = 1) -> None:
        self._script, self._workers = script, workers
        self._reports: list[Report] = []
        self.begun: list[str] = []
        self.needed: list[float] = []
        self.closed = self.stopped = False

    def __str__(self) -> str:
        return "a script"

    def size(self) -> int:
        return self._workers

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        return len(running) < self._workers

    def begin(self, job: Job, needed_mb: float) -> None:
        self.begun.append(job.digest)
        self.needed.append(needed_mb)
        outcomes = self._script.get(job.digest, [])
        outcome = outcomes.pop(0) if outcomes else JobOutcome("done", peak_mb=700.0)
        self._reports += [Report(job.digest), Report(job.digest, share=0.5), Report(job.digest, outcome=outcome)]

    def poll(self, patience_s: float) -> Report | None:
        return self._reports.pop(0) if self._reports else None

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.closed = True


class Silent:
    """Remembers the statuses."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        self.seen.append((task.point.title, task.entry.status))

    def ticked(self, tasks: Tasks) -> None:
        assert tasks.left_s() >= 0

    def stopping(self) -> None:
        pass


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """Three points of rising length."""
    file = tmp_path / "s.toml"
    file.write_text('[run]\nname = "s"\n[learning]\nkind = "none"\n[sweep]\nrun.rounds = [1, 30, 20]\n')
    return load_sweep(file)


def digests(sweep: Sweep) -> list[str]:
    """Of the points, in their order."""
    return [point.digest for point in sweep.points]


def run(sweep: Sweep, out: Path, executor: Scripted) -> tuple[Tasks, pd.DataFrame]:
    """What becomes of it, and its index."""
    index = Index.of(sweep, out)
    tasks = tasks_of([index], out)
    Runner(tasks, [index], out, executor, Silent()).run()
    return tasks, pd.read_csv(index.file)


def test_the_longest_comes_first(sweep: Sweep, tmp_path: Path) -> None:
    executor, (short, long, middle) = Scripted({}), digests(sweep)
    tasks, index = run(sweep, tmp_path, executor)
    assert executor.begun == [long, middle, short]
    assert executor.closed
    assert len(tasks.having("done")) == 3
    assert index["status"].tolist() == ["done"] * 3
    assert index["run.rounds"].tolist() == [1, 30, 20]


def test_one_that_fails_does_not_stop_the_rest(sweep: Sweep, tmp_path: Path) -> None:
    short, long, _ = digests(sweep)
    _, index = run(sweep, tmp_path, Scripted({long: [JobOutcome("failed", error="no, sir")]}))
    assert index["status"].tolist() == ["done", "failed", "done"]
    assert index["error"].tolist()[1] == "no, sir"
    executor = Scripted({})
    run(sweep, tmp_path, executor)
    assert set(executor.begun) == {*digests(sweep)}  # no run directory shows that the others are done
    assert short in executor.begun


def test_one_that_dies_is_tried_again_alone_and_fails_in_the_end(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    executor = Scripted({long: [JobOutcome("died", error="SIGKILL")] * 3})
    tasks, index = run(sweep, tmp_path, executor)
    assert executor.begun.count(long) == 3
    begun = zip(executor.begun, executor.needed, strict=True)
    assert [math.isinf(needed) for digest, needed in begun if digest == long] == [
        False, True, True,
    ]  # fmt: skip
    assert [task.point.digest for task in tasks.having("failed")] == [long]
    assert index["error"].tolist()[1] == "SIGKILL"


def test_one_that_dies_once_is_done(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    tasks, _ = run(sweep, tmp_path, Scripted({long: [JobOutcome("died")]}))
    assert len(tasks.having("done")) == 3


def test_one_that_another_works_on_is_asked_for_later(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_BUSY_S", 0.05)
    _, long, _ = digests(sweep)
    executor = Scripted({long: [JobOutcome("busy"), JobOutcome("busy")]})
    tasks, _ = run(sweep, tmp_path, executor)
    assert executor.begun[-1] == long
    assert len(tasks.having("done")) == 3


def test_one_that_stops_unasked_is_tried_again(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    executor = Scripted({long: [JobOutcome("stopped")]})
    tasks, _ = run(sweep, tmp_path, executor)
    assert executor.begun.count(long) == 2
    assert len(tasks.having("done")) == 3


def test_an_index_that_cannot_be_written_is_told_before_anything_runs(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweeps").touch()
    executor = Scripted({})
    with pytest.raises(BadInput, match="choose another --out"):
        run(sweep, tmp_path, executor)
    assert executor.begun == []


def test_a_point_of_two_sweeps_is_run_once(sweep: Sweep, tmp_path: Path) -> None:
    other = Sweep("other", sweep.points[:2])
    indexes = [Index.of(found, tmp_path) for found in (sweep, other)]
    executor, tasks = Scripted({}), tasks_of(indexes, tmp_path)
    Runner(tasks, indexes, tmp_path, executor, Silent()).run()
    assert len(executor.begun) == 3
    assert [len(pd.read_csv(index.file)) for index in indexes] == [3, 2]


def test_what_is_stopped_goes_on_later(sweep: Sweep, tmp_path: Path) -> None:
    executor, index = Scripted({}), Index.of(sweep, tmp_path)
    tasks = tasks_of([index], tmp_path)
    attempt = Runner(tasks, [index], tmp_path, executor, Silent())
    attempt._stop.made = True
    with pytest.raises(RunInterrupted, match="the same command goes on"):
        attempt.run()
    assert executor.begun == []
    assert pd.read_csv(index.file)["status"].tolist() == ["waiting"] * 3


def test_memory_follows_what_like_points_needed(sweep: Sweep, tmp_path: Path) -> None:
    executor = Scripted({})
    run(sweep, tmp_path, executor)
    assert executor.needed == [900.0, 700.0, 700.0]


def test_time_left_is_corrected_by_what_is_done(sweep: Sweep) -> None:
    tasks = tasks_of([Index(Path("none"), sweep)], Path("none"))
    short, long, middle = tasks
    before = tasks.left_s()
    assert before == short.wall_time_s + long.wall_time_s + middle.wall_time_s
    tasks.workers = 3
    assert tasks.left_s() == long.wall_time_s
    short.entry.status, short.entry.wall_s, short.share = "done", 2 * short.wall_time_s, 1.0
    assert tasks.left_s() == pytest.approx(2 * long.wall_time_s)
