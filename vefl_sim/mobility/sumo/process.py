"""A running SUMO: within our process (libsumo) or as a separate process (traci), with the same API."""

import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import IO, Any, Literal

from vefl_sim.core.errors import ExperimentError, RunFailed
from vefl_sim.mobility.sumo.programs import UNVALIDATED, complaint, environment, program

ClientKind = Literal["libsumo", "traci"]
_TRIES, _WAIT_S = 6000, 0.01  # one minute, enough for a busy machine to start SUMO
_QUIET = ("--no-step-log", "--no-warnings", "--duration-log.disable")
_UNVALIDATED = (*UNVALIDATED, "--xml-validation.net", "never", "--xml-validation.routes", "never")


class CannotStart(ExperimentError):
    """SUMO refuses its arguments or its input files."""


@contextmanager
def running(kind: ClientKind, arguments: Sequence[str]) -> Iterator[Any]:
    """Start SUMO and yield its API; SUMO is stopped when the block ends, also after an exception."""
    start = _in_process if kind == "libsumo" else _separate_process
    with start(_command(arguments)) as api:
        yield api


def require_accepted(arguments: Sequence[str], label: str) -> None:
    """Check that SUMO accepts its arguments and files; `label` names them in error messages."""
    ask("None", arguments, label)


def ask(question: str, arguments: Sequence[str], label: str) -> str:
    """Start SUMO and return the value of a Python expression about `libsumo`, as text.

    It runs in a process of its own, because libsumo cannot recover from an error, and a file may crash it; and without
    a port, to which others could connect.
    """
    code = f"import sys, libsumo; libsumo.start(sys.argv[1:]); print({question})"
    answer = subprocess.run(
        [sys.executable, "-P", "-c", code, *_command(arguments)],
        env=environment() | {"LIBSUMO_AS_TRACI": "quiet"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if answer.returncode:
        error = _start_error(answer.returncode, answer.stderr)
        raise error if isinstance(error, RunFailed) else ExperimentError(f"{label}: SUMO says: {error}")
    return answer.stdout.splitlines()[-1]


def _command(arguments: Sequence[str]) -> list[str]:
    return [program("sumo"), *arguments, *_QUIET, *_UNVALIDATED]


def _start_error(code: int, log: str) -> CannotStart | RunFailed:
    """The error for a SUMO that has ended while it started."""
    if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
        return CannotStart("nothing, it crashes: a file is damaged, or holds what it cannot read.")
    if code < 0:
        return RunFailed(f"SUMO was killed by signal {-code} while it started.")
    return CannotStart(complaint(log))


def load_libsumo() -> Any:
    """Import libsumo without its warning on stdout that pyarrow has another libarrow, which libsumo never calls."""
    import traci  # noqa: F401  imported first: with the variable set, it would turn into libsumo

    os.environ["LIBSUMO_AS_TRACI"] = "quiet"
    try:
        import libsumo
    finally:
        del os.environ["LIBSUMO_AS_TRACI"]
    return libsumo


@contextmanager
def _in_process(command: list[str]) -> Iterator[Any]:
    libsumo = load_libsumo()
    if libsumo.simulation.isLoaded():
        raise RunFailed('libsumo can run only once per process, and is running already: set sumo.client = "traci".')
    try:
        try:
            libsumo.start(command)
        except Exception as error:
            raise CannotStart(complaint(str(error))) from None
        yield libsumo
    finally:
        with suppress(Exception):  # after an error libsumo may be closed already
            libsumo.close()


@contextmanager
def _separate_process(command: list[str]) -> Iterator[Any]:
    with tempfile.TemporaryFile() as log:
        process, connection = _start_and_connect(command, log)
        try:
            try:
                yield connection
            finally:
                with suppress(Exception):
                    connection.close(wait=False)
                _wait_or_kill(process)
        except RunFailed as error:
            if "Error" not in (text := _log_text(log)):
                raise
            # The error of traci does not contain the reason, the log does.
            raise RunFailed(f"{str(error).rstrip('.')}: {complaint(text)}") from error


def _start_and_connect(command: list[str], log: IO[bytes]) -> tuple[subprocess.Popen[bytes], Any]:
    """Start SUMO and connect to it.

    SUMO listens to all machines and asks for no password, until its one client is connected. So we connect as soon as
    it opens its port, which is before it reads its files; then it closes the port.
    """
    import traci

    with _reserved_port() as port:
        process = subprocess.Popen(
            [*command, "--remote-port", str(port), "--num-clients", "1"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that Ctrl-C only reaches our process, which then stops SUMO
        )
        try:
            with redirect_stdout(io.StringIO()):  # traci prints every retry
                connection = traci.connect(port, _TRIES, proc=process, waitBetweenRetries=_WAIT_S)
                connection.getVersion()  # waits: SUMO accepts connections before it has read its files
                return process, connection
        except Exception:
            _wait_or_kill(process)
            raise _start_error(process.returncode, _log_text(log)) from None
        except BaseException:
            process.kill()
            process.wait()
            raise


@contextmanager
def _reserved_port() -> Iterator[int]:
    """A free port that is given to no other program within the block; only SUMO, which is told it, can listen there."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # SUMO sets it, too: both may bind the port
        reserved.bind(("", 0))
        yield reserved.getsockname()[1]


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    """Wait until SUMO ends, which it does when the connection is closed; kill it if it does not."""
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    finally:
        process.kill()  # no effect if it has ended
        process.wait()


def _log_text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")
