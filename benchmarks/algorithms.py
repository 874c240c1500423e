"""The paper's Algorithms 2 and 4 with CVXPY compared with our solvers, on the rounds and slots of one experiment.

    python benchmarks/algorithms.py [EXPERIMENT] [--rounds 20] [--slots 200] [--minutes 20] [--set TABLE.KEY=VALUE ...]

PDPC and FDPC, without learning, on one thread. Prints three tables and writes benchmarks/algorithms.json:
- Algorithm 2 (`vefl.method`): one run per method. All methods plan the same rounds, so their plans are compared with
  the smallest of their bounds, round by round.
- Algorithm 4 (`rat.method`) on a sample of slots, every n-th of our run: each method solves the same problems.
  "below ours" is the difference of the objectives divided by Σ a·r of ours, where both meet the floors.
- Algorithm 4 at work, that is in every slot of a run: as many rounds as should fit in `--minutes`, at least one.
"""

from harness import ROOT

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import vefl_sim
from vefl_sim import Experiment, RatAllocation, RatProblem, Run, VeflError
from vefl_sim.experiment.toml import validated
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.optimize.rat.problem import solve

RUNS = tempfile.TemporaryDirectory(prefix="algorithms-")
SCHEMES = ("pdpc", "fdpc")
PLANNERS = ("lagrangian", "exact", "sca", "sca-printed")
ALLOCATORS = ("auto", "sca", "sca-perspective")
Row = dict[str, float]
Rows = dict[str, Row]


class Recorder:
    """Keeps the problem of every n-th slot; n = 0 keeps none."""

    def __init__(self) -> None:
        self.every, self.seen = 0, 0
        self.kept: list[RatProblem] = []

    def note(self, problem: RatProblem) -> None:
        if self.every and self.seen % self.every == 0:
            self.kept.append(problem)
        self.seen += 1

    def start(self, every: int) -> None:
        self.every, self.seen, self.kept = every, 0, []


RECORDER = Recorder()


def recording(problem: RatProblem) -> RatAllocation:
    """A RAT policy that keeps its problems and allocates with our method."""
    RECORDER.note(problem)
    return solve(problem)


def changed(experiment: Experiment, **keys: object) -> Experiment:
    """The experiment with some keys changed, written as table_key; keys that then have no effect get their defaults."""
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True)
    for key, value in keys.items():
        table, _, inner = key.partition("_")
        tables.setdefault(table, {})[inner] = value
    if "run_rounds" in keys:
        tables["run"].pop("duration_s", None)
    return without_unused_keys(validated(tables))


def simulated(experiment: Experiment) -> tuple[Run, float]:
    """The finished run, and the seconds it took."""
    began = time.perf_counter()
    run = vefl_sim.simulate(experiment, out=RUNS.name, fresh=True)
    return run, time.perf_counter() - began


def outcome(run: Run) -> Row:
    """Means over the rounds of a run: orders, deliveries, cost and energy."""
    rounds = run.rounds
    ordered = int(rounds["ordered"].sum())
    return {
        "dropped": int(rounds["plan_dropped"].sum()),
        "ordered": ordered / len(rounds),
        "p_suc": rounds["delivered"].sum() / ordered if ordered else float("nan"),
        "paid": rounds["cost"].mean(),
        "energy, J": rounds["energy_j"].mean(),
    }


def planned(experiment: Experiment, scheme: str) -> Rows:
    """Simulate one run per method of the VEFL sub-problem; one row each."""
    runs = {name: simulated(changed(experiment, scheme_kind=scheme, vefl_method=name))[0] for name in PLANNERS}
    observed = [run.vehicles[["round", "cv", "limit_ns", "worst_slots"]] for run in runs.values()]
    for other in observed[1:]:
        pd.testing.assert_frame_equal(observed[0], other)  # otherwise the bounds would belong to different problems
    bound = pd.concat([run.rounds["plan_bound"] for run in runs.values()], axis=1).min(axis=1)
    return {name: plan_row(run, bound) for name, run in runs.items()}


def plan_row(run: Run, bound: pd.Series) -> Row:
    objective, timings = run.rounds["plan_objective"], run.table("timings")
    plan_s = timings[timings["what"] == "plan"]["wall_s"]
    reached = (objective / bound)[bound > 0]
    return {
        "objective": objective.mean(),
        "of bound": objective.sum() / bound.sum(),
        "worst": reached.min(),
        "planned cost": run.rounds["planned_cost"].mean(),
        **outcome(run),
        "median, ms": 1e3 * plan_s.median(),
        "slowest, ms": 1e3 * plan_s.max(),
    }


