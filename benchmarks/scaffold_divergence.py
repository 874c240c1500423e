"""Why SCAFFOLD diverges in the world of experiments/baselines.toml with 20 iterations per step: one change each.

    python benchmarks/scaffold_divergence.py [--seeds 2 3] [--only "n = 20" "n = 5" …] [--out runs]

Prints the last accuracy, the first round in which some |c_v| is above 100, and for the CV that is first there: its
numbers of iterations, the rounds since its last update, and |c_v|, update by update. n is
`learning.iterations_per_step`, which is 20 if nothing else is said. A row takes one to three minutes.
"""

from harness import ROOT, progress

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import vefl_sim
from vefl_sim import Aggregated, Experiment, Local, LocalUpdate, trees
from vefl_sim.learning.learner import Model
from vefl_sim.schemes.baselines import Scaffold

FILE, DIVERGED, SHOWN = ROOT / "experiments" / "baselines.toml", 100.0, 6


class Row(NamedTuple):
    """The control variate of a CV after an update."""

    round: int  # counts rounds with updates
    cv: int
    iterations: int
    size: float  # |c_v|


NOTES: list[Row] = []
"""The control variates of the run that was simulated last."""


class AsPublished(Scaffold):
    """SCAFFOLD that notes its control variates."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.memory["round"] = 0
        NOTES.clear()

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        aggregated = super().aggregate_updates(updates, model)
        self.memory["round"] += 1
        sizes = {u.cv: float(np.linalg.norm(trees.vector(self.memory["variates"][u.cv]))) for u in updates}
        NOTES.extend(Row(self.memory["round"], u.cv, u.iterations, sizes[u.cv]) for u in updates)
        return aggregated


class ZeroForNewCvs(AsPublished):
    """A new CV starts with c_v = 0, not with c: its first steps are corrected by c."""

    def local(self, cv: int) -> Local:
        if self.memory["mean"] is not None and cv not in self.memory["variates"]:
            self.memory["variates"][cv] = trees.zeros(self.memory["mean"])
        return super().local(cv)


class OnlyLastRound(AsPublished):
    """Only CVs that delivered in the last round have a c_v; c is the mean of these, and all other CVs are new."""

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        aggregated, variates = super().aggregate_updates(updates, model), self.memory["variates"]
        self.memory["variates"] = {update.cv: variates[update.cv] for update in updates}
        self.memory["mean"] = trees.mean([variates[update.cv] for update in updates])
        return aggregated


class NotCorrected(AsPublished):
    """No step is corrected: FedAvg with equal weights."""

    def local(self, cv: int) -> Local:
        return Local()

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Aggregated:
        self.memory["variates"], self.memory["mean"] = {}, None  # else mean gradients would be computed wrongly
        return super().aggregate_updates(updates, model)


class Unconstrained(AsPublished):
    """SCAFFOLD without constraints, which a scheme of a user's own decides itself."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._constrained = False


CASES: dict[str, tuple[type[AsPublished], tuple[str, ...]]] = {
    "n = 20": (AsPublished, ()),
    "n = 5": (AsPublished, ("learning.iterations_per_step=5",)),
    "not corrected": (NotCorrected, ()),
    "new CVs: c_v = 0": (ZeroForNewCvs, ()),
    "c_v of the last round only": (OnlyLastRound, ()),
    "without constraints": (Unconstrained, ()),
}


def simulated(case: str, seed: int, out: Path) -> vefl_sim.Run:
    """The run of a case, always simulated anew, because its control variates are not in its tables."""
    scheme, settings = CASES[case]
    points = vefl_sim.load_sweep(FILE, seeds=[seed]).points
    [experiment] = (point.experiment for point in points if point.experiment.scheme.kind == "scaffold")
    coarse = ("learning.iterations_per_step=20", *settings)
    changed = vefl_sim.with_settings(experiment, f"scheme.kind=__main__:{scheme.__name__}", *coarse)
    return vefl_sim.simulate(changed, out=out, fresh=True)


def described(run: vefl_sim.Run) -> str:
    """Last accuracy; when |c_v| was too large first, and how the c_v of this CV had grown."""
    accuracy = run.rounds["accuracy"].dropna().iloc[-1]
    first = next((row for row in NOTES if not row.size < DIVERGED), None)
    if first is None:
        return f"accuracy {accuracy:.3f}, largest |c_v| {max((row.size for row in NOTES), default=0.0):.0f}"
    own = [row for row in NOTES if row.cv == first.cv and row.round <= first.round]
    last = own[-SHOWN:]
    ages = [row.round - before.round for before, row in pairwise(own)][-SHOWN + 1 :]
    return (
        f"accuracy {accuracy:.3f}, |c_v| > {DIVERGED:.0f} in round {first.round}: CV {first.cv}, {len(own)} updates, l "
        f"{' '.join(str(row.iterations) for row in last)}, rounds between them {' '.join(map(str, ages))}, "
        f"|c_v| {' '.join(f'{row.size:.3g}' for row in last)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2])
    parser.add_argument("--only", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    for seed in options.seeds:
        for case in options.only:
            progress(f"seed {seed}, {case}")
            print(f"seed {seed}, {case}: {described(simulated(case, seed, options.out))}", flush=True)


if __name__ == "__main__":
    main()
