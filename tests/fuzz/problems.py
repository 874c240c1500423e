"""Attacks with problems that are solved in this process: many in one file, each of which is an attempt."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

BATCH = 500
FILE = "problems.jsonl"

Fields = dict[str, Any]
"""A problem as numbers and lists of numbers."""


@dataclass(frozen=True)
class ProblemAttack:
    """Problems drawn at random, and the laws that their solutions obey."""

    name: str
    goal: int
    draw: Callable[[np.random.Generator], Fields]
    laws: Callable[[Fields], None]
    limit_s: float = 120.0  # for all problems of a file

    def make(self, random: Random, folder: Path) -> None:
        """Write one problem per line."""
        rng = np.random.default_rng(random.getrandbits(64))
        lines = (json.dumps(self.draw(rng), default=np.ndarray.tolist) for _ in range(BATCH))
        (folder / FILE).write_text("\n".join(lines) + "\n")

    def check(self, folder: Path) -> int:
        """Check the laws of each problem; returns how many there are. Only the first that fails stays in the file."""
        lines = (folder / FILE).read_text().splitlines()
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            for line in lines:
                try:
                    self.laws(json.loads(line))
                except Exception:
                    (folder / FILE).write_text(line + "\n")
                    raise
        return len(lines)


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int | None = None) -> Any:
    """Numbers from 10^low to 10^high, of any magnitude with the same probability."""
    return 10.0 ** rng.uniform(low, high, size)


def one_of(rng: np.random.Generator, *values: Any) -> Any:
    """One of these values, which may be arrays of any shapes."""
    return values[rng.integers(len(values))]
