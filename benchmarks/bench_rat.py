"""The RAT sub-problem: our methods compared with the paper's Algorithm 4, and the MAC that runs them in every slot.

    python benchmarks/bench_rat.py [--quick] [--mac]

--mac prints the last table only, and writes nothing.

All methods take turns, on one thread; prints tables, writes benchmarks/bench_rat.json and pictures in docs/pictures.
Problems come from the slots of a run recorded here ("run") and from the generator that the tests use ("random",
tests/optimize/problems.py).
"""

from harness import QUICK, ROOT, Figures, Turn, keep, progress, show, timed
from script import SMALL, answer_help

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import vefl_sim
from tests.optimize.problems import random_problem
from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.core.rng import Streams
from vefl_sim.mobility.scene import Scene
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.optimize.rat.methods import AUTO
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem, solve
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.trace import Trace
from vefl_sim.radio.channel import uma

CELLS = [(prbs, backlogged) for prbs in (50, 100, 273) for backlogged in ((10,) if SMALL else (10, 50, 100, 300))]
MAC_TITLE = "The MAC in bursts, Z = 10, all steps included"
ACTIVE = (2,) if SMALL else (1, 2, 5, 8, 10)  # CVs that send
RECORDED: list[RatProblem] = []


def recording(problem: RatProblem) -> RatAllocation:
    """A RAT policy that keeps its problems; as it is Python, the MAC calls it in every slot."""
    RECORDED.append(problem)
    return solve(problem)


