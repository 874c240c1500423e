"""Run `python -m vefl_sim sweep` in a process of its own, on a sweep that takes some seconds."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import tomli_w

from tests.resumable import EXPERIMENT

ROOT = Path(__file__).parents[2]


def toml(folder: Path, sweep: dict[str, object], **changed: dict[str, object]) -> Path:
    """Write the file of a sweep over the experiment of `tests.resumable`, without learning."""
    fast = EXPERIMENT | {"learning": {"kind": "none"}}
    tables = {name: table | changed.pop(name, {}) for name, table in fast.items() if name != "trace"}
    file = folder / "many.toml"
    file.write_text(tomli_w.dumps({**tables, **changed, "run": {**tables["run"], "name": "many"}, "sweep": sweep}))
    return file


def comparison_toml(folder: Path, seeds: list[int], **changed: dict[str, object]) -> Path:
    """Write a comparison with one variant, whose runs are the points of the sweep over these seeds."""
    tables = tomllib.loads(toml(folder, {}, **changed).read_text())
    del tables["sweep"]
    file = folder / "many.toml"
    file.write_text(tomli_w.dumps({"seeds": seeds, **tables, "compare": [{"label": "PDPC"}]}))
    return file


def start(*arguments: object, most_bytes: int | None = None, log: Path | None = None) -> subprocess.Popen[str]:
    """Start the command; its output goes to the file `log`, if given, or else to a pipe."""

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # some are ignored if the tests run in the background
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    output = log.open("w") if log else subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "vefl_sim", *map(str, arguments)],
        stdout=output, stderr=subprocess.STDOUT, text=True, preexec_fn=prepare, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "models")])},
    )  # fmt: skip


def run_command(*arguments: object, most_bytes: int | None = None) -> tuple[int, str]:
    """Run the command to its end; returns exit code and output."""
    process = start(*arguments, most_bytes=most_bytes)
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until the condition is true; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never became true"
        time.sleep(0.05)


def index(out: Path) -> pd.DataFrame:
    """The index of the sweep, by the digests of the points."""
    return pd.read_csv(out / "sweeps" / "many" / "index.csv").set_index("digest")


def checkpoints(out: Path) -> int:
    """Number of runs that have a checkpoint."""
    return len({file.parent for file in out.glob("*/checkpoints/*.npz")})


def sessions(out: Path) -> int:
    """Number of sessions of all runs."""
    return sum(len(file.read_text().splitlines()) for file in out.glob("*/sessions.jsonl"))


def workers(log: Path) -> list[int]:
    """Process ids of the workers of a local cluster, from the output of the command."""
    match = re.search(r"\(processes ([\d, ]+)\)", log.read_text())
    return [int(number) for number in match[1].split(",")] if match else []
