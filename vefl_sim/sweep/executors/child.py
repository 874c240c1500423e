"""Run one point in a child process and wait for it.

A process per point costs two seconds, but it returns all its memory, a crash affects no other point, and the number of
threads is limited before anything is imported.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from json import loads
from pathlib import Path
from typing import IO

from vefl_sim.sweep.executors.executor import Job, JobOutcome, Report

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_CHECK_INTERVAL_S = 0.5  # between two checks whether to stop
_StopChecks = tuple[Callable[[], bool], Callable[[], bool]]
"""Whether the point should save and end, and whether it should be killed."""


def run_in_process(
    job: Job,
    on_report: Callable[[Report], None],
    should_stop: Callable[[], bool],
    should_kill: Callable[[], bool] = lambda: False,
) -> JobOutcome:
    """Run a point to its end, or until `should_stop` makes it save and end, or `should_kill` kills it."""
    if not os.path.isdir(job.cwd):
        return JobOutcome(
            "failed", error=f"{job.cwd} does not exist: the worker must see the same folders as the sweep."
        )
    try:
        return _run(job, on_report, (should_stop, should_kill))
    except (OSError, ValueError) as error:  # no process or no temporary file can be created, or a report is cut off
        return JobOutcome("failed", error=f"its process cannot be run ({error})")


def _run(job: Job, on_report: Callable[[Report], None], checks: _StopChecks) -> JobOutcome:
    with tempfile.TemporaryFile() as errors, _start(job, errors.fileno()) as child:
        ended = threading.Event()
        threading.Thread(target=_forward_stop, args=(child, checks, ended), daemon=True).start()
        try:
            return _read_reports(child, on_report) or _death(child, errors)
        finally:
            ended.set()
            if child.poll() is None:
                child.kill()


def _start(job: Job, errors: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-m", "vefl_sim.sweep.executors.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=job.cwd,
        env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": _python_path()},
        text=True,
        start_new_session=True,  # Ctrl-C reaches only this process, which then asks the child to stop
    )
    assert child.stdin
    _write(child, job.to_json())
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


def _forward_stop(child: subprocess.Popen[str], checks: _StopChecks, ended: threading.Event) -> None:
    """Until the child has ended, ask it to stop or kill it as the checks demand."""
    (should_stop, should_kill), stopping = checks, False
    while not ended.wait(_CHECK_INTERVAL_S):
        if should_kill():
            child.kill()
            return
        if not stopping and should_stop():
            stopping = True
            _write(child, "stop")


def _read_reports(child: subprocess.Popen[str], on_report: Callable[[Report], None]) -> JobOutcome | None:
    """Pass on the reports of the child; returns its outcome, or None if it ended without one."""
    assert child.stdout
    for line in child.stdout:
        report = Report.from_dict(loads(line))
        if report.outcome:
            return report.outcome
        on_report(report)
    return None


def _death(child: subprocess.Popen[str], errors: IO[bytes]) -> JobOutcome:
    """The outcome of a child that ended without reporting one."""
    code = child.wait()
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return JobOutcome("died", error=f"its process was ended by {name}{hint}")
    return JobOutcome("died", error=f"its process ended with code {code}: {_last_line(errors)}")


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"
