"""One process at a time works on a run. The system lets go of the lock when the process ends, however it ends."""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vefl_sim.core.errors import RunLocked
from vefl_sim.core.files import writing

_LOCK, _SESSIONS = "LOCK", "sessions.jsonl"
_PATIENCE_S = 1.0  # somebody who only looks whether it is locked holds it for a moment


@contextmanager
def locked(run: Path, versions: dict[str, Any]) -> Iterator[None]:
    """Work on a run, and add to its log that this process did, with what it ran on."""
    with writing(run / _LOCK):
        lock = _lock(run)
        try:
            lock.acquire(timeout=_PATIENCE_S, poll_interval=0.05)
        except Timeout:
            raise RunLocked(f"{run} is being run {_owner(run)}: wait for it, or run another with --fresh.") from None
    try:
        _log(run, versions)
        yield
    finally:
        lock.release()


def is_locked(run: Path) -> bool:
    """Whether somebody is working on it."""
    if not (run / _LOCK).exists():
        return False
    lock = _lock(run)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:  # in an archive that may not be written nobody runs anything
        return False
    lock.release()
    return False


def _lock(run: Path) -> FileLock:
    return FileLock(run / _LOCK, is_singleton=False, thread_local=False)


def _log(run: Path, versions: dict[str, Any]) -> None:
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    session = {"process": os.getpid(), "host": platform.node(), "started": started, "versions": versions}
    with writing(run / _SESSIONS), (run / _SESSIONS).open("a", encoding="utf-8") as log:
        log.write(json.dumps(session) + "\n")


def _owner(run: Path) -> str:
    try:
        last = json.loads((run / _SESSIONS).read_text(encoding="utf-8").splitlines()[-1])
        return f"by process {last['process']} on {last['host']} since {last['started']}"
    except (OSError, ValueError, KeyError, IndexError):
        return "by another process"
