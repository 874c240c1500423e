"""The lock of a run directory: one process at a time; the system releases it when the process ends or crashes."""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vefl_sim.core.errors import RunLocked, RunNotFound
from vefl_sim.core.files import explain_write_errors, parse_json, read_text

LOCK_FILES = _LOCK, _SESSIONS = "LOCK", "sessions.jsonl"
_lock = partial(FileLock, is_singleton=False, thread_local=False)
_WAIT_S = 1.0  # `is_locked` in another process holds the lock for a moment


@contextmanager
def locked(run: Path, versions: dict[str, Any]) -> Iterator[None]:
    """Hold the lock of a run while the block runs, and log this process and its versions in sessions.jsonl.

    RunNotFound if another process, which has found bad input, has removed the run meanwhile.
    """
    with explain_write_errors(run / _LOCK):
        lock = _lock(run / _LOCK)
        try:
            lock.acquire(timeout=_WAIT_S, poll_interval=0.05)
        except Timeout:
            raise RunLocked(f"{run} is being run {_owner(run)}: wait until it ends, or use --fresh.") from None
    try:
        if not (run / "resolved.toml").exists():
            with suppress(OSError):  # locking has made the folder again
                (run / _LOCK).unlink()
                run.rmdir()
            raise RunNotFound(f"{run} has just been removed by another process.")
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        session = {"process": os.getpid(), "host": platform.node(), "started": started, "versions": versions}
        with explain_write_errors(run / _SESSIONS), (run / _SESSIONS).open("a", encoding="utf-8") as log:
            log.write(json.dumps(session) + "\n")
        yield
    finally:
        lock.release()


def is_locked(run: Path) -> bool:
    """Whether a process is working on a run."""
    if (run / _LOCK).is_symlink() or not (run / _LOCK).is_file():  # of what is not a lock, nothing is opened
        return False
    try:
        with _lock(run / _LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # no process works on a run in a read-only archive
        return False


def _owner(run: Path) -> str:
    try:
        last = parse_json(read_text(run / _SESSIONS).splitlines()[-1])
        return f"by process {last['process']} on {last['host']} since {last['started']}"
    except (OSError, ValueError, TypeError, LookupError):
        return "by another process"
