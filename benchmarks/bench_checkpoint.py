"""Cost of checkpoints: the time of each checkpoint, and the memory over a long run.

    OMP_NUM_THREADS=1 python benchmarks/bench_checkpoint.py

Runs the network side alone for 500 and for 2000 simulated seconds (add --long for 8000), each in its own process,
and the quickstart with real training; ten checkpoints each, which is far more than the default of one a minute. The
time of a checkpoint includes writing the rows of the tables, which a run without checkpoints has to write as well.
Takes some minutes; prints a table and writes it to benchmarks/bench_checkpoint.json.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import vefl_sim

ROOT = Path(__file__).parents[1]
NETWORK = {
    "run": {"name": "long"},
    "data": {"train_samples": 20_000, "test_samples": 100},
    "learning": {"kind": "none"},
}


def measure(duration_s: float | None) -> dict[str, float]:
    """Simulate one run in this process and return its figures; None: the quickstart."""
    if duration_s is None:
        experiment = vefl_sim.load(ROOT / "experiments" / "quickstart.toml")
    else:
        experiment = vefl_sim.from_tables(NETWORK | {"run": {"name": "long", "duration_s": duration_s}})
    experiment = vefl_sim.with_settings(experiment, f"run.checkpoint_every={experiment.rounds // 10}")
    with tempfile.TemporaryDirectory() as folder:
        run = vefl_sim.simulate(experiment, out=folder)
        timings = run.table("timings")
        spent = timings[timings["what"] == "checkpoint"]["wall_s"]
        return {
            "wall_s": run.summary["wall_s"],
            "checkpoints": len(spent),
            "checkpoint_ms": 1e3 * float(spent.median()),
            "largest_ms": 1e3 * float(spent.max()),
            "share_percent": 100 * float(spent.median()) / 60,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def main() -> None:
    durations: list[float | None] = [500.0, 2000.0] + [8000.0] * ("--long" in sys.argv) + [None]
    heads = ("wall, s", "checkpoints", "median, ms", "largest", "% at 1/min", "peak, MiB")
    print(f"{'run':32}" + "".join(f"{head:>{width}}" for head, (_, width, _) in zip(heads, _COLUMNS, strict=True)))
    table = {}
    for duration_s in durations:
        name = "quickstart" if duration_s is None else f"network alone, {duration_s:g} s"
        command = [sys.executable, __file__, "measure", json.dumps(duration_s)]
        figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        table[name] = figures
        row = "".join(f"{figures[key]:>{width}.{digits}f}" for key, width, digits in _COLUMNS)
        print(f"{name:32}{row}", flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(table, indent=2) + "\n")


_COLUMNS = (
    ("wall_s", 10, 1),
    ("checkpoints", 13, 0),
    ("checkpoint_ms", 12, 1),
    ("largest_ms", 9, 1),
    ("share_percent", 12, 2),
    ("peak_mib", 11, 0),
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(json.loads(sys.argv[2]))))
    else:
        main()
