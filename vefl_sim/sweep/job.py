"""Runs points on the cores of this machine, each in a process of its own: jobs, reports, processes and their pool.

A process per point costs two seconds, but it returns all its memory, a crash affects no other point, and the number of
threads is limited before anything is imported. The process reads its job from its input and writes reports to its
output, as lines of JSON. A line "stop" asks it to save and end. When its input ends, the process that started it is
gone, and it ends at once: the run is kept up to its last checkpoint, and its lock is released.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, Literal, TextIO

from vefl_sim.core.errors import BadInput, NotResumable, RunInterrupted, RunLocked, RunNotFound, VeflError
from vefl_sim.core.files import first_free
from vefl_sim.core.memory import fits_in_memory, used_mb
from vefl_sim.core.stopping import stopping_at_once
from vefl_sim.experiment.toml import validated
from vefl_sim.records.identity import Identity, package_digest
from vefl_sim.records.run_directory import Run, existing_run

JobState = Literal["done", "failed", "stopped", "busy", "died"]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_INTERVAL_S = 0.5  # between two checks whether to stop, and between two reports


@dataclass(frozen=True)
class Job:
    """One point, in the form that is sent to another process or machine."""

    digest: str  # of the point
    toml: str  # the experiment, with all defaults
    out: str  # parent of the run directories
    cwd: str  # folder from which files and parts of the experiment are found
    source: str  # digest of our sources, so that results of different versions are not mixed
    fresh: bool = False  # run it in a new directory, even if there is a run of this point


@dataclass(frozen=True)
class Report:
    """Progress of a job or, with a state, its end.

    `busy`: another process works on the run; `died`: the process ended without a report of its end.
    """

    digest: str
    state: JobState | None = None  # None while it runs
    run: str = ""  # name of the run directory of a job that is done
    error: str = ""
    share: float | None = None  # of the rounds that are done, if known
    process: int = 0  # id of the process, if known
    warning: str = ""  # a sentence about something that went wrong and does not stop the run
    peak_mb: float = 0.0


def run_in_process(
    job: Job,
    on_report: Callable[[Report], None],
    should_stop: Callable[[], bool],
    should_kill: Callable[[], bool] = lambda: False,
) -> Report:
    """Run a job to its end, or until `should_stop` makes it save and end, or `should_kill` kills it."""
    for folder in (job.cwd, job.out):
        if not os.path.isdir(folder):
            error = f"{folder} does not exist: the worker must see the same folders as the sweep."
            return Report(job.digest, "failed", error=error)
    try:
        with tempfile.TemporaryFile() as errors, _start(job, errors.fileno()) as child:
            threading.Thread(target=_forward_stop, args=(child, should_stop, should_kill), daemon=True).start()
            try:
                return _last_report(child, on_report) or Report(job.digest, "died", error=_death(child, errors))
            finally:
                child.kill()  # no effect if it has ended
    except (OSError, ValueError) as error:  # no process or no temporary file can be created, or a report is cut off
        return Report(job.digest, "failed", error=f"its process cannot be run ({error})")


def _start(job: Job, errors: int) -> subprocess.Popen[str]:
    modules = os.pathsep.join(path for path in sys.path if path and Path(path).is_dir())
    child = subprocess.Popen(
        [sys.executable, "-m", "vefl_sim.sweep.job"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=job.cwd,
        env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": modules},
        text=True,
        start_new_session=True,  # Ctrl-C reaches only this process, which then asks the child to stop
    )
    _write(child, json.dumps(asdict(job)))
    return child


def _write(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin
    with suppress(OSError, ValueError):  # the child has ended, and its output says how
        child.stdin.write(line + "\n")
        child.stdin.flush()


def _forward_stop(
    child: subprocess.Popen[str], should_stop: Callable[[], bool], should_kill: Callable[[], bool]
) -> None:
    """Until the child has ended, ask it to stop or kill it as the checks demand."""
    stopping = False
    while child.poll() is None:
        if should_kill():
            child.kill()
        elif not stopping and should_stop():
            stopping = True
            _write(child, "stop")
        time.sleep(_INTERVAL_S)


def _last_report(child: subprocess.Popen[str], on_report: Callable[[Report], None]) -> Report | None:
    """Pass on the reports of the child; returns the one of its end, or None if it ended without one."""
    assert child.stdout
    for line in child.stdout:
        report = Report(**json.loads(line))
        if report.state:
            return report
        on_report(report)
    return None


def _death(child: subprocess.Popen[str], errors: IO[bytes]) -> str:
    """How a child ended that did not report it."""
    code = child.wait()
    if code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}" + ", perhaps because memory ran out" * (name == "SIGKILL")
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"its process ended with code {code}: {lines[-1] if lines else 'it printed nothing'}"


class Pool:
    """Runs as many jobs at once as cores and memory allow; a thread per process puts its reports into one queue.

    Every job that is started ends with exactly one report with a state.
    """

    def __init__(self, workers: int) -> None:
        self._workers, self._reports = workers, Queue[Report]()
        self._needed_mb: dict[str, float] = {}  # by digest
        self._process: dict[str, int] = {}  # process id by digest
        self._stop, self._kill = threading.Event(), threading.Event()

    def __str__(self) -> str:
        return f"{self._workers} process{'es' if self._workers > 1 else ''} on this machine, one thread each"

    def size(self) -> int:
        """Number of points that can run at once; it may change."""
        return self._workers

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether another job that needs this much memory can start beside those that run, given by their digests."""
        needed_and_used = [(self._needed_mb[digest], used_mb(self._process.get(digest, 0))) for digest in running]
        return len(running) < self._workers and fits_in_memory(needed_mb, needed_and_used)

    def start(self, job: Job, needed_mb: float) -> None:
        """Start a job."""
        self._needed_mb[job.digest] = needed_mb
        self._process.pop(job.digest, None)
        self._reports.put(Report(job.digest))
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job) -> None:
        self._reports.put(run_in_process(job, self._reports.put, self._stop.is_set, self._kill.is_set))

    def poll(self, timeout_s: float) -> Report | None:
        """The next report of any job; None if there is none within this time."""
        try:
            report = self._reports.get(timeout=timeout_s)
        except Empty:
            return None
        if report.process:
            self._process[report.digest] = report.process
        return report

    def stop(self) -> None:
        """Ask all jobs to save after their current round and end."""
        self._stop.set()

    def close(self) -> None:
        """End all jobs at once and release the workers."""
        self._kill.set()


