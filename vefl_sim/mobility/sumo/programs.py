"""Where SUMO is installed, and how to run its command-line programs (netconvert, randomTrips, …)."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from vefl_sim.core.errors import BadInput, ExperimentError

MISSING = "Maps need SUMO, which is not installed here: pip install 'vefl_sim[sumo]'."
UNVALIDATED = ("--xml-validation", "never")
"""Options with which SUMO's programs look for no schemas, which a file may name anywhere on the internet."""


def home() -> Path:
    """SUMO_HOME, the folder of the package eclipse-sumo; an error if SUMO is not installed."""
    if not all(find_spec(name) for name in ("sumo", "libsumo", "traci")):
        raise BadInput(MISSING)
    import sumo

    return Path(sumo.SUMO_HOME)


def program(name: str) -> str:
    """The path of one of SUMO's programs."""
    return str(home() / "bin" / name)


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
    _run([program(name), *map(_text, arguments)], name, what)


def run_tool(name: str, arguments: Sequence[object], what: str) -> None:
    """Run one of the Python scripts of SUMO, like `run_program`."""
    _run([sys.executable, str(home() / "tools" / f"{name}.py"), *map(_text, arguments)], name, what)


def _text(argument: object) -> str:
    return file_argument(argument) if isinstance(argument, Path) else str(argument)


def _run(command: list[str], name: str, what: str) -> None:
    completed = subprocess.run(
        command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if completed.returncode:
        raise ExperimentError(f"{what}: {name} says: {complaint(completed.stderr or completed.stdout)}")


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
