"""Run a sweep from Python, as the command `sweep` does."""

from pathlib import Path

import pandas as pd

from vefl_sim.core.memory import cores
from vefl_sim.sweep.executors.executor import Executor
from vefl_sim.sweep.executors.local import LocalExecutor
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Sweep
from vefl_sim.sweep.runner import Runner, SweepWatcher
from vefl_sim.sweep.tasks import Tasks, tasks_of


def run_sweep(
    sweep: Sweep, out: str | Path = "runs", *, workers: int | None = None, on: str | None = None
) -> pd.DataFrame:
    """Run the points that are not done, and return the index: one row per point with parameters, run and status.

    `workers`: points to run at once, by default one per core; `on`: address of a Dask cluster, or "local-cluster".
    A point that fails does not stop the others; its row contains the error.
    """
    index = Index.of(sweep, Path(out))
    run_quietly(index, Path(out), executor_for(on, workers or cores(), Path(out)))
    return pd.read_csv(index.file)


def run_quietly(index: Index, out: Path, executor: Executor, *, fresh: bool = False) -> Tasks:
    """Run the points of a sweep that are not done, or with `fresh` all of them, without a progress display."""
    tasks = tasks_of([index], out)
    if fresh:
        tasks.start_afresh()
    out.mkdir(parents=True, exist_ok=True)
    Runner(tasks, [index], out, executor, SweepWatcher()).run()
    return tasks


def executor_for(on: str | None, workers: int, out: Path) -> Executor:
    """The executor for the points: processes on this machine, or the Dask cluster that `on` names."""
    if on is None:
        return LocalExecutor(workers)
    from vefl_sim.sweep.executors.cluster import connect

    return connect(on, workers, out)