class ReportWriter:
    """A watcher of the run that writes a report on its progress at most every half second, and warnings at once."""

    def __init__(self, output: TextIO, digest: str) -> None:
        self._output, self._digest = output, digest
        self._rounds, self._last_s = 1, 0.0

    def preparing(self, experiment: Any) -> None:
        """Note the number of rounds, and report the start."""
        self._rounds = experiment.rounds
        self._progress(0)

    def resuming(self, checkpoint: Any, notes: list[str]) -> None:
        """Report the share of the rounds that the checkpoint contains."""
        self._progress(checkpoint.round - 1)

    def round(self, report: Any) -> None:
        """Report the share of the rounds that are done."""
        if time.monotonic() - self._last_s >= _INTERVAL_S:
            self._progress(report.round)

    def _progress(self, rounds: int) -> None:
        self._last_s = time.monotonic()
        self.write(share=min(rounds / self._rounds, 1.0), process=os.getpid())

    def write(self, **fields: Any) -> None:
        """Write a report with these fields."""
        print(json.dumps({"digest": self._digest, **fields}), file=self._output, flush=True)


def run_job(job: Job, writer: ReportWriter) -> tuple[JobState, str, str]:
    """Run a job in this process; returns its state, the name of its run if it is done, and the error."""
    from vefl_sim.simulation.watcher import warnings_told

    try:
        # Signals stop it at once, until the run itself handles them and can save.
        with warnings_told(lambda sentence: writer.write(warning=sentence)), stopping_at_once():
            return "done", _simulate(job, writer).path.name, ""
    except RunLocked as error:
        return "busy", "", str(error)
    except (KeyboardInterrupt, RunInterrupted):
        return "stopped", "", ""
    except (VeflError, OSError, MemoryError) as error:
        return "failed", "", str(error) or type(error).__name__
    except (Exception, SystemExit) as error:
        return "failed", "", f"{type(error).__name__}: {error}"


def _simulate(job: Job, writer: ReportWriter) -> Run:
    """Run the experiment, or resume it; a damaged run is renamed and run again."""
    from vefl_sim.simulation.run import simulate  # slow to import

    if package_digest() != job.source:
        raise BadInput(f"The worker has other sources of vefl_sim ({package_digest()}, not {job.source}): update it.")
    experiment, out = validated(tomllib.loads(job.toml)), Path(job.out)
    learning = experiment.learning.model_copy(update={"threads": 1})  # other points use the other cores
    experiment = experiment.model_copy(update={"learning": learning})
    while True:
        before = None if job.fresh else existing_run(Identity(experiment), out)
        try:
            run = simulate(experiment, out=out, fresh=job.fresh, watcher=writer)
            run.require_complete()
            return run
        except (NotResumable, RunNotFound):
            if before is None:
                raise
            # Kept for inspection, under a name that is not taken for a run of this point.
            before.path.rename(first_free(before.path.with_name(f"{before.path.name}.damaged{n}") for n in count(1)))


def _wait_for_stop() -> None:
    """Stop the run at a line "stop", and end the process when its input ends."""
    for line in sys.stdin:
        if line.strip() == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)


def main() -> None:
    """Run the job on standard input, and report its end, also if it fails."""
    job = Job(**json.loads(sys.stdin.readline()))
    with os.fdopen(os.dup(1), "w") as reports:
        os.dup2(2, 1)  # user-defined parts may print; the pipe is for reports only
        threading.Thread(target=_wait_for_stop, daemon=True).start()
        writer = ReportWriter(reports, job.digest)
        state, run, error = run_job(job, writer)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak_mb = round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
        writer.write(state=state, run=run, error=error, peak_mb=peak_mb)


if __name__ == "__main__":
    main()
