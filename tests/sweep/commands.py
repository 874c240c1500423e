"""`python -m vefl_sim sweep` in a process of its own, on a sweep that takes some seconds."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import tomli_w

from tests.resumable import EXPERIMENT

ROOT = Path(__file__).parents[2]


def toml(folder: Path, sweep: dict[str, object], **changed: dict[str, object]) -> Path:
    """The file of a sweep over the experiment that has a bit of everything."""
    fast = EXPERIMENT | {"learning": {"kind": "none"}}
    tables = {name: table | changed.pop(name, {}) for name, table in fast.items() if name != "trace"}
    file = folder / "many.toml"
    file.write_text(tomli_w.dumps({**tables, **changed, "run": {**tables["run"], "name": "many"}, "sweep": sweep}))
    return file


def start(*arguments: object, most_bytes: int | None = None, log: Path | None = None) -> subprocess.Popen[str]:
    """Begin; what it says goes to a file, if one is given."""

    def limit() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # whoever starts the tests in the background has some of them ignored
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    to = log.open("w") if log else subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "vefl_sim", *map(str, arguments)],
        stdout=to, stderr=subprocess.STDOUT, text=True, preexec_fn=limit, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "models")])},
    )  # fmt: skip


def ended(*arguments: object, most_bytes: int | None = None) -> tuple[int, str]:
    """Exit code and output."""
    process = start(*arguments, most_bytes=most_bytes)
    said, _ = process.communicate(timeout=300)
    return process.returncode, said


def wait_for(true: Callable[[], object], seconds: float = 120.0) -> None:
    """Until it is true, or the test fails."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


def index(out: Path) -> pd.DataFrame:
    """The index, by the digests of the points."""
    return pd.read_csv(out / "sweeps" / "many" / "index.csv").set_index("digest")


def checkpoints(out: Path) -> int:
    """How many points are under way, and have something to go on from."""
    return len({file.parent for file in out.glob("*/checkpoints/*.npz")})


def sessions(out: Path) -> int:
    """How often anybody worked on a run."""
    return sum(len(file.read_text().splitlines()) for file in out.glob("*/sessions.jsonl"))


def workers(log: Path) -> list[int]:
    """The processes of a local cluster."""
    found = re.search(r"\(processes ([\d, ]+)\)", log.read_text())
    return [int(number) for number in found[1].split(",")] if found else []
