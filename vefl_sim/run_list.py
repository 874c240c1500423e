"""The runs in a folder, at a glance."""

import time
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.errors import VeflError
from vefl_sim.results import Run


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
    folders = [path for path in out.iterdir() if (path / "resolved.toml").is_file()] if out.is_dir() else []
    return sorted((_listed(Run(path)) for path in folders), key=lambda run: -run.age_s)


def _listed(run: Run) -> Listed:
    written = max(path.stat().st_mtime for path in (run.path, *run.path.glob("*"), *run.path.glob("checkpoints/*")))
    try:
        summary, planned = run.summary, run.experiment.rounds
    except VeflError:  # of another version, or damaged: still somebody's run
        summary, planned = {}, None
    rounds, accuracy = summary.get("rounds"), summary.get("last_accuracy")
    return Listed(run.path.name, run.state, rounds, planned, accuracy, max(0.0, time.time() - written))
