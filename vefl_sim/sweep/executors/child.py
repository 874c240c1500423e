"""One point in a process of its own, seen from the one who waits for it.

A process per point costs two seconds; it gives back all memory, dies alone, and has the threads it may have from the
first import on.
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
_SECONDS_BETWEEN = 0.5  # of two looks at whether it shall stop
Wishes = tuple[Callable[[], bool], Callable[[], bool]]
"""Whether it shall save and end, and whether it shall end at once."""


def work(
    job: Job, tell: Callable[[Report], None], stop: Callable[[], bool], leave: Callable[[], bool] = lambda: False
) -> JobOutcome:
    """Run a point to its end, or until `stop` lets it save, or `leave` ends it at once; `tell` hears how far it is."""
    if not os.path.isdir(job.cwd):
        return JobOutcome(
            "failed", error=f"{job.cwd} is not there: the worker must see the same folders as who asks it."
        )
    try:
        return _worked(job, tell, (stop, leave))
    except (OSError, ValueError) as error:  # no process to be had, no room for what it says, half a report
        return JobOutcome("failed", error=f"its process cannot be run ({error})")


def _worked(job: Job, tell: Callable[[Report], None], wishes: Wishes) -> JobOutcome:
    with tempfile.TemporaryFile() as said, _started(job, said.fileno()) as child:
        over = threading.Event()
        threading.Thread(target=_pass_on, args=(child, wishes, over), daemon=True).start()
        try:
            return _heard(child, tell) or _died(child, said)
        finally:
            over.set()
            if child.poll() is None:
                child.kill()


def _started(job: Job, errors: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-m", "vefl_sim.sweep.executors.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=job.cwd,
        env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": _path()},
        text=True,
        start_new_session=True,  # Ctrl-C is for us: we ask it to stop
    )
    assert child.stdin
    _write(child, job.text())
    return child


def _path() -> str:
    """Where this process has found its modules, also if it was told so in its own way."""
    return os.pathsep.join(path for path in sys.path if path and Path(path).is_dir())


def _write(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin
    try:
        child.stdin.write(line + "\n")
        child.stdin.flush()
    except (OSError, ValueError):
        pass  # it has ended, and its output tells how


def _pass_on(child: subprocess.Popen[str], wishes: Wishes, over: threading.Event) -> None:
    (stop, leave), asked = wishes, False
    while not over.wait(_SECONDS_BETWEEN):
        if leave():
            child.kill()
            return
        if not asked and stop():
            asked = True
            _write(child, "stop")


def _heard(child: subprocess.Popen[str], tell: Callable[[Report], None]) -> JobOutcome | None:
    assert child.stdout
    for line in child.stdout:
        report = Report.of(loads(line))
        if report.outcome:
            return report.outcome
        tell(report)
    return None


def _died(child: subprocess.Popen[str], said: IO[bytes]) -> JobOutcome:
    """It reported nothing at its end."""
    code = child.wait()
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return JobOutcome("died", error=f"its process was ended by {name}{hint}")
    return JobOutcome("died", error=f"its process ended with code {code}: {_last_line(said)}")


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