def sampled(experiment: Experiment, scheme: str, slots: int) -> tuple[list[RatProblem], int, int]:
    """The problems of about `slots` slots of our run, its number of slots, and n if every n-th slot was taken."""
    total = int(simulated(changed(experiment, scheme_kind=scheme))[0].summary["slots_audited"])
    RECORDER.start(every := max(1, total // slots))
    simulated(changed(experiment, scheme_kind=scheme, rat_method="__main__:recording"))
    return RECORDER.kept, total, every


def allocated(problems: list[RatProblem]) -> Rows:
    """Solve each problem with all methods, which take turns; one row per method."""
    results: dict[str, list[tuple[float, RatAllocation]]] = {name: [] for name in ALLOCATORS}
    for problem in problems:
        for name in ALLOCATORS:
            results[name].append(timed(problem, name))
    return {name: allocation_row(problems, results[name], results["auto"]) for name in ALLOCATORS}


def timed(problem: RatProblem, method: str) -> tuple[float, RatAllocation]:
    began = time.perf_counter()
    allocation = solve(problem, method)
    return time.perf_counter() - began, allocation


def meets_floors(problem: RatProblem, allocation: RatAllocation) -> bool:
    return bool(np.all(allocation.rate_bps >= problem.floor_bps * (1 - 1e-6)))


def allocation_row(
    problems: list[RatProblem], solved: list[tuple[float, RatAllocation]], ours: list[tuple[float, RatAllocation]]
) -> Row:
    """One row of figures. Objectives are compared only where both meet the floors: missing a floor may raise them."""
    seconds = np.array([taken for taken, _ in solved])
    triples = [(problem, own, best) for problem, (_, own), (_, best) in zip(problems, solved, ours, strict=True)]
    met = [meets_floors(problem, own) for problem, own, _ in triples]
    below = [100 * shortfall(*triple) for triple in triples if all(meets_floors(triple[0], one) for one in triple[1:])]
    return {
        "slots": len(problems),
        "CVs": float(np.mean([len(problem.bits_left) for problem in problems])),
        "floors met": sum(met),
        "compared": len(below),
        "below ours, %": float(np.mean(below)) if below else float("nan"),
        "worst, %": max(below, default=float("nan")),
        "median, ms": 1e3 * float(np.median(seconds)),
        "mean, ms": 1e3 * float(seconds.mean()),
        "slowest, ms": 1e3 * float(seconds.max()),
    }


def shortfall(problem: RatProblem, own: RatAllocation, best: RatAllocation) -> float:
    """How far an objective is below ours, relative to Σ a·r of ours, because the objective itself may be negative."""
    worth = (problem.tradeoff + problem.slot_s * problem.bits_left) @ best.rate_bps
    return float((best.objective - own.objective) / worth)


def at_work(experiment: Experiment, scheme: str, rounds: int) -> Rows:
    """Simulate runs of the same length in which one method allocates every slot; one row per method."""
    rows: Rows = {}
    for name in ALLOCATORS:
        run, seconds = simulated(changed(experiment, scheme_kind=scheme, rat_method=name, run_rounds=rounds))
        slots = int(run.summary["slots_audited"])
        tx_slots = run.vehicles["tx_slots"].mean()
        per_slot_ms = 1e3 * float(run.summary["wall_s"]) / max(slots, 1)
        rows[name] = {
            "rounds": rounds,
            "slots": slots,
            **outcome(run),
            "slots per upload": tx_slots,
            "wall, s": seconds,
            "per slot, ms": per_slot_ms,
        }
    return rows


def rounds_within(minutes: float, slots_per_round: float, mean_ms: float, rounds: int) -> int:
    """How many rounds a method with this time per slot can run within the limit; at least one."""
    return max(1, min(rounds, int(60e3 * minutes / max(slots_per_round * mean_ms, 1e-9))))


def show(title: str, tables: dict[str, Rows]) -> None:
    names = list(next(iter(next(iter(tables.values())).values())))
    print(f"\n{title}\n{'':24}" + "".join(f"{name:>{max(10, len(name) + 2)}}" for name in names))
    for scheme, rows in tables.items():
        for method, row in rows.items():
            figures = "".join(f"{row[name]:{max(10, len(name) + 2)}.4g}" for name in names)
            print(f"{scheme:8}{method:16}{figures}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", nargs="?", default=str(ROOT / "experiments" / "paper" / "base.toml"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--slots", type=int, default=200, help="number of slots in the sample")
    parser.add_argument(
        "--minutes", type=float, default=20.0, help="time limit of a run in which Algorithm 4 allocates every slot"
    )
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", dest="settings")
    options = parser.parse_args()
    for name in ("rounds", "slots", "minutes"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be greater than 0.")
    return options


def warm_up(experiment: Experiment) -> None:
    """Compile and import everything before anything is timed."""
    for name in PLANNERS:
        simulated(changed(experiment, vefl_method=name, run_rounds=1))
    RECORDER.start(1)
    simulated(changed(experiment, rat_method="__main__:recording", run_rounds=1))
    for problem in RECORDER.kept[:1]:
        allocated([problem])


def main() -> None:
    options = arguments()
    try:
        experiment = vefl_sim.load(options.experiment, options.settings)
    except VeflError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    experiment = changed(experiment, learning_kind="none", run_rounds=options.rounds)
    warm_up(experiment)
    plans = {scheme: planned(experiment, scheme) for scheme in SCHEMES}
    show(f"Algorithm 2: the plans of {options.rounds} rounds, per round", plans)
    samples: dict[str, Rows] = {}
    live: dict[str, Rows] = {}
    for scheme in SCHEMES:
        problems, total, every = sampled(experiment, scheme, options.slots)
        samples[scheme] = allocated(problems)
        rows = samples[scheme]
        slowest = max(rows[name]["mean, ms"] for name in ALLOCATORS)
        rounds = rounds_within(options.minutes, total / options.rounds, slowest, options.rounds)
        whole = " and ".join(f"{total * rows[name]['mean, ms'] / 60e3:.2g} min ({name})" for name in ALLOCATORS[1:])
        print(f"\n{scheme}: one in {every} of {total} slots is sampled. All slots would take {whole}.")
        print(f"Runs with each method in every slot: {rounds} of {options.rounds} rounds.", flush=True)
        live[scheme] = at_work(experiment, scheme, rounds)
    show("Algorithm 4: the same slots by every method", samples)
    show("Algorithm 4 at work", live)
    results = {"vefl": plans, "rat sample": samples, "rat at work": live}
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=2, default=float) + "\n")


if __name__ == "__main__":
    main()
