"""The runs in a folder, at a glance."""

import time
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.core.errors import RunNotFound, VeflError
from vefl_sim.records.run_directory import Run


@dataclass(frozen=True)
class Listed:
    """A run in one line; what cannot be read is None."""

    name: str
    state: str
    rounds: int | None  # over, or up to the last checkpoint
    planned: int | None
    accuracy: float | None
    age_s: float  # since something was last written


def listed(out: Path) -> list[Listed]:
    """All runs, those that were written last at the end."""
    if not out.is_dir():
        raise RunNotFound(f"{out} is not a folder: where are the runs?")
    folders = [path for path in out.iterdir() if (path / "resolved.toml").is_file()]
    return sorted((_listed(Run(path)) for path in folders), key=lambda run: -run.age_s)


def _listed(run: Run) -> Listed:
    written = max(_written(path) for path in (run.path, *run.path.glob("*"), *run.path.glob("checkpoints/*")))
    state: str = run.state
    try:
        summary, planned = run.summary, run.experiment.rounds
    except VeflError:  # of another version, or damaged: still somebody's run
        summary, planned = {}, None
    if not summary and (run.is_done or any(run.path.glob("checkpoints/*.npz"))):
        state = "damaged"
    rounds, accuracy = summary.get("rounds"), summary.get("last_accuracy")
    return Listed(run.path.name, state, rounds, planned, accuracy, max(0.0, time.time() - written))


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # the run goes on while somebody looks
        return 0.0
