"""SUMO: where it is installed, its command-line programs (netconvert, randomTrips, …), and SUMO in our process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import BadInput, ExperimentError, RunFailed

MISSING = "Maps need SUMO, which is not installed here: pip install 'vefl_sim[sumo]'."
UNVALIDATED = ("--xml-validation", "never")
"""Options with which SUMO's programs look for no schemas, which a file may name anywhere on the internet."""
_QUIET = ("--no-step-log", "--no-warnings", "--duration-log.disable")
_UNVALIDATED = (*UNVALIDATED, "--xml-validation.net", "never", "--xml-validation.routes", "never")


def home() -> Path:
    """SUMO_HOME, the folder of the package eclipse-sumo; an error if SUMO is not installed."""
    if not all(find_spec(name) for name in ("sumo", "libsumo")):
        raise BadInput(MISSING)
    import sumo

    return Path(sumo.SUMO_HOME)


def environment() -> dict[str, str]:
    """Environment in which SUMO's programs find the data of this installation, even if there are others."""
    data = home()
    return os.environ | {"SUMO_HOME": str(data), "PROJ_LIB": str(data / "data" / "proj")}


def file_argument(path: Path) -> str:
    """A path as SUMO's programs get it, which is a name of this one file; every path given to them passes through here.

    They split names at commas, and expand ${…} anywhere in them, so that they would read or write another file.
    """
    text = str(path.absolute())
    if text != text.strip():
        raise ExperimentError(f"{text!r} ends with a space, which SUMO leaves out: rename the file or folder.")
    for character, meaning in (
        (",", "a comma, which SUMO takes as a separator of files"),
        ("$", "a $, which SUMO expands"),
    ):
        if character in text:
            raise ExperimentError(f"{text} has {meaning}: rename the file or folder.")
    return text


def run_program(name: str, arguments: Sequence[object], what: str) -> None:
    """Run a program; if it fails, raise an error that starts with `what` and quotes the program's own message."""
    _run([program(name)], arguments, f"{what}: {name} says")


def run_tool(name: str, arguments: Sequence[object], what: str) -> None:
    """Run one of the Python scripts of SUMO, like `run_program`."""
    _run([sys.executable, str(home() / "tools" / f"{name}.py")], arguments, f"{what}: {name} says")


def program(name: str) -> str:
    """The path of one of SUMO's programs."""
    return str(home() / "bin" / name)


def _run(command: list[str], arguments: Sequence[object], what: str, **variables: str) -> str:
    """Run a command and return what it prints."""
    texts = [file_argument(argument) if isinstance(argument, Path) else str(argument) for argument in arguments]
    completed = subprocess.run(
        [*command, *texts],
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if -completed.returncode in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
        raise ExperimentError(f"{what}: nothing, it crashes: a file is damaged, or holds what it cannot read.")
    if completed.returncode < 0:
        raise RunFailed(f"{what}: nothing, it was killed by signal {-completed.returncode}.")
    if completed.returncode:
        raise ExperimentError(f"{what}: {complaint(completed.stderr or completed.stdout)}")
    return completed.stdout


def complaint(text: str) -> str:
    """The first error message in the output of a program, as the end of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("Error")), None)
    if first is None:
        parts = lines[-1:] or ["(no message)"]
    else:
        where = [line for line in lines[first + 1 : first + 3] if line.startswith(("In file", "At line"))]
        parts = [lines[first].removeprefix("Error:").strip(), *where]
    return " ".join(parts).rstrip(".") + "."


def require_accepted(arguments: Sequence[str], label: str) -> None:
    """Check that SUMO accepts its arguments and files; `label` names them in error messages."""
    ask("None", arguments, label)


def ask(question: str, arguments: Sequence[str], label: str) -> str:
    """Start SUMO and return the value of a Python expression about `libsumo`, as text.

    It runs in a process of its own, because libsumo cannot recover from an error, and a file may crash it; and without
    a port, to which others could connect.
    """
    code = f"import sys, libsumo; libsumo.start(sys.argv[1:]); print({question})"
    command = [sys.executable, "-P", "-c", code, *_command(arguments)]
    return _run(command, (), f"{label}: SUMO says", LIBSUMO_AS_TRACI="quiet").splitlines()[-1]


@contextmanager
def running(arguments: Sequence[str], label: str) -> Iterator[Any]:
    """Start SUMO in our process and yield libsumo; SUMO is stopped when the block ends, also after an exception.

    `label` names the input in error messages.
    """
    libsumo = load_libsumo()
    if libsumo.simulation.isLoaded():
        raise RunFailed("SUMO can run only once per process, and is running already: run this in another process.")
    try:
        try:
            libsumo.start(_command(arguments))
        except Exception as error:
            raise ExperimentError(f"{label}: SUMO says: {complaint(str(error))}") from None
        yield libsumo
    finally:
        with suppress(Exception):  # after an error libsumo may be closed already
            libsumo.close()


def load_libsumo() -> Any:
    """Import libsumo without its warning on stdout that pyarrow has another libarrow, which libsumo never calls."""
    os.environ["LIBSUMO_AS_TRACI"] = "quiet"
    try:
        import libsumo
    finally:
        del os.environ["LIBSUMO_AS_TRACI"]
    return libsumo


def _command(arguments: Sequence[str]) -> list[str]:
    return [program("sumo"), *arguments, *_QUIET, *_UNVALIDATED]