def recorded_problems() -> dict[int, list[RatProblem]]:
    """Problems of a crowded run at Z = 10, by the number of CVs scheduled."""
    experiment = vefl_sim.from_tables(
        {
            "run": {"name": "bench-rat", "rounds": 1 if SMALL else 3},
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


def solved(problem: RatProblem, method: str) -> tuple[float, RatAllocation]:
    return timed(lambda: solve(problem, method))


def meets_floors(problem: RatProblem, allocation: RatAllocation) -> bool:
    return bool(np.all(allocation.rate_bps >= problem.floor_bps * (1 - 1e-6)))


def gap(problem: RatProblem, allocation: RatAllocation) -> float:
    worth = (problem.tradeoff + problem.slot_s * problem.bits_left) * allocation.rate_bps
    return float((allocation.bound - allocation.objective) / worth.sum())


def small(problems: list[RatProblem], references: int) -> Figures:
    """Compare the exact methods with the paper's; they take turns on each problem."""
    times: dict[str, list[float]] = {"exact": [], "auto": [], "sca": []}
    met = below = compared = 0
    for index, problem in enumerate(problems):
        seconds, best = solved(problem, "exact")
        times["exact"].append(seconds)
        times["auto"].append(solved(problem, "auto")[0])
        if index < references:
            seconds, other = solved(problem, "sca")
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


def cell(prbs: int, backlogged: int, seed: int) -> RatProblem:
    """A slot of a cell with many CVs; if more are backlogged than there are pRBs, EDF schedules one CV per pRB.

    Those have the earliest deadlines, and can count on a share of their slots only (`slots_to_count_on`). Both are
    imitated by shorter deadlines; in such cells most floors cannot be met.
    """
    share = min(1.0, prbs / backlogged)
    return random_problem(min(backlogged, prbs), prbs, seed, tightness=0.5 / share**2)


def large_cell(prbs: int, backlogged: int, count: int) -> Figures:
    """Median time of a slot, and the certified gap where the floors are met; no median of fewer than half the slots."""
    times, gaps = [], []
    for problem in [cell(prbs, backlogged, seed) for seed in range(count)]:
        seconds, allocation = solved(problem, "large")
        times.append(seconds)
        if allocation.status == "gap":
            gaps.append(100 * gap(problem, allocation))
    return {
        "µs per slot": 1e6 * statistics.median(times),
        "slowest, µs": 1e6 * max(times),
        "median gap, %": statistics.median(gaps) if 2 * len(gaps) >= count else float("nan"),
        "largest gap, %": max(gaps, default=float("nan")),
        "feasible, of": len(gaps),
        "problems": count,
    }


def mac(cvs: int, seconds: float, fading: str = "rayleigh", seed: int = 7) -> Figures:
    """Time the whole process of the gNB with `cvs` long uploads; positions change every 0.1 s, by 2 m with "jakes"."""
    experiment = vefl_sim.from_tables({"run": {"name": "bench"}, "radio": {"fading": fading}})
    grid, env, step_m = SlotGrid.of_numerology(1), NanosecondEnvironment(), 0.0 if fading == "rayleigh" else 2.0
    channel = uma(experiment, Streams(seed))
    link, angle = channel.link, np.linspace(0, 6, cvs)

    def spots(step: int) -> Scene:
        """CVs on a circle of 150 m, all shifted back and forth."""
        x_m, y_m, none = 150 * np.cos(angle) + step_m * (step % 2), 150 * np.sin(angle), np.zeros(cvs)
        return Scene(to_ns(0.1) * step, np.arange(cvs), x_m, y_m, none, np.ones(cvs, np.bool_))

    channel.move(spots(0))
    channel.approach(spots(1))
    scheduler = MacScheduler(link, channel, edf, AUTO, grid.slot_s, tradeoff=grid.slot_s * 1e9)
    used = []
    ledger, trace = Ledger(), Trace(env)
    trace.on(Burst, lambda burst: used.append(burst.slots))
    gnb = GNodeB(env, grid, scheduler, ledger, trace, wait_for_tau=True)

    def streets():
        for step in range(1, 10**6):
            yield Instant(env, to_ns(0.1) * step, Precedence.COVERAGE)
            channel.move(spots(step))
            channel.approach(spots(step + 1))

    for cv in range(cvs):
        order = TrainOrder(cv, 1, 1, 1e9, 1, 0.0, 10**9, 0, 10**6, 0.0)
        gnb.offer(order, ledger.open(cv, 1, 1.0, 1.0), 0)
    env.process(streets())
    env.process(gnb.ticks())
    env.run(until=to_ns(0.2))  # compile, and let β settle
    used.clear()
    took_s, _ = timed(lambda: env.run(until=to_ns(0.2 + seconds)))
    return {"µs per slot": 1e6 * took_s / sum(used), "slots per burst": sum(used) / len(used)}


def slots() -> Turn:
    """Case of `python benchmarks`: the time of a slot by the number of CVs that send."""
    mac(2, 0.1)  # compile
    mac(2, 0.1, "jakes")

    def turn() -> Figures:
        """Both kinds of fading take turns, so that their ratio is fair."""
        slots = {(cvs, kind): mac(cvs, 0.3, kind)["µs per slot"] for cvs in ACTIVE for kind in ("rayleigh", "jakes")}
        rows = {f"slots: V = {cvs}, µs per slot": slots[cvs, "rayleigh"] for cvs in ACTIVE}
        return rows | {f"slots: V = {cvs}, jakes, µs per slot": slots[cvs, "jakes"] for cvs in ACTIVE}

    return turn


def cells() -> Turn:
    """Case of `python benchmarks`: time and certified gap of a slot by the numbers of pRBs and backlogged CVs."""
    solve(random_problem(3, 20, 0), "large")  # compile

    def turn() -> Figures:
        rows = {f"cells: Z = {prbs}, V = {cvs}": large_cell(prbs, cvs, 5) for prbs, cvs in CELLS}
        wanted = [(name, unit) for unit in ("µs per slot", "median gap, %") for name in rows]
        return {f"{name}, {unit}": row for name, unit in wanted if not np.isnan(row := rows[name][unit])}

    return turn


def cells_plot(rows: dict[str, Figures], path: Path) -> None:
    """Time of a slot and certified gap against the number of backlogged CVs, one line per number of pRBs."""
    figure, panels = _figure(1, 2)
    for axes, unit, scale in zip(panels, ("µs per slot", "median gap, %"), (1e-3, 1.0), strict=True):
        for prbs, colour in ((50, "#7aa0cf"), (100, "#4a6fa5"), (273, "#22303c")):
            sizes = [cvs for own, cvs in CELLS if own == prbs]
            values = [scale * rows[f"Z = {prbs}, V = {cvs}"][unit] for cvs in sizes]
            axes.plot(sizes, values, marker="o", ms=4, color=colour, label=f"Z = {prbs}")
        axes.set(xlabel="backlogged CVs", xscale="log", yscale="log")
        axes.set_xticks((10, 50, 100, 300), ("10", "50", "100", "300"))
    panels[0].set(ylabel="ms per slot (median)")
    panels[1].set(ylabel="certified gap, % (median)")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def _figure(rows: int, columns: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=(3.5 + 3 * columns, 3.8), layout="constrained")
    for panel in np.ravel(axes):
        panel.grid(color="#e8ecef")
    return figure, axes


def cost_plot(path: Path) -> None:
    figure, axes = _figure(1, 1)
    for cvs, colour in ((2, "#7aa0cf"), (5, "#4a6fa5"), (10, "#22303c")):
        every = (10, 50) if SMALL else (4, 6, 8, 10, 12, 16, 25, 50, 100, 200, 273)
        sizes = [prbs for prbs in every if prbs >= cvs]
        medians = []
        for prbs in sizes:
            problems = [random_problem(cvs, prbs, seed, tightness=0.5) for seed in range(1 if SMALL else 9)]
            medians.append(1e3 * statistics.median(solved(problem, "auto")[0] for problem in problems))
        axes.loglog(sizes, medians, marker="o", ms=4, color=colour, label=f"V = {cvs}")
    axes.axvspan(3.5, 12.5, color="#eef2f5", zorder=0)
    axes.text(6.6, 0.9, "exact", transform=axes.get_xaxis_transform(), ha="center", color="#6b7780")
    axes.text(60, 0.9, "with a bound", transform=axes.get_xaxis_transform(), ha="center", color="#6b7780")
    axes.set(xlabel="pRBs", ylabel="ms per slot (median)", title='rat.method = "auto"', xlim=(3.5, 320))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def mac_table() -> dict[str, Figures]:
    """Time of a slot in the whole process of the gNB, with fading that is independent and that is correlated."""
    results: dict[str, Figures] = {}
    mac(2, 0.1, "jakes")  # compile
    for cvs in ACTIVE:
        kinds: dict[str, list[Figures]] = {"rayleigh": [], "jakes": []}
        for seed in range(7, 8 if SMALL else 16):  # both kinds of fading take turns, in the same places
            for fading, measured in kinds.items():
                measured.append(mac(cvs, 0.2 if QUICK else 0.5, fading, seed))
        rows = {
            kind: {name: statistics.median(m[name] for m in turns) for name in turns[0]}
            for kind, turns in kinds.items()
        }
        results[f"{cvs} active"] = rows["rayleigh"] | {"× rayleigh": 1.0}
        ratio = rows["jakes"]["µs per slot"] / rows["rayleigh"]["µs per slot"]
        results[f"{cvs} active, jakes"] = rows["jakes"] | {"× rayleigh": ratio}
    return results


def main() -> None:
    if "--mac" in sys.argv:
        show(MAC_TITLE, mac_table())
        return
    references, count = (1, 2) if SMALL else (2, 30) if QUICK else (12, 200)
    for method in ("exact", "auto", "large"):
        solve(random_problem(3, 10, 0), method)  # compile, or load from numba's cache
    results: dict[str, dict[str, Figures]] = {"small": {}, "large": {}, "mac": {}}
    recorded = recorded_problems()
    for cvs in (2,) if SMALL else (2, 5, 10):
        if recorded.get(cvs):
            results["small"][f"run, V = {cvs}"] = small(recorded[cvs][:count], references)
        else:
            print(f"(the recorded run has no slot with V = {cvs}; its largest V is {max(recorded)})")
        problems = [random_problem(cvs, 10, seed, tightness=0.5) for seed in range(count)]
        results["small"][f"random, V = {cvs}"] = small(problems, references)
    show("Z = 10, medians", results["small"])
    for prbs, cvs in CELLS:
        progress(f"Z = {prbs}, V = {cvs}")
        results["large"][f"Z = {prbs}, V = {cvs}"] = large_cell(prbs, cvs, 1 if SMALL else 5 if QUICK else 30)
    show("Many pRBs, V CVs backlogged (random)", results["large"])
    results["mac"] = mac_table()
    show(MAC_TITLE, results["mac"])
    keep(__file__, results)
    cost_plot(ROOT / "docs" / "pictures" / "rat_cost.png")
    cells_plot(results["large"], ROOT / "docs" / "pictures" / "rat_cells.png")


if __name__ == "__main__":
    answer_help(__doc__)
    main()
