"""Traffic on the grid: the compiled step beside its plain twin, wall time at three densities, and memory.

    python benchmarks/bench_mobility.py [--quick]

One thread. Prints a table and writes benchmarks/bench_mobility.json.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.mobility.plain_step import PlainStep, vehicles_of
from vefl_sim.experiment import Experiment, Mobility, Roads, Run, Traffic
from vefl_sim.mobility.coverage import crossings
from vefl_sim.mobility.motion import step
from vefl_sim.mobility.traffic import IdmTraffic
from vefl_sim.rng import Streams

QUICK = "--quick" in sys.argv
CHANGING = ("position_m", "speed_mps", "limit_m", "cleared", "asked_step")


def traffic_of(mean_in_coverage: float, blocks: int = 8) -> IdmTraffic:
    """The default traffic, or more of it on a larger grid."""
    experiment = Experiment(
        run=Run(name="bench"),
        roads=Roads(blocks=blocks),
        mobility=Mobility(),
        traffic=Traffic(mean_in_coverage=mean_in_coverage),
    )
    return IdmTraffic(experiment, Streams(1))


def wall_s(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def against_the_twin() -> dict[str, float]:
    """Median µs per step of both, in turns, on the same states."""
    traffic = traffic_of(35)
    streets, times = traffic.streets, ([], [])
    for _ in range(50 if QUICK else 300):
        traffic.advance()
        fleet = streets.fleet._replace(**{name: getattr(streets.fleet, name).copy() for name in CHANGING})
        rest = streets._ways, streets.signals, streets.rules, streets._now
        plain = PlainStep(vehicles_of(fleet), *rest)
        times[0].append(wall_s(plain.run))
        times[1].append(wall_s(lambda fleet=fleet, rest=rest: step(fleet, *rest)))
    plain_us, compiled_us = (1e6 * statistics.median(column) for column in times)
    return {"plain_us": plain_us, "compiled_us": compiled_us, "ratio": plain_us / compiled_us}


def long_run(mean_in_coverage: float, blocks: int, simulated_s: float) -> dict[str, float]:
    """Everything the simulator asks of mobility: scenes and crossings, every 0.1 s."""
    traffic = traffic_of(mean_in_coverage, blocks)
    radius_m, vehicles, scene = 500.0, [], traffic.scene()
    began = time.perf_counter()
    for _ in range(round(simulated_s / 0.1)):
        before, scene = scene, traffic.advance()
        crossings(before, scene, radius_m)
        vehicles.append(scene.vehicle.size)
    took_s = time.perf_counter() - began
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "vehicles": statistics.mean(vehicles),
        "simulated_s": simulated_s,
        "wall_s": took_s,
        "times_real_time": simulated_s / took_s,
        "peak_mib": peak_mib,
    }


def main() -> None:
    share = 0.1 if QUICK else 1.0
    figures: dict[str, Any] = {"step": against_the_twin(), "runs": []}
    print(
        "one step, 60 vehicles: {plain_us:.0f} µs plain, {compiled_us:.0f} µs compiled, {ratio:.0f}×".format(
            **figures["step"]
        )
    )
    print(f"{'vehicles':>9}{'simulated s':>13}{'wall s':>9}{'× real time':>13}{'peak MiB so far':>17}")
    for mean_in_coverage, blocks, simulated_s in ((35, 8, 2000), (35, 8, 8000), (330, 12, 500)):
        figures["runs"].append(run := long_run(mean_in_coverage, blocks, share * simulated_s))
        print(
            "{vehicles:9.0f}{simulated_s:13.0f}{wall_s:9.2f}{times_real_time:13.0f}{peak_mib:17.0f}".format(**run),
            flush=True,
        )
    if not QUICK:
        (ROOT / "benchmarks" / "bench_mobility.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
