"""The order of points, and how failures, crashes and busy runs are handled, with an executor that follows a script."""

import math
import sys
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from vefl_sim.cli.progress import PipedConsole
from vefl_sim.cli.sweep_progress import SweepProgress
from vefl_sim.core.errors import BadInput, RunInterrupted
from vefl_sim.core.memory import slowdown
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.sweep import runner
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Sweep, load_sweep
from vefl_sim.sweep.runner import Runner, SweepWatcher
from vefl_sim.sweep.tasks import PointTask, Tasks, tasks_of


class ScriptedExecutor:
    """Ends each job with the next outcome that `script` has for its digest, and with "done" after the last."""

    def __init__(self, script: dict[str, list[JobOutcome]], workers: int = 1) -> None:
        self._script, self._workers = script, workers
        self._reports: list[Report] = []
        self.jobs: list[Job] = []
        self.needed: list[float] = []
        self.closed = self.stopped = False

    def __str__(self) -> str:
        return "a script"

    def size(self) -> int:
        return self._workers

    @property
    def started(self) -> list[str]:
        return [job.digest for job in self.jobs]

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        return len(running) < self._workers

    def start(self, job: Job, needed_mb: float) -> None:
        self.jobs.append(job)
        self.needed.append(needed_mb)
        outcomes = self._script.get(job.digest, [])
        outcome = outcomes.pop(0) if outcomes else JobOutcome("done", peak_mb=700.0)
        halfway = Report(job.digest, share=0.5, run=f"run-{len(self.jobs)}")
        self._reports += [Report(job.digest), halfway, Report(job.digest, outcome=outcome)]

    def poll(self, timeout_s: float) -> Report | None:
        return self._reports.pop(0) if self._reports else None

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.closed = True


class StatusRecorder(SweepWatcher):
    """A watcher that records the statuses of points."""

    def __init__(self) -> None:
        self.statuses: list[tuple[str, str]] = []

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        self.statuses.append((task.point.title, task.entry.status))

    def ticked(self, tasks: Tasks) -> None:
        assert tasks.left_s() >= 0


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """Three points of different length."""
    file = tmp_path / "s.toml"
    file.write_text('[run]\nname = "s"\n[learning]\nkind = "none"\n[sweep]\nrun.rounds = [1, 30, 20]\n')
    return load_sweep(file)


def digests(sweep: Sweep) -> list[str]:
    """Digests of the points, in their order."""
    return [point.digest for point in sweep.points]


def run(sweep: Sweep, out: Path, executor: ScriptedExecutor) -> tuple[Tasks, pd.DataFrame]:
    """Run a sweep; returns its tasks and its index."""
    index = Index.of(sweep, out)
    tasks = tasks_of([index], out)
    Runner(tasks, [index], out, executor, StatusRecorder()).run()
    return tasks, pd.read_csv(index.file)


def test_the_longest_point_is_started_first(sweep: Sweep, tmp_path: Path) -> None:
    executor, (short, long, middle) = ScriptedExecutor({}), digests(sweep)
    tasks, index = run(sweep, tmp_path, executor)
    assert executor.started == [long, middle, short]
    assert executor.closed
    assert len(tasks.having("done")) == 3
    assert index["status"].tolist() == ["done"] * 3
    assert index["run.rounds"].tolist() == [1, 30, 20]


def test_a_point_that_fails_does_not_stop_the_rest(sweep: Sweep, tmp_path: Path) -> None:
    short, long, _ = digests(sweep)
    _, index = run(sweep, tmp_path, ScriptedExecutor({long: [JobOutcome("failed", error="some, reason")]}))
    assert index["status"].tolist() == ["done", "failed", "done"]
    assert index["error"].tolist()[1] == "some, reason"
    executor = ScriptedExecutor({})
    run(sweep, tmp_path, executor)
    assert set(executor.started) == {*digests(sweep)}  # there are no run directories, so none counts as done
    assert short in executor.started


