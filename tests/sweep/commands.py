"""A sweep that takes some seconds, and what its folder and its output show."""

import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import tomli_w

from tests.resumable import EXPERIMENT


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


def workers(process: int) -> list[int]:
    """Process ids of the workers of a local cluster, which this process has started."""
    children = psutil.Process(process).children()
    return [child.pid for child in children if any("spawn_main" in word for word in child.cmdline())]
