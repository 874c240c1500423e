"""SUMO: where it is installed, its command-line programs (netconvert, …), and a SUMO that libsumo or traci controls."""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from vefl_sim.core.errors import BadInput, ExperimentError, RunFailed, VeflError

MISSING = "Maps need SUMO, which is not installed here: pip install 'vefl_sim[sumo]'."
UNVALIDATED = ("--xml-validation", "never")
"""Options with which SUMO's programs look for no schemas, which a file may name anywhere on the internet."""
_QUIET = ("--no-step-log", "--no-warnings", "--duration-log.disable")
_UNVALIDATED = (*UNVALIDATED, "--xml-validation.net", "never", "--xml-validation.routes", "never")
_TRIES, _WAIT_S = 6000, 0.01  # one minute, enough for a busy machine to start SUMO


def home() -> Path:
    """SUMO_HOME, the folder of the package eclipse-sumo; an error if SUMO is not installed."""
    if not all(find_spec(name) for name in ("sumo", "libsumo", "traci")):
        raise BadInput(MISSING)
    import sumo

    return Path(sumo.SUMO_HOME)


def environment() -> dict[str, str]:
    """Environment in which SUMO's programs find the data of this installation, even if there are others."""
    data = home()
    return os.environ | {"SUMO_HOME": str(data), "PROJ_LIB": str(data / "data" / "proj")}


def file_argument(path: Path) -> str:
    """A path as SUMO's programs get it, which is a name of this one file; every path given to them passes through here.

    They split names at commas, expand ${…} and leave out spaces, so that they would read or write another file.
    """
    text = str(path.absolute())
    if "," in text or "$" in text or text != text.strip():
        raise ExperimentError(
            f"{text!r} has a comma, a $ or a space at its end, which SUMO does not take as part of a name: rename the "
            "file or folder."
        )
    return text


def run_program(name: str, arguments: Sequence[object], what: str) -> None:
    """Run one of SUMO's programs or, if its name ends with .py, of its Python scripts.

    If it fails, the error starts with `what` and quotes the program's own message.
    """
    command = [sys.executable, str(home() / "tools" / name)] if name.endswith(".py") else [program(name)]
    _run(command, arguments, f"{what}: {name.removesuffix('.py')} says")


def program(name: str) -> str:
    """The path of one of SUMO's programs."""
    return str(home() / "bin" / name)


def _run(command: list[str], arguments: Sequence[object], what: str) -> str:
    """Run a command and return what it prints."""
    texts = [file_argument(argument) if isinstance(argument, Path) else str(argument) for argument in arguments]
    completed = subprocess.run(
        [*command, *texts],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if completed.returncode:
        raise _failure(what, completed.returncode, completed.stderr or completed.stdout)
    return completed.stdout


def _failure(what: str, code: int, text: str) -> VeflError:
    """The error for a program that has ended with this exit code after printing this text."""
    if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
        return ExperimentError(f"{what}: nothing, it crashes: a file is damaged, or holds what it cannot read.")
    if code < 0:
        return RunFailed(f"{what}: nothing, it was killed by signal {-code}.")
    return ExperimentError(f"{what}: {complaint(text)}")


def complaint(text: str) -> str:
    """The first error message in the output of a program, or else its last line, as the end of a sentence."""
    error = re.search(r"^\s*Error:?(.*(?:\n\s*(?:In file|At line).*){0,2})", text, re.MULTILINE)
    message = error[1] if error else (text.strip().splitlines() or ["(no message)"])[-1]
    return " ".join(message.split()).rstrip(".") + "."


def ask(arguments: Sequence[str], label: str, question: str = "None") -> str:
    """Start SUMO, which must accept its input; return the value of a Python expression about `libsumo`, as text.

    It runs in a process of its own, because libsumo cannot recover from an error, and a file may crash it; and without
    a port, to which others could connect. `label` names the input in error messages.
    """
    code = f"import sys, libsumo; libsumo.start(sys.argv[1:]); print({question})"
    command = [sys.executable, "-P", "-c", code, *_command(arguments)]
    return _run(command, (), f"{label}: SUMO says").splitlines()[-1]


def running(client: str, arguments: Sequence[str], label: str) -> AbstractContextManager[Any]:
    """Start SUMO for a `with` block, which gets the API that both clients share: "libsumo" in our process, and "traci".

    SUMO is stopped when the block ends, also after an exception. `label` names the input in error messages.
    """
    start = _in_process if client == "libsumo" else _separate_process
    return start(_command(arguments), f"{label}: SUMO says")


@contextmanager
def _in_process(command: list[str], what: str) -> Iterator[Any]:
    with redirect_stdout(io.StringIO()):  # it warns that pyarrow has another libarrow, which libsumo never calls
        import libsumo
    if libsumo.simulation.isLoaded():
        raise RunFailed('libsumo can run only once per process, and is running already: set sumo.client = "traci".')
    try:
        try:
            libsumo.start(command)
        except Exception as error:
            raise ExperimentError(f"{what}: {complaint(str(error))}") from None
        yield libsumo
    finally:
        with suppress(Exception):  # after an error libsumo may be closed already
            libsumo.close()


@contextmanager
def _separate_process(command: list[str], what: str) -> Iterator[Any]:
    """Start SUMO, and connect to it at a port that is given to no other program.

    SUMO listens to all machines and asks for no password, until its one client is connected. So we connect as soon as
    it opens its port, which is before it reads its files; then it closes the port.
    """
    import traci

    with tempfile.TemporaryFile() as log, socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # SUMO sets it, too: both may bind the port
        reserved.bind(("", 0))
        port = reserved.getsockname()[1]
        process = subprocess.Popen(
            [*command, "--remote-port", str(port), "--num-clients", "1"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that Ctrl-C only reaches our process, which then stops SUMO
        )
        try:
            try:
                with redirect_stdout(io.StringIO()):  # traci prints every retry
                    connection = traci.connect(port, _TRIES, proc=process, waitBetweenRetries=_WAIT_S)
                    connection.getVersion()  # waits: SUMO accepts connections before it has read its files
            except Exception:
                raise _failure(what, _end(process), _text(log)) from None
            try:
                yield connection
            finally:
                with suppress(Exception):
                    connection.close(wait=False)
        except RunFailed as error:
            _end(process)
            if "Error" not in (text := _text(log)):
                raise
            # The error of traci does not contain the reason, the log does.
            raise RunFailed(f"{str(error).rstrip('.')}: {complaint(text)}") from error
        finally:
            process.kill()
            process.wait()


def _end(process: subprocess.Popen[bytes]) -> int:
    """The exit code of SUMO, which ends after an error; it is killed if it does not."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    process.kill()  # no effect if it has ended
    return process.wait()


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")


def _command(arguments: Sequence[str]) -> list[str]:
    return [program("sumo"), *arguments, *_QUIET, *_UNVALIDATED]
