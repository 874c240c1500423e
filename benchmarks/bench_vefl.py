"""The VEFL sub-problem: our planners compared with the paper's Algorithm 2, repaired and as printed.

    python benchmarks/bench_vefl.py [--quick]

All methods take turns on each round, on one thread; prints a table and writes benchmarks/bench_vefl.json. Rounds are
those of `realistic_problem` in tests/optimize/vefl/vefl_problems.py: the default SLAs, Dirichlet shares of the data,
CVs anywhere in coverage, l_max = 100, N = 10. A slack budget is just above the cost of the best plan, a binding one
is half of that cost.
"""

from harness import QUICK, Figures, Turn, keep, progress, show, timed
from script import SMALL, answer_help

import statistics
from dataclasses import replace

from tests.optimize.vefl.vefl_problems import realistic_problem
from vefl_sim.optimize.vefl.problem import METHODS, REFERENCES, VeflPlan, VeflProblem, solve

ROUNDS, REFERENCE_ROUNDS = (2, 1) if SMALL else (20, 3) if QUICK else (100, 25)
COMPARED = [("PDPC", "lagrangian"), ("FDPC", "lagrangian"), ("PDPC", "exact"), ("PDPC", "sca")]
SHARES = {"slack": 1.001, "binding": 0.5}  # of the cost of the best plan without a budget


def rounds(cvs: int, share: float, count: int, *, everybody: bool) -> list[VeflProblem]:
    unlimited = [replace(realistic_problem(seed, cvs, budget=1e9), everybody=everybody) for seed in range(count)]
    return [replace(problem, budget=share * solve(problem).cost) for problem in unlimited]


def planned(problem: VeflProblem, method: str) -> tuple[float, VeflPlan]:
    fresh = replace(problem)  # a copy without the cached tables that another method has computed
    return timed(lambda: solve(fresh, method))


def measured(problems: list[VeflProblem]) -> dict[str, Figures]:
    """One row per method; all methods solve a round before the next round starts."""
    times: dict[str, list[float]] = {method: [] for method in METHODS + REFERENCES}
    plans: dict[str, list[VeflPlan]] = {method: [] for method in METHODS + REFERENCES}
    for index, problem in enumerate(problems):
        for method in METHODS + (REFERENCES if index < REFERENCE_ROUNDS else ()):
            seconds, plan = planned(problem, method)
            times[method].append(seconds)
            plans[method].append(plan)
    return {method: summary(times, plans, method) for method in times}


def summary(times: dict[str, list[float]], plans: dict[str, list[VeflPlan]], method: str) -> Figures:
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


def planners() -> Turn:
    """Case of `python benchmarks`: the median time of each method over some rounds with half the money."""
    problems = {name: rounds(35, 0.5, 15, everybody=name == "FDPC") for name in ("PDPC", "FDPC")}
    some = {(name, method): problems[name][: 15 if method == "lagrangian" else 5] for name, method in COMPARED}
    for (_, method), first in some.items():
        solve(first[0], method)  # import everything before anything is timed
    return lambda: {
        f"planners: {name} {method}, ms": 1e3 * statistics.median(planned(one, method)[0] for one in some[name, method])
        for name, method in some
    }


def main() -> None:
    for method in METHODS + REFERENCES:
        solve(realistic_problem(0, 15, budget=100.0), method)  # import everything before anything is timed
    results: dict[str, Figures] = {}
    for scheme in ("PDPC", "FDPC"):
        for cvs in (15,) if SMALL else (15, 35, 60):
            for budget, share in SHARES.items():
                progress(title := f"{scheme}, V = {cvs}, {budget:7}")
                rows = measured(rounds(cvs, share, ROUNDS, everybody=scheme == "FDPC"))
                results |= {f"{title} {method}": row for method, row in rows.items()}
    show("All methods on the same rounds", results)
    keep(__file__, results)


if __name__ == "__main__":
    answer_help(__doc__)
    main()
