"""Made-up measurements and results, and a small sweep to run."""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd

from tests.command_line import ROOT
from vefl_sim.sweep.points import Point, Sweep, load_sweep
from vefl_sim.sweep.results.keys import Keys, keys_of, toml_of
from vefl_sim.sweep.results.result import Result, RunMeasurements, result_from, write_result

TINY = """
[run]
name = "tiny"
rounds = 2
[traffic]
mean_in_coverage = 8.0
[data]
train_samples = 400
test_samples = 10
image_px = 16
[learning]
kind = "none"
[sweep]
seeds = [1, 2]
vefl.budget = [50, 1000]
[figure]
kind = "cost"
marks = [100]
"""
"""A sweep of four points that take a second each, with a figure."""


@cache
def paper_sweep(name: str) -> Sweep:
    """A sweep of experiments/paper."""
    return load_sweep(ROOT / "experiments" / "paper" / f"{name}.toml")


def paper_module(name: str) -> ModuleType:
    """A script of experiments/paper, which is no package."""
    folder = str(ROOT / "experiments" / "paper")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def measurements(accuracies: list[float | None], sojourns_s: list[float] | None = None) -> RunMeasurements:
    """Measurements of a run with one round per accuracy; some CVs lose their updates."""
    rng, count = np.random.default_rng(len(accuracies)), len(accuracies)
    ordered = rng.integers(1, 9, count)
    rounds = pd.DataFrame(
        {
            "round": np.arange(1, count + 1),
            "end_ns": 5_000_000_000 * np.arange(1, count + 1),
            "in_coverage": ordered + 2,
            "eligible": ordered + 1,
            "ordered": ordered,
            "delivered": ordered - 1,
            "p_suc": pd.array([1 - 0.5 / n for n in ordered], dtype="Float64"),
            "steps": np.ones(count, np.int64),
            "cost": 900 * rng.random(count),
            "energy_j": 90 * rng.random(count),
            "accuracy": pd.array(accuracies, dtype="Float64"),
            "loss": pd.array([None if a is None else 1 - a for a in accuracies], dtype="Float64"),
        }
    )
    fractions = np.r_[np.full(20, 1.0), 0.0, 0.9, 0.28999, rng.random(10)]
    measured = SimpleNamespace(
        source="run", stale=False, selects=False, rounds=rounds, delivered_fractions=fractions, ineligible=count,
        sojourns_s=np.array(sojourns_s or [0.0, 2.5, 5.0, 8.999, 10.0, 57.31, 99.99, 912.7]),
    )  # fmt: skip
    return cast(RunMeasurements, measured)


def result(point: Point, accuracies: list[float | None], source: str = "abc") -> Result:
    """A made-up result of a point."""
    return result_from(measurements(accuracies), **origin(keys_of(point.experiment), source=source))


def origin(keys: Keys, **changed: object) -> dict[str, object]:
    """What a made-up result was made from and with."""
    made = {"inputs": {}, "version": "0.1.0", "source": "abc", "content": "d1", "wall_s": 12.3, "cpu_s": 7.9}
    return {"toml": toml_of(keys), **made, **changed}


def store_result(folder: Path, point: Point, accuracies: list[float | None], source: str = "abc") -> Path:
    """Write a made-up result of a point into a folder."""
    return write_result(result(point, accuracies, source), folder)
