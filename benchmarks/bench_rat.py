"""The RAT sub-problem: our methods compared with the paper's Algorithm 4, and the MAC that runs them in every slot.

    python benchmarks/bench_rat.py [--quick]

All methods take turns, on one thread; prints tables, writes benchmarks/bench_rat.json and docs/pictures/rat_cost.png.
Problems come from the slots of a run recorded here ("run") and from the generator that the tests use ("random",
tests/optimize/problems.py).
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import vefl_sim
from tests.optimize.problems import random_problem
from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.experiment.radio_tables import RadioTable
from vefl_sim.mobility.scene import Scene
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.optimize.rat.methods import AUTO
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, solve
from vefl_sim.protocol.events import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import MacScheduler
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.trace import Trace
from vefl_sim.radio.channel import UmaChannel
from vefl_sim.radio.fading import RayleighFading
from vefl_sim.radio.link import Link
from vefl_sim.radio.shadowing import LargeScale

QUICK = "--quick" in sys.argv
RECORDED: list[RatProblem] = []


def recording(problem: RatProblem) -> RatAllocation:
    """A RAT policy that keeps its problems; as it is Python, the MAC calls it in every slot."""
    RECORDED.append(problem)
    return solve(problem)


def recorded_problems() -> dict[int, list[RatProblem]]:
    """Problems of a crowded run at Z = 10, by the number of CVs scheduled."""
    experiment = vefl_sim.from_tables(
        {
            "run": {"name": "bench-rat", "rounds": 3},
            "radio": {"max_tx_power_w": 0.02},
            "vefl": {"budget": 5000.0, "sojourn_weight": 0.0},
            "scheme": {"selected": 40},
            "data": {"train_samples": 4000, "test_samples": 100},
            "learning": {"kind": "none"},
            "rat": {"method": "__main__:recording"},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        vefl_sim.simulate(experiment, out=folder)
    rng = np.random.default_rng(0)
    by_size: dict[int, list[RatProblem]] = {}
    for problem in RECORDED:
        by_size.setdefault(len(problem.bits_left), []).append(problem)
    return {
        cvs: [problems[i] for i in rng.permutation(len(problems))[:200]] for cvs, problems in sorted(by_size.items())
    }


def timed(problem: RatProblem, method: str) -> tuple[float, RatAllocation]:
    began = time.perf_counter()
    allocation = solve(problem, method)
    return time.perf_counter() - began, allocation


def meets_floors(problem: RatProblem, allocation: RatAllocation) -> bool:
    return bool(np.all(allocation.rate_bps >= problem.floor_bps * (1 - 1e-6)))


def gap(problem: RatProblem, allocation: RatAllocation) -> float:
    worth = (problem.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps
    return float((allocation.bound - allocation.objective) / worth.sum())


def small(problems: list[RatProblem], references: int) -> dict[str, float]:
    """Compare the exact methods with the paper's; they take turns on each problem."""
    times: dict[str, list[float]] = {"exact": [], "auto": [], "sca": []}
    met = below = compared = 0
    for index, problem in enumerate(problems):
        seconds, best = timed(problem, "exact")
        times["exact"].append(seconds)
        times["auto"].append(timed(problem, "auto")[0])
        if index < references:
            seconds, other = timed(problem, "sca")
            times["sca"].append(seconds)
            if meets_floors(problem, other) and best.status == "optimal":
                met += 1
                below += best.objective < other.objective - 1e-6 * abs(best.objective)
            compared += 1
    median = {name: statistics.median(values) for name, values in times.items() if values}
    return {
        "exact, µs": 1e6 * median["exact"],
        "auto, µs": 1e6 * median["auto"],
        "sca, ms": 1e3 * median["sca"],
        "sca / exact": median["sca"] / median["exact"],
        "sca / auto": median["sca"] / median["auto"],
        "sca problems": compared,
        "floors met": met,
        "exact below": below,
    }


def big(cvs: int, prbs: int, count: int) -> dict[str, float]:
    times, gaps = [], []
    for seed in range(count):
        problem = random_problem(cvs, prbs, seed, tightness=0.5)
        seconds, allocation = timed(problem, "large")
        times.append(seconds)
        if allocation.status == "gap":
            gaps.append(gap(problem, allocation))
    return {
        "large, ms": 1e3 * statistics.median(times),
        "median gap, %": 100 * statistics.median(gaps) if gaps else float("nan"),
        "largest gap, %": 100 * max(gaps, default=float("nan")),
        "feasible, of": len(gaps),
        "problems": count,
    }


