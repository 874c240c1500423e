"""Speed of a run: start-up, preparation, the network side alone, and the parts of its wall time.

    OMP_NUM_THREADS=1 python benchmarks/bench_run.py

Prints a table and writes it to benchmarks/bench_run.json. Compare only figures of the same run, as timings
vary between runs.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import vefl_sim

EXPERIMENT = {
    "run": {"name": "bench", "duration_s": 50.0},
    "data": {"train_samples": 4000, "test_samples": 100},
    "learning": {"kind": "none"},
    "trace": {"slots": "full"},
}


def help_s() -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "vefl_sim", "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def network_run() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        run = vefl_sim.simulate(vefl_sim.from_tables(EXPERIMENT), out=folder)
        slots = run.table("slots")["slot"].nunique()
        timings = run.table("timings")
        wall_s = run.summary["wall_s"]
        return {
            "prepare traffic, data and model, s": run.summary["prepare_s"],
            "network side alone, simulated s per s": run.summary["simulated_s"] / wall_s,
            "active slots": slots,
            "wall time per active slot, µs (all included)": 1e6 * wall_s / slots,
            "plan a round, ms (median)": 1e3 * float(timings[timings["what"] == "plan"]["wall_s"].median()),
        }


def main() -> None:
    figures = {"--help, s": help_s()} | network_run()
    print(f"{os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}")
    for name, value in figures.items():
        print(f"{name:46s} {value:10.3f}")
    Path(__file__).with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
