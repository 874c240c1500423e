"""Several variants of one experiment with the same traffic, channels and data, and their results side by side."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from vefl_sim.core.errors import BadInput, RunFailed
from vefl_sim.records.identity import config_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.simulation.run import simulate
from vefl_sim.simulation.session import RunWatcher
from vefl_sim.sweep import paired
from vefl_sim.sweep.variants import Variant


@dataclass(frozen=True)
class Compared:
    """The run of one variant with one seed."""

    label: str
    seed: int
    run: Run


@dataclass(frozen=True)
class Comparison:
    """The finished runs of all variants, and the folder for the files of the comparison."""

    path: Path
    runs: tuple[Compared, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every variant; only one if each variant was run once."""
        return tuple(c.seed for c in self.runs if c.label == self.runs[0].label)

    def by_label(self) -> dict[str, list[Run]]:
        """The runs of each variant, one per seed."""
        return {label: [c.run for c in self.runs if c.label == label] for label in _labels(self.runs)}

    @cached_property
    def by_seed(self) -> pd.DataFrame:
        """One row per (variant, seed): ordered, delivered, cost, energy per round; p_suc over ordered CVs; accuracy."""
        index = pd.MultiIndex.from_tuples([(c.label, c.seed) for c in self.runs], names=["variant", "seed"])
        return pd.DataFrame([_figures(c.run) for c in self.runs], index=index)

    def table(self) -> pd.DataFrame:
        """One row per variant: means over seeds, and with two or more the half-widths of their confidence intervals."""
        return paired.means(self.by_seed).assign(seeds=len(self.seeds))

    def differences(self) -> pd.DataFrame:
        """Differences of every variant from the first, paired by seed; one row per variant and figure."""
        return paired.differences(self.by_seed)

    def write(self) -> list[str]:
        """Write the table, the differences, the figures of every run and all rounds as CSV; returns the file names."""
        rounds = [c.run.rounds.assign(variant=c.label, run=c.run.path.name, seed=c.seed) for c in self.runs]
        files = {
            "comparison.csv": self.table().reset_index(),
            "differences.csv": self.differences(),
            "seeds.csv": self.by_seed.assign(run=[c.run.path.name for c in self.runs]).reset_index(),
            "rounds.csv": pd.concat(rounds),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        for name, rows in files.items():
            rows.to_csv(self.path / name, index=False)
        return list(files)


def compare(
    variants: Sequence[Variant],
    out: str | Path = "runs",
    fresh: bool = False,
    watching: Callable[[Variant], AbstractContextManager[RunWatcher]] | None = None,
) -> Comparison:
    """Run all variants, or use runs that are already done; `watching` makes the watcher of each run."""
    _require_pairs(variants)
    runs = []
    for variant in variants:
        try:
            with watching(variant) if watching else nullcontext() as watcher:
                run = simulate(variant.experiment, out=out, fresh=fresh, watcher=watcher)
        except RunFailed as error:
            raise RunFailed(f"compare, {variant.label!r}, seed {variant.seed}: {error}") from error
        runs.append(Compared(variant.label, variant.seed, run))
    digest = hashlib.sha256("".join(config_digest(variant.experiment) for variant in variants).encode()).hexdigest()
    return Comparison(Path(out) / f"{variants[0].comparison}-{digest[:8]}", tuple(runs))


def place(variant: Variant, variants: Sequence[Variant]) -> str:
    """A line of text that says which of all runs this is, for example `variant 1 of 2: PDPC`."""
    labels = _labels(variants)
    seeds = [other.seed for other in variants if other.label == variant.label]
    seed = f", seed {seeds.index(variant.seed) + 1} of {len(seeds)}" if len(seeds) > 1 else ""
    with_seed = f" with seed {variant.seed}" if len(seeds) > 1 else ""
    return f"variant {labels.index(variant.label) + 1} of {len(labels)}{seed}: {variant.label}{with_seed}"


def _require_pairs(variants: Sequence[Variant]) -> None:
    """Refuse variants with different seeds, whose means are not comparable; variants of one run each may differ."""
    seeds = {label: sorted(v.seed for v in variants if v.label == label) for label in _labels(variants)}
    for label, own in seeds.items():
        if len(own) != len(set(own)):
            raise BadInput(f"compare, {label!r}: a seed appears twice: remove one of them.")
        if len(variants) > len(seeds) and own != sorted(seeds[variants[0].label]):
            raise BadInput(f"compare, {label!r}: its seeds are not those of {variants[0].label!r}: give all the same.")


def _labels(labelled: Sequence[Variant] | Sequence[Compared]) -> list[str]:
    return list(dict.fromkeys(one.label for one in labelled))


def _figures(run: Run) -> dict[str, float]:
    rounds, summary = run.rounds, run.summary
    figures: dict[str, Any] = {
        "ordered": rounds["ordered"].mean(),
        "delivered": rounds["delivered"].mean(),
        "p_suc": run.vehicles["delivered_fraction"].mean(),
        "cost": rounds["cost"].mean(),
        "energy_j": rounds["energy_j"].mean(),
        "accuracy": summary["last_accuracy"],
        "best_accuracy": summary["best_accuracy"],
        "simulated_s": summary["simulated_s"],
        "wall_s": summary["wall_s"],
    }
    return {name: float("nan") if pd.isna(figure) else float(figure) for name, figure in figures.items()}
