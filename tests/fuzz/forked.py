"""The command line program in processes of their own, forked from one that has imported everything."""

import ctypes
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.fuzz.attack import Broken
from tests.fuzz.command import Answer
from vefl_sim.cli.main import main

# Imports would take most of the time of a short run. JAX may be imported, but not used, before a process is forked.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.fuzz.forked", "tests.scripted", "vefl_sim.cli.progress", "vefl_sim.learning.jax_learner"]
)
MOST_BYTES = 2**32
"""Memory of such a process, beyond which Python raises MemoryError."""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def start(arguments: Sequence[str], output: Path) -> BaseProcess:
    """Start a command, whose output and errors go to files that begin with `output`."""
    process = _processes.Process(target=_command_line, args=(list(arguments), output))
    process.start()
    return process


def _command_line(arguments: Sequence[str], output: Path) -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    for number, name in ((1, "out"), (2, "errors")):
        os.dup2(os.open(output.with_suffix(f".{name}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    main(arguments)


def answer(process: BaseProcess, output: Path) -> Answer:
    """The answer of a process that has ended."""
    texts = [output.with_suffix(f".{name}").read_text(errors="replace") for name in ("out", "errors")]
    return Answer(int(process.exitcode or 0), *texts)


def wait(process: BaseProcess, output: Path, run: Path, patience_s: float) -> Answer:
    """Wait for a process that prints lines or writes files in the folder `run`; Broken if it does neither for too long.

    Time is that of its processor, so that a busy machine does not look like a hang.
    """
    seen, since_s = "", 0.0
    while process.is_alive():
        process.join(0.2)
        signs = _signs(output, run)
        used_s = _processor_s(process)
        if signs != seen:
            seen, since_s = signs, used_s
        if used_s - since_s > patience_s:
            process.kill()
            process.join()
            raise Broken(f"hangs: no sign of life for {patience_s:.0f} s; {answer(process, output).errors[-500:]}")
    return answer(process, output)


def _signs(output: Path, run: Path) -> str:
    """What changes while a run advances: the lines it prints, and the sizes of its files."""
    files = [*output.parent.glob(f"{output.name}.*")]
    with suppress(FileNotFoundError):  # a run that finishes removes folders
        files += run.rglob("*")
    return str([(path.name, size) for path in files if (size := _size(path)) is not None])


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:  # replaced just now
        return None


def _processor_s(process: BaseProcess) -> float:
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended; elsewhere than on Linux, time passes for all
        return time.monotonic() if not Path("/proc/self/stat").exists() else 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
