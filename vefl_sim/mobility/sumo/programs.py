"""Where SUMO is, and its programs that run to their end (netconvert, randomTrips, …)."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from vefl_sim.core.errors import BadInput, ExperimentError

MISSING = "Maps need SUMO, which is not installed here: pip install 'vefl_sim[sumo]'."


def home() -> Path:
    """The folder of the package eclipse-sumo."""
    if not all(find_spec(name) for name in ("sumo", "libsumo", "traci", "sumolib")):
        raise BadInput(MISSING)
    import sumo

    return Path(sumo.SUMO_HOME)


def program(name: str) -> str:
    """The path of one of SUMO's programs."""
    return str(home() / "bin" / name)


def environment() -> dict[str, str]:
    """What they need to find their own data, whatever else of SUMO is installed."""
    data = home()
    return os.environ | {"SUMO_HOME": str(data), "PROJ_LIB": str(data / "data" / "proj")}


def run_program(name: str, arguments: Sequence[object], what: str) -> None:
    """Run a program; if it fails, say `what` it could not do, and why in its own words."""
    _run([program(name), *map(str, arguments)], name, what)


def run_tool(name: str, arguments: Sequence[object], what: str) -> None:
    """The same for one of the Python scripts that come with SUMO."""
    _run([sys.executable, str(home() / "tools" / f"{name}.py"), *map(str, arguments)], name, what)


def _run(command: list[str], name: str, what: str) -> None:
    done = subprocess.run(
        command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise ExperimentError(f"{what}: {name} says: {complaint(done.stderr or done.stdout)}")


def complaint(text: str) -> str:
    """The first error in what a program has printed, as part of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("Error")), None)
    if first is None:
        message = lines[-1:] or ["nothing, and stops"]
    else:
        where = [line for line in lines[first + 1 : first + 3] if line.startswith(("In file", "At line"))]
        message = [lines[first].removeprefix("Error:").strip(), *where]
    return " ".join(message).rstrip(".") + "."