def mac(cvs: int, seconds: float) -> dict[str, float]:
    """Time the whole process of the gNB with `cvs` long uploads; positions change every 0.1 s."""
    radio, grid, env = RadioTable(), SlotGrid.of_numerology(1), NanosecondEnvironment()
    link = Link.of(radio)
    channel = UmaChannel(
        link, LargeScale(radio, np.random.default_rng(1)), RayleighFading(7, radio.prbs, radio.antennas)
    )
    angle = np.linspace(0, 6, cvs)
    spots = Scene(0, np.arange(cvs), 150 * np.cos(angle), 150 * np.sin(angle), np.zeros(cvs), np.ones(cvs, np.bool_))
    channel.move(spots)
    scheduler = MacScheduler(link, channel, edf, AUTO, grid.slot_s, tradeoff=grid.slot_s * 1e9)
    used = []
    ledger, trace = Ledger(), Trace(lambda row: None)
    gnb = GNodeB(env, grid, scheduler, ledger, trace, True, lambda burst: used.append(burst.slots))

    def streets():
        for step in range(1, 10**6):
            channel.move(spots)
            yield Instant(env, to_ns(0.1) * step, Precedence.COVERAGE)

    for cv in range(cvs):
        order = TrainOrder(cv, 1, 1, 1e9, 1, 0.0, 10**9, 0, 10**6, 0.0)
        gnb.offer(order, ledger.open(cv, 1, 1.0, 1.0), 0)
    env.process(streets())
    env.process(gnb.ticks())
    env.run(until=to_ns(0.2))  # compile, and let β settle
    used.clear()
    began = time.perf_counter()
    env.run(until=to_ns(0.2 + seconds))
    return {"µs per slot": 1e6 * (time.perf_counter() - began) / sum(used), "slots per burst": sum(used) / len(used)}


def cost_plot(path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for cvs, colour in ((2, "#7aa0cf"), (5, "#4a6fa5"), (10, "#22303c")):
        sizes = [prbs for prbs in (4, 6, 8, 10, 12, 16, 25, 50, 100, 200, 273) if prbs >= cvs]
        medians = []
        for prbs in sizes:
            problems = [random_problem(cvs, prbs, seed, tightness=0.5) for seed in range(9)]
            medians.append(1e3 * statistics.median(timed(problem, "auto")[0] for problem in problems))
        axes.loglog(sizes, medians, marker="o", ms=4, color=colour, label=f"V = {cvs}")
    axes.axvspan(3.5, 12.5, color="#eef2f5", zorder=0)
    axes.text(6.6, 0.9, "exact", transform=axes.get_xaxis_transform(), ha="center", color="#6b7780")
    axes.text(60, 0.9, "with a bound", transform=axes.get_xaxis_transform(), ha="center", color="#6b7780")
    axes.set(xlabel="pRBs", ylabel="ms per slot (median)", title='rat.method = "auto"', xlim=(3.5, 320))
    axes.grid(color="#e8ecef")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    names = list(next(iter(rows.values())))
    print(f"{'':22}" + "".join(f"{name:>{max(12, len(name) + 2)}}" for name in names))
    for label, row in rows.items():
        print(f"{label:22}" + "".join(f"{row[name]:{max(12, len(name) + 2)}.4g}" for name in names))


def main() -> None:
    references, count = (2, 30) if QUICK else (12, 200)
    for method in ("exact", "auto", "large"):
        solve(random_problem(3, 10, 0), method)  # compile, or load from numba's cache
    results: dict[str, dict[str, dict[str, float]]] = {"small": {}, "large": {}, "mac": {}}
    recorded = recorded_problems()
    for cvs in (2, 5, 10):
        if recorded.get(cvs):
            results["small"][f"run, V = {cvs}"] = small(recorded[cvs][:count], references)
        else:
            print(f"(the recorded run has no slot with V = {cvs}; its largest V is {max(recorded)})")
        problems = [random_problem(cvs, 10, seed, tightness=0.5) for seed in range(count)]
        results["small"][f"random, V = {cvs}"] = small(problems, references)
    show("Z = 10, medians", results["small"])
    for prbs, cvs in ((50, 10), (50, 25), (100, 30), (273, 100)):
        results["large"][f"Z = {prbs}, V = {cvs}"] = big(cvs, prbs, 5 if QUICK else 30)
    show("Many pRBs (random)", results["large"])
    for cvs in (1, 2, 5, 8, 10):
        results["mac"][f"{cvs} active"] = mac(cvs, 0.3 if QUICK else 2.0)
    show("The MAC in bursts, Z = 10, all steps included", results["mac"])
    Path(__file__).with_suffix(".json").write_text(json.dumps(results, indent=2, default=float) + "\n")
    cost_plot(ROOT / "docs" / "pictures" / "rat_cost.png")


if __name__ == "__main__":
    main()