def test_a_point_whose_process_dies_is_tried_again_alone_and_fails_in_the_end(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    executor = ScriptedExecutor({long: [JobOutcome("died", error="SIGKILL")] * 3})
    tasks, index = run(sweep, tmp_path, executor)
    assert executor.started.count(long) == 3
    started = zip(executor.started, executor.needed, strict=True)
    assert [math.isinf(needed) for digest, needed in started if digest == long] == [
        False, True, True,
    ]  # fmt: skip
    assert [task.point.digest for task in tasks.having("failed")] == [long]
    assert index["error"].tolist()[1] == "SIGKILL"


def test_a_point_whose_process_dies_once_is_done(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    tasks, _ = run(sweep, tmp_path, ScriptedExecutor({long: [JobOutcome("died")]}))
    assert len(tasks.having("done")) == 3


def test_a_fresh_run_whose_process_dies_is_resumed(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    executor, index = ScriptedExecutor({long: [JobOutcome("died")]}), Index.of(sweep, tmp_path)
    tasks = tasks_of([index], tmp_path)
    tasks.start_afresh()
    Runner(tasks, [index], tmp_path, executor, StatusRecorder()).run()
    assert all(job.fresh for job in executor.jobs)
    assert [job.run for job in executor.jobs if job.digest == long] == ["", "run-1"]
    assert [job.run for job in executor.jobs if job.digest != long] == ["", ""]


def test_a_point_that_another_process_works_on_is_tried_later(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_BUSY_S", 0.05)
    _, long, _ = digests(sweep)
    executor = ScriptedExecutor({long: [JobOutcome("busy"), JobOutcome("busy")]})
    tasks, _ = run(sweep, tmp_path, executor)
    assert executor.started[-1] == long
    assert len(tasks.having("done")) == 3


def test_a_point_that_stops_without_a_request_is_tried_again(sweep: Sweep, tmp_path: Path) -> None:
    _, long, _ = digests(sweep)
    executor = ScriptedExecutor({long: [JobOutcome("stopped")]})
    tasks, _ = run(sweep, tmp_path, executor)
    assert executor.started.count(long) == 2
    assert len(tasks.having("done")) == 3


def test_an_index_that_cannot_be_written_is_reported_before_anything_runs(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweeps").touch()
    executor = ScriptedExecutor({})
    with pytest.raises(BadInput, match="choose another --out"):
        run(sweep, tmp_path, executor)
    assert executor.started == []


def test_a_point_of_two_sweeps_is_run_once(sweep: Sweep, tmp_path: Path) -> None:
    other = Sweep("other", sweep.points[:2])
    indexes = [Index.of(each, tmp_path) for each in (sweep, other)]
    executor, tasks = ScriptedExecutor({}), tasks_of(indexes, tmp_path)
    Runner(tasks, indexes, tmp_path, executor, StatusRecorder()).run()
    assert len(executor.started) == 3
    assert [len(pd.read_csv(index.file)) for index in indexes] == [3, 2]


def test_a_stopped_sweep_keeps_its_points_waiting(sweep: Sweep, tmp_path: Path) -> None:
    executor, index = ScriptedExecutor({}), Index.of(sweep, tmp_path)
    tasks = tasks_of([index], tmp_path)
    stopped_runner = Runner(tasks, [index], tmp_path, executor, StatusRecorder())
    stopped_runner._stop.made = True
    with pytest.raises(RunInterrupted, match="the same command continues"):
        stopped_runner.run()
    assert executor.started == []
    assert pd.read_csv(index.file)["status"].tolist() == ["waiting"] * 3


def test_memory_is_estimated_from_similar_points(sweep: Sweep, tmp_path: Path) -> None:
    executor = ScriptedExecutor({})
    run(sweep, tmp_path, executor)
    assert executor.needed == [900.0, 700.0, 700.0]


def test_remaining_time_is_corrected_by_finished_points(sweep: Sweep) -> None:
    tasks = tasks_of([Index(Path("none"), sweep)], Path("none"))
    short, long, middle = tasks
    before = tasks.left_s()
    assert before == short.wall_time_s + long.wall_time_s + middle.wall_time_s
    tasks.workers = 3
    assert tasks.left_s() == long.wall_time_s
    short.entry.status, short.cpu_s, short.share = "done", 2 * short.wall_time_s, 1.0
    assert tasks.left_s() == pytest.approx(2 * long.wall_time_s)


def test_the_first_estimate_takes_other_processes_into_account(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = tasks_of([Index(Path("none"), sweep)], Path("none"))
    alone = tasks.left_s()
    monkeypatch.setattr("vefl_sim.core.memory.cores", lambda: 2)
    for load, factor in ((0.0, 1.0), (2.0, 2.0), (6.0, 4.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, load, load))
        tasks.slowdown = slowdown(2)
        assert tasks.left_s() == pytest.approx(factor * alone)


def test_a_compilation_is_not_counted_into_the_speed(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tenth takes 100 s, because it compiles, and the others 2 s each."""
    tasks = tasks_of([Index(Path("none"), sweep)], Path("none"))
    [_, long, _] = tasks
    now = iter([100.0, 102.0, 104.0])
    monkeypatch.setattr("vefl_sim.sweep.tasks.time.monotonic", lambda: next(now))
    long.mark_running()
    for share in (0.0, 0.1, 0.1, 0.2, 0.3):
        long.advance(share)
    assert long.pace_s == pytest.approx(20.0)
    assert tasks.factor == pytest.approx(20.0 / long.wall_time_s)


def test_the_remaining_time_does_not_jump(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    progress = SweepProgress(PipedConsole(), None)
    shown = []
    for now_s, left_s in ((1000.0, 200.0), (1001.0, 18_000.0), (1002.0, 1600.0), (1400.0, 1200.0), (1401.0, 0.0)):
        monkeypatch.setattr("vefl_sim.cli.sweep_progress.time.monotonic", lambda now_s=now_s: now_s)
        shown.append(progress._left(SimpleNamespace(left_s=lambda left_s=left_s: left_s)))
    assert shown[0] == "3:20"
    assert shown[1] < "8:30"
    assert shown[-1] == "0:00"
    assert abs(int(shown[3].split(":")[0]) - 20) <= 1


def test_a_part_of_the_script_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.toml"
    tables = '[run]\nname = "s"\n[mac]\nscheduler = "__main__:own"\n[learning]\nkind = "none"\n'
    file.write_text(f"{tables}[sweep]\nseeds = [1]\n")
    monkeypatch.setattr(sys.modules["__main__"], "own", edf, raising=False)
    executor = ScriptedExecutor({})
    with pytest.raises(
        BadInput, match=r'mac.scheduler = "__main__:own" is in the script, .* move the part to a module'
    ):
        run(load_sweep(file), tmp_path, executor)
    assert executor.started == []
