"""The results of the variants of one experiment, which have the same traffic, channels and data, side by side."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.core.memory import cores
from vefl_sim.learning.metric import Metric, common_metric, metric_of_summary
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep import paired
from vefl_sim.sweep.index import Index
from vefl_sim.sweep.points import Point, Sweep
from vefl_sim.sweep.runner import Runner, SweepWatcher, Tasks, pool_for

SEEDS = "seeds.csv"
"""The table of a comparison with one row per run."""


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

    @classmethod
    def of(cls, sweep: Sweep, out: Path) -> "Comparison":
        """The comparison of the variants of a sweep whose points are all done below `out`."""
        runs = tuple(Compared(str(point.label), point.seed, _done_run(point, out)) for point in sweep.points)
        digest = hashlib.sha256("".join(point.digest for point in sweep.points).encode()).hexdigest()
        return cls(out / f"{sweep.name}-{digest[:8]}", runs)

    @classmethod
    def of_done(cls, sweep: Sweep, out: Path) -> "Comparison | None":
        """The comparison of those variants whose points are all done; None if there are none."""
        unfinished = {point.label for point in sweep.points if not (run := point.run(out)) or not run.is_done}
        points = tuple(point for point in sweep.points if point.label not in unfinished)
        return cls.of(replace(sweep, points=points), out) if points else None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every variant; only one if each variant was run once."""
        return tuple(c.seed for c in self.runs if c.label == self.runs[0].label)

    def by_label(self) -> dict[str, list[Run]]:
        """The runs of each variant, one per seed."""
        labels = dict.fromkeys(c.label for c in self.runs)
        return {label: [c.run for c in self.runs if c.label == label] for label in labels}

    @cached_property
    def by_seed(self) -> pd.DataFrame:
        """One row per (variant, seed): ordered, delivered, cost, energy per round; p_suc over ordered CVs; metric."""
        index = pd.MultiIndex.from_tuples([(c.label, c.seed) for c in self.runs], names=["variant", "seed"])
        return pd.DataFrame([_figures(c.run, self.metric) for c in self.runs], index=index)

    @cached_property
    def metric(self) -> Metric | None:
        """The metric of the runs that learn, such as the accuracy; None if they have different ones, or none."""
        return common_metric(metric for c in self.runs if (metric := metric_of_run(c.run)))

    def table(self) -> pd.DataFrame:
        """One row per variant: means over seeds, and with two or more the half-widths of their confidence intervals."""
        return paired.means(self.by_seed).assign(seeds=len(self.seeds))

    def _repr_html_(self) -> str:
        """The means of each variant, in a notebook."""
        return self.table().dropna(axis="columns", how="all").to_html(float_format="{:.4g}".format, na_rep="–")

    def differences(self) -> pd.DataFrame:
        """Differences of every variant from the first, paired by seed; one row per variant and figure."""
        return paired.differences(self.by_seed)

    def write(self) -> list[str]:
        """Write the table, the differences, the figures of every run and all rounds as CSV; returns the file names."""
        rounds = [c.run.rounds.assign(variant=c.label, run=c.run.path.name, seed=c.seed) for c in self.runs]
        files = {
            "comparison.csv": self.table().reset_index(),
            "differences.csv": self.differences(),
            SEEDS: self.by_seed.assign(run=[c.run.path.name for c in self.runs]).reset_index(),
            "rounds.csv": pd.concat(rounds),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        for name, rows in files.items():
            rows.to_csv(self.path / name, index=False)
        return list(files)


def compare(sweep: Sweep, out: str | Path = "runs", *, workers: int | None = None, fresh: bool = False) -> Comparison:
    """Run all variants of a file with [[compare]], as `load_sweep` reads it, with all seeds; then compare them.

    Finished runs are used again, unless `fresh` demands new ones. `workers`: runs at once, by default one per core.
    Raises RunFailed if a run fails; the others are kept.
    """
    out = Path(out)
    if sweep.axes or not sweep.labels:
        raise BadInput(f"{sweep.name}: only [[compare]] and seeds can be compared, no swept keys: use run_sweep.")
    tasks = Tasks.of([Index.of(sweep, out, restart=True)], out, fresh=fresh)
    Runner(tasks, pool_for(None, workers or cores(), out), SweepWatcher()).run()
    tasks.require_done()
    return Comparison.of(sweep, out)


def _done_run(point: Point, out: Path) -> Run:
    if (run := point.run(out)) and run.is_done:
        return run
    raise RunNotFound(f"{point.title} is not done in {out}: run the sweep first.")


def metric_of_run(run: Run) -> Metric | None:
    """The metric of a finished run; None if it has learnt nothing."""
    metric = metric_of_summary(run.experiment.learning.loss, run.summary)
    return metric if run.experiment.learning.kind != "none" else None


def _figures(run: Run, metric: Metric | None) -> dict[str, float]:
    """The figures of a run; those of its metric have its name, and are called accuracy if there is none."""
    rounds, summary = run.rounds, run.summary
    name = metric.name if metric else "accuracy"
    figures: dict[str, Any] = {
        "ordered": rounds["ordered"].mean(),
        "delivered": rounds["delivered"].mean(),
        "p_suc": run.vehicles["delivered_fraction"].mean(),
        "cost": rounds["cost"].mean(),
        "energy_j": rounds["energy_j"].mean(),
        name: metric.of_summary("last", summary) if metric else None,
        f"best_{name}": metric.of_summary("best", summary) if metric else None,
        "simulated_s": summary["simulated_s"],
        "wall_s": summary["wall_s"],
    }
    return {name: float("nan") if pd.isna(figure) else float(figure) for name, figure in figures.items()}
