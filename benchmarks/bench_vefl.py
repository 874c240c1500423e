"""The VEFL sub-problem: our planners compared with the paper's Algorithm 2, repaired and as printed.

    python benchmarks/bench_vefl.py [--quick]

All methods take turns on each round, on one thread; prints a table and writes benchmarks/bench_vefl.json. Rounds are
those of `realistic_problem` in tests/optimize/vefl/vefl_problems.py: the default SLAs, Dirichlet shares of the data,
CVs anywhere in coverage, l_max = 100, N = 10. A slack budget is just above the cost of the best plan, a binding one
is half of that cost.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.optimize.vefl.vefl_problems import realistic_problem
from vefl_sim.optimize.vefl.problem import METHODS, REFERENCES, VeflPlan, VeflProblem, solve

QUICK = "--quick" in sys.argv
ROUNDS, REFERENCE_ROUNDS = (20, 3) if QUICK else (100, 25)
SHARES = {"slack": 1.001, "binding": 0.5}  # of the cost of the best plan without a budget
Row = dict[str, float]


def rounds(cvs: int, share: float, *, everybody: bool) -> list[VeflProblem]:
    unlimited = [replace(realistic_problem(seed, cvs, budget=1e9), everybody=everybody) for seed in range(ROUNDS)]
    return [replace(problem, budget=share * solve(problem).cost) for problem in unlimited]


def timed(problem: VeflProblem, method: str) -> tuple[float, VeflPlan]:
    fresh = replace(problem)  # a copy without the cached tables that another method has computed
    began = time.perf_counter()
    plan = solve(fresh, method)
    return time.perf_counter() - began, plan


def measured(problems: list[VeflProblem]) -> dict[str, Row]:
    """One row per method; all methods solve a round before the next round starts."""
    times: dict[str, list[float]] = {method: [] for method in METHODS + REFERENCES}
    plans: dict[str, list[VeflPlan]] = {method: [] for method in METHODS + REFERENCES}
    for index, problem in enumerate(problems):
        for method in METHODS + (REFERENCES if index < REFERENCE_ROUNDS else ()):
            seconds, plan = timed(problem, method)
            times[method].append(seconds)
            plans[method].append(plan)
    return {method: summary(times, plans, method) for method in times}


def summary(times: dict[str, list[float]], plans: dict[str, list[VeflPlan]], method: str) -> Row:
    gaps = [100 * plan.gap for plan in plans[method]]
    pairs = list(zip(plans[method], plans["exact"], strict=False))
    reached = [plan.objective / best.objective for plan, best in pairs if best.objective > 0]
    return {
        "rounds": len(gaps),
        "median, ms": 1e3 * statistics.median(times[method]),
        "slowest, ms": 1e3 * max(times[method]),
        "mean gap, %": statistics.mean(gaps),
        "worst gap, %": max(gaps),
        "of optimum": statistics.mean(reached),
        "worst": min(reached),
        "sca / this": statistics.median(times["sca"]) / statistics.median(times[method]),
        "exact below": sum(best.objective < plan.objective * (1 - 1e-9) for plan, best in pairs),
        "dropped": sum(plan.dropped for plan in plans[method]),
    }


def show(title: str, rows: dict[str, Row], *, header: bool) -> None:
    names = list(next(iter(rows.values())))
    if header:
        print(f"{'':34}" + "".join(f"{name:>14}" for name in names))
    for method, row in rows.items():
        print(f"{title:22}{method:12}" + "".join(f"{row[name]:14.4g}" for name in names), flush=True)


def main() -> None:
    for method in METHODS + REFERENCES:
        solve(realistic_problem(0, 15, budget=100.0), method)  # import everything before anything is timed
    results: dict[str, dict[str, Row]] = {}
    for scheme in ("PDPC", "FDPC"):
        for cvs in (15, 35, 60):
            for budget, share in SHARES.items():
                title = f"{scheme}, V = {cvs}, {budget}"
                results[title] = measured(rounds(cvs, share, everybody=scheme == "FDPC"))
                show(title, results[title], header=len(results) == 1)
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
