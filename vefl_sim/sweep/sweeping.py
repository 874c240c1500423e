"""A sweep from a script, as the command does it."""

from pathlib import Path

import pandas as pd

from vefl_sim.sweep.executors.executor import Executor
from vefl_sim.sweep.executors.local import LocalExecutor, cores
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Sweep
from vefl_sim.sweep.runner import Runner
from vefl_sim.sweep.tasks import PointTask, Tasks, tasks_of


class _Nobody:
    """Watches nothing."""

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        pass

    def ticked(self, tasks: Tasks) -> None:
        pass

    def stopping(self) -> None:
        pass


def run_sweep(
    sweep: Sweep, out: str | Path = "runs", *, workers: int | None = None, on: str | None = None
) -> pd.DataFrame:
    """Run the points that are not done, and return the index: one row per point with parameters, run and status.

    `workers` at once, one per core if not given; `on` names a Dask cluster, or "local-cluster". Points that fail have
    their error in the table.
    """
    out = Path(out)
    index = Index.of(sweep, out)
    tasks = tasks_of([index], out)
    out.mkdir(parents=True, exist_ok=True)
    Runner(tasks, [index], out, executor_for(on, workers or cores(), out), _Nobody()).run()
    return pd.read_csv(index.file)


def executor_for(on: str | None, workers: int, out: Path) -> Executor:
    """Those who run the points: processes here, or a cluster."""
    if on is None:
        return LocalExecutor(workers)
    from vefl_sim.sweep.executors.cluster import connected

    return connected(on, workers, out)
