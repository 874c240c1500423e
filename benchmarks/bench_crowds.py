"""Whole runs without learning, with 1000 to 5000 vehicles on the streets of which 300 are in coverage; time and memory.

    python benchmarks/bench_crowds.py [--quick]

One thread, and one process per run. Prints a table and writes benchmarks/bench_crowds.json.
"""

from harness import QUICK, Figures, keep, peak_mib, progress, show
from script import SMALL, answer_help

import json
import subprocess
import sys
import tempfile
import time

from bench_run import Phases

import vefl_sim

BLOCKS = {1000: 11} if SMALL else {1000: 11, 2000: 17, 5000: 27}  # of a square grid that holds about this many vehicles
SIMULATED_S, IN_COVERAGE = (5.0, 30) if SMALL else (10.0 if QUICK else 50.0, 300)


def run(scheme: str, blocks: int, simulated_s: float = SIMULATED_S) -> Figures:
    """Simulate a crowd in this process; the real-time factor is that of the rounds, without the preparation."""
    tables = {
        "run": {"name": "crowd", "duration_s": simulated_s},
        "roads": {"blocks": blocks},
        "traffic": {"mean_in_coverage": IN_COVERAGE},
        "scheme": {"kind": scheme},
        "data": {"train_samples": 4000, "test_samples": 100},
        "learning": {"kind": "none"},
    }
    phases = Phases()
    with tempfile.TemporaryDirectory() as folder:
        result = vefl_sim.simulate(vefl_sim.from_tables(tables), out=folder, watcher=phases)
        rounds_s, peak = time.process_time() - phases.started_s, peak_mib()  # before the tables below are read
        vehicles = result.table("mobility").groupby("time_ns").size().mean()
        in_coverage = result.rounds["in_coverage"].mean()
    return {
        "vehicles": vehicles,
        "in coverage": in_coverage,
        "preparation, s": phases.started_s - phases.preparing_s,
        "× real time": simulated_s / rounds_s,
        "µs per s and vehicle": 1e6 * rounds_s / simulated_s / vehicles,
        "peak, MiB": peak,
    }


def main() -> None:
    """Run every crowd with both schemes, each in a process of its own, so that the memory is that of one run."""
    if not SMALL:
        run("fdpc", BLOCKS[1000], 5.0)  # compile
    rows = {}
    for scheme in ("fdpc", "pdpc"):
        for vehicles, blocks in BLOCKS.items():
            progress(name := f"{scheme.upper()}, {vehicles} vehicles")
            command = [sys.executable, __file__, scheme, str(blocks), *sys.argv[1:]]
            rows[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    show(f"{SIMULATED_S:g} simulated seconds, about 300 CVs in coverage", rows)
    if not QUICK:
        keep(__file__, rows)


if __name__ == "__main__":
    answer_help(__doc__)
    if sys.argv[1:2] and sys.argv[1] in ("fdpc", "pdpc"):
        print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
