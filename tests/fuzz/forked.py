"""The command line program in processes of their own, forked from one that has imported everything."""

import ctypes
import multiprocessing
import os
import resource
import signal
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.fuzz.command import Answer
from vefl_sim.cli.main import main

# Imports would take most of the time of a short run. JAX may be imported, but not used, before a process is forked.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.fuzz.forked", "tests.scripted", "vefl_sim.cli.progress", "vefl_sim.learning.jax_learner"]
)
MOST_BYTES = 2**32
"""Memory of such a process, beyond which Python raises MemoryError."""
MOST_CPU_S, MOST_WALL_S = 300, 550.0
"""A process that takes longer hangs, and is killed: by the system for its processor time, or by `wait`."""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def start(
    arguments: Sequence[str], output: Path, *, most_bytes: int | None = None, cores: int | None = None
) -> BaseProcess:
    """Start a command, whose output and errors go to files that begin with `output`.

    It may write no file of more than `most_bytes`, and use so many `cores`.
    """
    process = _processes.Process(target=_command_line, args=(list(arguments), output, most_bytes, cores))
    process.start()
    return process


def _command_line(arguments: Sequence[str], output: Path, most_bytes: int | None, cores: int | None) -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    for number, name in ((1, "out"), (2, "errors")):
        os.dup2(os.open(output.with_suffix(f".{name}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a background shell may have told the tests to ignore some
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    main(arguments)


def wait(process: BaseProcess, output: Path) -> Answer:
    """Wait for the end of a process, which is killed if it takes too long."""
    process.join(MOST_WALL_S)
    process.kill()
    process.join()
    texts = [output.with_suffix(f".{name}").read_text(errors="replace") for name in ("out", "errors")]
    return Answer(int(process.exitcode or 0), *texts)
