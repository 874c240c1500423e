"""A Dask cluster: one that is there, or one on this machine.

A worker of the cluster starts a process for the point, as it is done without a cluster, so results are the same. When a
worker dies, Dask gives its point to another, which goes on from the last checkpoint; so all must see the same folders.
"""

import logging
import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from uuid import uuid4

from vefl_sim.core.errors import BadInput, RunFailed
from vefl_sim.core.files import writing
from vefl_sim.records.identity import package_digest
from vefl_sim.sweep.executors.child import work
from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report

LOCAL = "local-cluster"
_PATIENCE_S = 5.0  # for somebody to answer at an address


def connected(on: str, workers: int, out: Path) -> "ClusterExecutor":
    """The cluster that `--on` names; all its workers must have this vefl_sim and see the folder of the runs."""
    try:
        import distributed
    except ModuleNotFoundError:
        raise BadInput(f"--on {on} needs Dask: pip install 'vefl_sim[cluster]'.") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a worker that dies is our news to tell
    cluster = None
    try:
        if on == LOCAL:
            with _deaf():
                cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50
                )
        client = distributed.Client(cluster or on, timeout=_PATIENCE_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        message = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise BadInput(f"--on {on}: no cluster answers there ({message}): start one, or use --on {LOCAL}.") from None
    executor = ClusterExecutor(client, cluster, out.resolve())
    try:
        _require_same(client, on, out)
    except BaseException:
        executor.close()
        raise
    return executor


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started meanwhile do not hear Ctrl-C, which is for us: we let the points save first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _require_same(client: Any, on: str, out: Path) -> None:
    """Workers that come later are asked by the job itself."""
    try:
        answers = client.run(_answer, str(out.resolve()))
    except Exception as error:
        raise BadInput(f"--on {on}: its workers cannot use vefl_sim ({error}): install this version there.") from None
    for worker, (source, sees) in answers.items():
        if source != package_digest():
            raise BadInput(f"--on {on}: {worker} has another version of vefl_sim: install this one there.")
        if not sees:
            raise BadInput(f"--on {on}: {worker} does not see {out.resolve()}: use a folder that all machines share.")


def _answer(out: str) -> tuple[str, bool]:
    """Of a worker: which sources it has, and whether it sees the folder."""
    return package_digest(), os.path.isdir(out)


def _work_there(job: Job, topic: str) -> dict[str, Any]:
    """On a worker of the cluster; a file that all see tells it to stop."""
    from distributed import get_worker

    worker, stop = get_worker(), _stop_file(Path(job.out), topic)

    def tell(report: Report) -> None:
        worker.log_event(topic, asdict(report))

    tell(Report(job.digest))
    return asdict(work(job, tell, stop.exists))


def _stop_file(out: Path, topic: str) -> Path:
    return out / f".{topic}"


class ClusterExecutor:
    """All jobs are given to the scheduler of the cluster, the first with the highest priority."""

    def __init__(self, client: Any, cluster: Any, out: Path) -> None:
        self._client, self._cluster = client, cluster
        self._reports, self._topic = Queue[Report](), f"stop-{uuid4().hex}"
        self._stop, self._address = _stop_file(out, self._topic), client.scheduler.address
        self._futures: dict[str, Any] = {}
        self._given = 0
        client.subscribe_topic(self._topic, lambda event: self._reports.put(Report.of(event[1])))

    def __str__(self) -> str:
        found = self._workers()
        where = f"{len(found)} worker{'s' if len(found) != 1 else ''} at {self._address}"
        pids = [str(worker["pid"]) for worker in found.values() if "pid" in worker]
        return f"{where} (processes {', '.join(pids)})" if self._cluster and pids else where

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Dask raises all sorts of things when its scheduler is gone."""
        try:
            yield
        except Exception as error:
            raise RunFailed(
                f"The cluster at {self._address} does not answer any more ({type(error).__name__}): start it again, "
                "and the same command goes on."
            ) from error

    def _workers(self) -> dict[str, Any]:
        with self._answering():
            found = self._client.scheduler_info(n_workers=-1)["workers"]
        if self._cluster:
            for number, nanny in self._cluster.workers.items():
                for worker in found.values():
                    if worker["id"] == number or worker["name"] == number:
                        worker["pid"] = nanny.pid
        return dict(found)

    def size(self) -> int:
        """Threads of all workers that are there now."""
        return max(1, sum(int(worker["nthreads"]) for worker in self._workers().values()))

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """The scheduler has a queue."""
        return True

    def begin(self, job: Job, needed_mb: float) -> None:
        """Whenever a worker is free."""
        self._given += 1
        with self._answering():
            future = self._client.submit(_work_there, job, self._topic, pure=False, priority=-self._given)
            self._futures[job.digest] = future
            future.add_done_callback(lambda done: self._reports.put(Report(job.digest, outcome=_outcome(done))))

    def poll(self, patience_s: float) -> Report | None:
        """From any of them."""
        try:
            return self._reports.get(timeout=patience_s)
        except Empty:
            return None

    def stop(self) -> None:
        """Those that wait are taken back, the others stop after their rounds."""
        with writing(self._stop):
            self._stop.touch()
        with self._answering():
            begun = {key for keys in self._client.processing().values() for key in keys}
            self._client.cancel([future for future in self._futures.values() if future.key not in begun])

    def close(self) -> None:
        """Leave the cluster, and end it if it was started for this; who has not stopped yet still shall."""
        over = all(future.done() for future in self._futures.values())
        with suppress(Exception):  # one that has died does not answer
            self._client.close()
        if self._cluster:
            with suppress(Exception):
                self._cluster.close()
        if over or self._cluster:
            self._stop.unlink(missing_ok=True)


def _outcome(future: Any) -> JobOutcome:
    """By whatever way it ended. One that is cancelled was stopped by us, or the cluster is gone."""
    try:
        if future.cancelled():
            return JobOutcome("stopped", error="the cluster has dropped it")
        if future.status == "finished":
            return JobOutcome(**future.result())
        return JobOutcome("failed", error=f"the cluster gave it up: {future.exception()}")
    except Exception as error:
        return JobOutcome("failed", error=f"the cluster gave it up: {type(error).__name__}: {error}")
