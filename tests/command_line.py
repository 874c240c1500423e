"""The program as a user meets it: called in the process of the test, or started in a process of its own."""

import os
import resource
import signal
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import PIPE, STDOUT, CompletedProcess, Popen
from typing import Any

from vefl_sim.cli.main import main

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "models")])}


def call(*arguments: object, cwd: Path = ROOT) -> CompletedProcess[str]:
    """The command in this process, because a new one needs two seconds to import what it uses."""
    output, errors, code = StringIO(), StringIO(), 0
    with chdir(cwd), redirect_stdout(output), redirect_stderr(errors):
        try:
            main([*map(str, arguments)])
        except SystemExit as end:
            code = int(end.code or 0)
    return CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def start(*command: object, most_bytes: int | None = None, **options: Any) -> Popen[str]:
    """Start Python with `command`, usually -m vefl_sim and arguments; `options` are those of Popen.

    Stop signals reach it, although the tests ignore some if they run in the background. It writes no file that is
    larger than `most_bytes`.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.signal(number, signal.SIG_DFL) for number in numbers]  # inherited, unlike those of the tests
    try:
        usual: dict[str, Any] = {"cwd": ROOT, "env": ENVIRONMENT, "text": True, "stdout": PIPE, "stderr": STDOUT}
        process: Popen[str] = Popen([sys.executable, *map(str, command)], **usual | options)
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
    if most_bytes is not None:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return process


def finish(process: Popen[str]) -> CompletedProcess[str]:
    """Wait for the end of a process."""
    output, errors = process.communicate(timeout=300)
    return CompletedProcess(process.args, process.returncode, output, errors)
