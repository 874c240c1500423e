"""Sweeps with fake runs, which have only the attributes that figures read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point, Sweep, load_sweep

HEAD = '[run]\nname = "s"\nrounds = 4\n'


def run(
    accuracies: Sequence[float | None] = (),
    costs: Sequence[float] = (),
    sojourns_s: Sequence[float] = (),
    fractions: Sequence[float | None] = (),
    round_s: float = 5.0,
    *,
    losses: Sequence[float] = (),
    loss: str = "cross-entropy",
) -> Run:
    """A fake finished run with these values in its tables; with `losses` it has no accuracies, but this loss."""
    costs = costs or [1.0] * len(losses)
    accuracies = accuracies or [None] * len(costs)
    costs = costs or [1.0] * len(accuracies)
    count = len(accuracies)
    ends = [int(round_s * 1e9) * k for k in range(1, count + 1)]
    rounds: dict[str, Any] = {
        "round": range(1, count + 1),
        "end_ns": ends,
        "cost": costs,
        "energy_j": [cost / 10 for cost in costs],
    }
    rounds |= {"ordered": 4, "delivered": [3 if k % 2 else 4 for k in range(count)]}
    known = pd.array(losses or [None if a is None else 2.0 - a for a in accuracies], dtype="Float64")
    states = ["ineligible" if part is None else "delivered" if part == 1.0 else "lost" for part in fractions]
    vehicles = {"state": states, "delivered_fraction": pd.array(fractions, dtype="Float64")}
    return cast(
        Run,
        SimpleNamespace(
            is_done=True,
            state="done",
            rounds=pd.DataFrame(rounds).assign(accuracy=pd.array(accuracies, dtype="Float64"), loss=known),
            vehicles=pd.DataFrame({"sojourn_ns": [int(1e9 * s) for s in sojourns_s]})
            if sojourns_s
            else pd.DataFrame(vehicles).assign(delay_ns=[int(1e9 * (3 + k)) for k in range(len(fractions))]),
            experiment=SimpleNamespace(learning=SimpleNamespace(loss=loss)),
            summary={"last_accuracy": accuracies[-1] if count else None},
        ),
    )


def sweep(tmp_path: Path, text: str, *settings: str) -> Sweep:
    """The sweep of a TOML file with a [run] table and this text."""
    file = tmp_path / "s.toml"
    file.write_text(HEAD + text)
    return load_sweep(file, settings)


def pretend(monkeypatch: pytest.MonkeyPatch, runs: Mapping[tuple[Any, ...], Run]) -> None:
    """Replace `Point.run`: points have these runs, by label (if any), values and seed; other points have none."""

    def find(point: Point, out: Path) -> Run | None:
        label = () if point.label is None else (point.label,)
        return runs.get((*label, *point.values.values(), point.seed))

    monkeypatch.setattr(Point, "run", find)
