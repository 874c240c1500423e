"""Cost of checkpoints: the time of each checkpoint, and the memory over a long run.

    python benchmarks/bench_checkpoint.py [--long]

Runs the network side alone for 500 and for 2000 simulated seconds (add --long for 8000), each in its own process,
and the quickstart with real training; ten checkpoints each, which is far more than the default of one a minute. The
time of a checkpoint includes writing the rows of the tables, which a run without checkpoints has to write as well.
Takes some minutes; prints a table and writes it to benchmarks/bench_checkpoint.json.
"""

from harness import ROOT, Figures, Turn, keep, peak_mib, progress, show
from script import SMALL, answer_help

import json
import subprocess
import sys
import tempfile

import vefl_sim

CHECKPOINTS = 10


def measure(duration_s: float | None, samples: int = 20_000) -> Figures:
    """Simulate one run in this process and return its figures; None: the quickstart."""
    if duration_s is None:
        experiment = vefl_sim.load(ROOT / "experiments" / "quickstart.toml")
    else:
        tables = {"data": {"train_samples": samples, "test_samples": 100}, "learning": {"kind": "none"}}
        experiment = vefl_sim.from_tables(tables | {"run": {"name": "long", "duration_s": duration_s}})
    experiment = vefl_sim.with_settings(experiment, f"run.checkpoint_every={experiment.rounds // CHECKPOINTS}")
    with tempfile.TemporaryDirectory() as folder:
        run = vefl_sim.simulate(experiment, out=folder)
        timings = run.table("timings")
        spent = timings[timings["what"] == "checkpoint"]["wall_s"]
        return {
            "wall, s": run.summary["wall_s"],
            "checkpoints": len(spent),
            "median, ms": 1e3 * float(spent.median()),
            "largest, ms": 1e3 * float(spent.max()),
            "% at 1/min": 100 * float(spent.median()) / 60,
            "peak, MiB": peak_mib(),
        }


def checkpoint() -> Turn:
    """Case of `python benchmarks`: wall time, as a checkpoint waits for the disk."""
    return lambda: {"checkpoint: wall time, ms": measure(100.0, 4000)["median, ms"]}


def main() -> None:
    rows = {}
    lengths = [50.0] if SMALL else [500.0, 2000.0] + [8000.0] * ("--long" in sys.argv) + [None]
    for duration_s in lengths:
        name = "quickstart" if duration_s is None else f"network alone, {duration_s:g} s"
        progress(name)
        command = [sys.executable, __file__, "measure", json.dumps(duration_s)]
        rows[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    show("Ten checkpoints in each run", rows)
    keep(__file__, rows)


if __name__ == "__main__":
    answer_help(__doc__)
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(json.loads(sys.argv[2]))))
    else:
        main()
