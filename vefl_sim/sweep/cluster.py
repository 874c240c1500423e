"""Runs points on a Dask cluster: an existing one, or one that is started on this machine.

A worker of the cluster starts a process for each point, as on this machine, so results are the same. When a worker
dies, Dask gives its point to another one, which resumes it from its last checkpoint; so all workers must see the same
folders.
"""

import logging
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from vefl_sim.core.errors import BadInput, RunFailed, first_line
from vefl_sim.core.files import explain_write_errors
from vefl_sim.sweep.job import Job, Pool, Report, run_in_process

LOCAL = "local-cluster"
_CONNECT_S = 5.0  # longest wait for the scheduler at an address
_NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def connect(on: str, workers: int, out: Path) -> "ClusterPool":
    """Connect to the cluster that `--on` names. Each job checks whether its worker has this vefl_sim and sees `out`."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we report workers that die ourselves
    try:
        import distributed

        cluster = _local_cluster(workers) if on == LOCAL else None
    except ImportError as error:  # of Dask, or of what makes certificates
        raise BadInput(f"--on {on} needs Dask ({first_line(error)}): pip install 'vefl_sim[cluster]'.") from None
    try:
        client = distributed.Client(cluster or on, timeout=_CONNECT_S)  # type: ignore[no-untyped-call]
    except Exception as error:  # what answers may be anything, for example a web server
        reason = first_line(error).rstrip(".") or type(error).__name__
        raise BadInput(f"--on {on}: no cluster answers there ({reason}): start one, or use --on {LOCAL}.") from None
    return ClusterPool(client, cluster, out.resolve())


def _local_cluster(workers: int) -> Any:
    """Start a cluster on this machine that only this process can use.

    Whoever reaches a scheduler can run code as its user, and other users of the machine reach 127.0.0.1. So all
    connections need a certificate that exists only in the memory of these processes, and no page is served: Dask's
    HTTP servers also run without a dashboard.
    """
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    certificates = Security.temporary()  # type: ignore[no-untyped-call]
    is_main = threading.current_thread() is threading.main_thread()
    # Its processes ignore Ctrl-C, because this process handles it and lets the points save first.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
    try:
        with dask.config.set(_NO_PAGES):
            return LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                silence_logs=50,
                security=certificates,
            )
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)


def _run_on_worker(job: Job, topic: str, stop: Path) -> dict[str, Any]:
    """On a worker: run a job; a file in the shared folder makes it stop."""
    from distributed import get_worker

    worker = get_worker()

    def send(report: Report) -> None:
        worker.log_event(topic, asdict(report))

    send(Report(job.digest))
    return asdict(run_in_process(job, send, stop.exists))


class ClusterPool(Pool):
    """Submits all jobs to the scheduler of the cluster, the first with the highest priority."""

    def __init__(self, client: Any, cluster: Any, out: Path) -> None:
        super().__init__(1)
        self._client, self._cluster, self._address = client, cluster, client.scheduler.address
        self._topic = f"stop-{uuid4().hex}"
        self._stop_file = out / f".{self._topic}"
        self._futures: list[Any] = []
        client.subscribe_topic(self._topic, lambda event: self._reports.put(Report(**event[1])))

    def __str__(self) -> str:
        return f"the cluster at {self._address}"

    @contextmanager
    def _requiring_scheduler(self) -> Iterator[None]:
        """Raise RunFailed if the scheduler is gone, for which Dask has many exceptions."""
        try:
            yield
        except Exception as error:
            raise RunFailed(
                f"The cluster at {self._address} no longer answers ({type(error).__name__}): start it again, "
                "and the same command continues the sweep."
            ) from error

    def size(self) -> int:
        """Number of threads of all workers that are connected now."""
        with self._requiring_scheduler():
            return max(1, sum(dict[str, int](self._client.nthreads()).values()))

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Always, because the scheduler of the cluster queues jobs, and can ask for more workers."""
        return True

    def start(self, job: Job, needed_mb: float) -> None:
        """Submit a job, which starts when a worker is free."""
        arguments, priority = (job, self._topic, self._stop_file), -len(self._futures)
        with self._requiring_scheduler():
            future = self._client.submit(_run_on_worker, *arguments, pure=False, priority=priority)
            self._futures.append(future)
            future.add_done_callback(lambda done: self._reports.put(_end(job, done)))

    def stop(self) -> None:
        """Cancel the jobs that wait, and ask the others to save after their current round and end."""
        with explain_write_errors(self._stop_file):
            self._stop_file.touch()
        with self._requiring_scheduler():
            running = {key for keys in self._client.processing().values() for key in keys}
            self._client.cancel([future for future in self._futures if future.key not in running])

    def close(self) -> None:
        """Disconnect from the cluster, and end it if we started it; the stop file stays for jobs that still run."""
        all_ended = all(future.done() for future in self._futures)
        for connection in filter(None, (self._client, self._cluster)):
            with suppress(Exception):  # a cluster that has died does not answer
                connection.close()
        if all_ended or self._cluster:
            self._stop_file.unlink(missing_ok=True)


def _end(job: Job, future: Any) -> Report:
    """The report of the end of a job; one that is cancelled was stopped by us, or the cluster is gone."""
    try:
        if future.cancelled():
            return Report(job.digest, "stopped", error="the cluster cancelled it")
        return Report(**future.result())
    except Exception as error:
        return Report(job.digest, "failed", error=f"the cluster could not run it: {type(error).__name__}: {error}")
