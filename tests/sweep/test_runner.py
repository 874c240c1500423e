"""The order of points, and how failures, crashes and busy runs are handled, with a pool that follows a script."""

import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.sweep.conftest import InProcessPool
from vefl_sim.core.errors import BadInput
from vefl_sim.core.memory import slowdown
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.sweep import runner
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.job import Job, Report
from vefl_sim.sweep.points import Sweep, load_sweep
from vefl_sim.sweep.runner import Runner, SweepWatcher, Tasks


class ScriptedPool(InProcessPool):
    """Ends each job with the next state that `script` has for its digest, and with "done" after the last."""

    def __init__(self, **script: list[str]) -> None:
        super().__init__()
        self._script = script
        self.needed: list[float] = []
        self.closed = False

    @property
    def started(self) -> list[str]:
        return [job.digest for job in self.jobs]

    def start(self, job: Job, needed_mb: float) -> None:
        self.needed.append(needed_mb)
        super().start(job, needed_mb)

    def end(self, job: Job) -> Report:
        states: Any = self._script.get(job.digest) or ["done"]
        return Report(job.digest, states.pop(0), error="some, reason", peak_mb=700.0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """Three points of different length."""
    file = tmp_path / "s.toml"
    file.write_text('[run]\nname = "s"\n[learning]\nkind = "none"\n[sweep]\nrun.rounds = [1, 30, 20]\n')
    return load_sweep(file)


def digests(sweep: Sweep) -> list[str]:
    """Digests of the points, in their order."""
    return [point.digest for point in sweep.points]


def run(sweep: Sweep, out: Path, pool: ScriptedPool) -> pd.DataFrame:
    """Run a sweep; returns its index."""
    index = Index.of(sweep, out)
    Runner(Tasks.of([index], out), pool, SweepWatcher()).run()
    return pd.read_csv(index.file)


def test_the_longest_point_is_started_first(sweep: Sweep, tmp_path: Path) -> None:
    pool, (short, long, middle) = ScriptedPool(), digests(sweep)
    index = run(sweep, tmp_path, pool)
    assert pool.started == [long, middle, short]
    assert pool.closed
    assert index["status"].tolist() == ["done"] * 3
    assert pool.needed == [900.0, 700.0, 700.0]  # memory is estimated from similar points


@pytest.mark.parametrize(
    ("states", "attempts", "status"),
    [
        (["failed"], [False], "failed"),
        (["died"], [False, True], "done"),
        (["died"] * 3, [False, True, True], "failed"),
        (["stopped"], [False, True], "done"),  # without a request
        (["busy", "busy"], [False, False, False], "done"),  # another process works on it
    ],
)
def test_how_a_point_ends(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: list[str], attempts: list[bool], status: str
) -> None:
    """`attempts`: whether the point needs to run alone, because its process died before."""
    monkeypatch.setattr(runner, "_BUSY_S", 0.05)
    _, long, _ = digests(sweep)
    pool = ScriptedPool(**{long: [*states]})
    index = run(sweep, tmp_path, pool)
    needed = zip(pool.started, pool.needed, strict=True)
    assert [math.isinf(mb) for digest, mb in needed if digest == long] == attempts
    assert index["status"].tolist() == ["done", status, "done"]
    assert index["error"].tolist()[1] == "some, reason"


def test_an_index_that_cannot_be_written_is_reported_before_anything_runs(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweeps").touch()
    pool = ScriptedPool()
    with pytest.raises(BadInput, match="choose another --out"):
        run(sweep, tmp_path, pool)
    assert pool.started == []


def test_a_point_of_two_sweeps_is_run_once(sweep: Sweep, tmp_path: Path) -> None:
    other = Sweep("other", sweep.points[:2])
    indexes = [Index.of(each, tmp_path) for each in (sweep, other)]
    pool = ScriptedPool()
    Runner(Tasks.of(indexes, tmp_path), pool, SweepWatcher()).run()
    assert len(pool.started) == 3
    assert [len(pd.read_csv(index.file)) for index in indexes] == [3, 2]


def test_remaining_time(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks.of([Index(Path("none"), sweep)], Path("none"))
    short, long, middle = tasks
    assert tasks.left_s() == short.wall_time_s + long.wall_time_s + middle.wall_time_s
    tasks.workers = 3
    assert tasks.left_s() == long.wall_time_s
    short.status, short.cpu_s, short.share = "done", 2 * short.wall_time_s, 1.0  # of an earlier session
    monkeypatch.setattr("vefl_sim.core.memory.cores", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (6.0, 6.0, 6.0))  # of other processes
    tasks.slowdown = slowdown(2)
    assert tasks.left_s() == pytest.approx(4 * 2 * long.wall_time_s)


def test_a_compilation_is_not_counted_into_the_speed(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tenth takes 100 s, because it compiles, and the others 2 s each."""
    tasks = Tasks.of([Index(Path("none"), sweep)], Path("none"))
    [_, long, _] = tasks
    now = iter([100.0, 102.0, 104.0])
    monkeypatch.setattr("vefl_sim.sweep.runner.time.monotonic", lambda: next(now))
    long.mark_running()
    for share in (0.0, 0.1, 0.1, 0.2, 0.3):
        long.advance(share)
    assert tasks.factor == pytest.approx(20.0 / long.wall_time_s)


def test_a_part_of_the_script_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.toml"
    tables = '[run]\nname = "s"\n[mac]\nscheduler = "__main__:own"\n[learning]\nkind = "none"\n'
    file.write_text(f"{tables}[sweep]\nseeds = [1]\n")
    monkeypatch.setattr(sys.modules["__main__"], "own", edf, raising=False)
    pool = ScriptedPool()
    with pytest.raises(BadInput, match=r'mac.scheduler = "__main__:own" is in the script, .* move the part'):
        run(load_sweep(file), tmp_path, pool)
    assert pool.started == []
