"""Run one point in a process of its own: its job, its reports, and waiting for its end.

A process per point costs two seconds, but it returns all its memory, a crash affects no other point, and the number of
threads is limited before anything is imported.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal

JobState = Literal["done", "failed", "stopped", "busy", "died"]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_CHECK_INTERVAL_S = 0.5  # between two checks whether to stop


@dataclass(frozen=True)
class Job:
    """One point, in the form that is sent to another process or machine."""

    digest: str  # of the point
    toml: str  # the experiment, with all defaults
    out: str  # parent of the run directories
    cwd: str  # folder from which files and parts of the experiment are found
    source: str  # digest of our sources, so that results of different versions are not mixed
    fresh: bool = False  # run it in a new directory, even if there is a run of this point
    run: str = ""  # name of the run directory to resume, if an earlier attempt with `fresh` has created one


@dataclass(frozen=True)
class Report:
    """Progress of a job or, with a state, its end.

    `busy`: another process works on the run; `died`: the process ended without a report of its end.
    """

    digest: str
    state: JobState | None = None  # None while it runs
    run: str = ""  # name of the run directory, if known
    error: str = ""
    share: float | None = None  # of the rounds that are done, if known
    process: int = 0  # id of the worker, if known
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
            ended = threading.Event()
            checks = (child, ended, should_stop, should_kill)
            threading.Thread(target=_forward_stop, args=checks, daemon=True).start()
            try:
                return _last_report(child, on_report) or Report(job.digest, "died", error=_death(child, errors))
            finally:
                ended.set()
                child.kill()  # no effect if it has ended
    except (OSError, ValueError) as error:  # no process or no temporary file can be created, or a report is cut off
        return Report(job.digest, "failed", error=f"its process cannot be run ({error})")


def _start(job: Job, errors: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-m", "vefl_sim.sweep.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=job.cwd,
        env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": _python_path()},
        text=True,
        start_new_session=True,  # Ctrl-C reaches only this process, which then asks the child to stop
    )
    _write(child, json.dumps(asdict(job)))
    return child


def _python_path() -> str:
    """The folders in which this process finds modules, so that the child finds the same ones."""
    return os.pathsep.join(path for path in sys.path if path and Path(path).is_dir())


def _write(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin
    try:
        child.stdin.write(line + "\n")
        child.stdin.flush()
    except (OSError, ValueError):
        pass  # the child has ended, and its output says how


def _forward_stop(
    child: subprocess.Popen[str],
    ended: threading.Event,
    should_stop: Callable[[], bool],
    should_kill: Callable[[], bool],
) -> None:
    """Until the child has ended, ask it to stop or kill it as the checks demand."""
    stopping = False
    while not ended.wait(_CHECK_INTERVAL_S):
        if should_kill():
            child.kill()
        elif not stopping and should_stop():
            stopping = True
            _write(child, "stop")


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
