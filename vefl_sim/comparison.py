"""Several variants of one experiment on the same world, and their figures side by side."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vefl_sim.errors import RunFailed
from vefl_sim.loading import Variant
from vefl_sim.provenance import config_digest
from vefl_sim.results import Run
from vefl_sim.session import Watcher
from vefl_sim.simulation import simulate

COLUMNS = ("ordered", "delivered", "p_suc", "cost", "energy_j", "accuracy", "best_accuracy")


@dataclass(frozen=True)
class Compared:
    """A variant and its run."""

    label: str
    run: Run


@dataclass(frozen=True)
class Comparison:
    """Finished runs, and where their comparison is kept."""

    path: Path
    runs: tuple[Compared, ...]

    def table(self) -> pd.DataFrame:
        """One row per variant: per round ordered, delivered, cost and energy; p_suc over ordered CVs; accuracy."""
        rows = [_figures(compared.run) for compared in self.runs]
        return pd.DataFrame(rows, index=pd.Index([c.label for c in self.runs], name="variant"), columns=list(COLUMNS))

    def write(self) -> None:
        """The table, and every round of every run, as CSV."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.table().to_csv(self.path / "comparison.csv")
        rounds = [c.run.rounds.assign(variant=c.label, run=c.run.path.name) for c in self.runs]
        pd.concat(rounds).to_csv(self.path / "rounds.csv", index=False)


def compare(
    variants: Sequence[Variant],
    out: str | Path = "runs",
    fresh: bool = False,
    watching: Callable[[Variant], AbstractContextManager[Watcher]] | None = None,
) -> Comparison:
    """Run all variants, or take the runs that are done already; `watching` gives somebody who watches each."""
    runs = []
    for variant in variants:
        try:
            with watching(variant) if watching else nullcontext() as watcher:
                run = simulate(variant.experiment, out=out, fresh=fresh, watcher=watcher)
        except RunFailed as error:
            raise RunFailed(f"compare, {variant.label!r}: {error}") from error
        runs.append(Compared(variant.label, run))
    digest = hashlib.sha256("".join(config_digest(variant.experiment) for variant in variants).encode()).hexdigest()
    return Comparison(Path(out) / f"{variants[0].comparison}-{digest[:8]}", tuple(runs))


def _figures(run: Run) -> dict[str, float | None]:
    rounds, summary = run.rounds, run.summary
    return {
        "ordered": rounds["ordered"].mean(),
        "delivered": rounds["delivered"].mean(),
        "p_suc": run.vehicles["delivered_fraction"].mean(),
        "cost": rounds["cost"].mean(),
        "energy_j": rounds["energy_j"].mean(),
        "accuracy": summary["last_accuracy"],
        "best_accuracy": summary["best_accuracy"],
    }
