"""What `learning.iterations_per_step` costs in accuracy and saves in time, for any experiment file.

    python benchmarks/iterations_per_step.py [FILE.toml] [--rounds 100] [--n 20] [--out runs] [TABLE.KEY=VALUE ...]

Runs FDPC and FedProx with n iterations per step and with 1, in the same world, and prints how far the two accuracies
differ, round by round, and how much faster the first was. Finished runs are not repeated; an interrupted run is
continued. Only the tables of an experiment are read from the file, not [sweep], [[compare]] or seeds.
"""

import script  # noqa: F401 (how it ends)

import argparse
from pathlib import Path

import pandas as pd

import vefl_sim
from vefl_sim.experiment.toml import override, read_experiment
from vefl_sim.sweep.points import experiment_of

ROOT = Path(__file__).parents[1]
SCHEMES = {"FDPC": "fdpc", "FedProx": "fedprox"}


def run_of(file: Path, scheme: str, n: int, options: argparse.Namespace) -> vefl_sim.Run:
    """One run of the file, evaluated after every round; keys of the file that the scheme does not use are ignored."""
    written = read_experiment(file).copy_of_tables()
    tables = {name: table for name, table in written.items() if name in vefl_sim.Experiment.model_fields}
    override(tables, [f"run.rounds={options.rounds}", "learning.evaluate_every=1", *options.settings])
    overrides = {"scheme": {"kind": SCHEMES[scheme]}, "learning": {"iterations_per_step": n}}
    experiment, _ = experiment_of(tables, {"label": f"{scheme}-{n}", **overrides})
    return vefl_sim.simulate(experiment, out=options.out)


def training_s(run: vefl_sim.Run) -> float:
    """Wall seconds of local training, without the first two rounds, in which code is compiled."""
    timings = run.table("timings").query("what == 'train' and round > 2")
    return float(timings["wall_s"].sum())


def lines(merged: vefl_sim.Run, single: vefl_sim.Run) -> list[str]:
    """Lines that describe the differences in accuracy and time for one scheme."""
    frames = (run.rounds.set_index("round")["accuracy"].astype(float) for run in (merged, single))
    accuracy = pd.concat(frames, axis=1, keys=["merged", "single"]).dropna()
    difference = accuracy["merged"] - accuracy["single"]
    marks = [k for k in (25, 50, 75, 100, 200, 300, 400) if k in difference.index] or [difference.index[-1]]
    at = (f"k = {k}: {accuracy.merged[k]:.4f} − {accuracy.single[k]:.4f} = {difference[k]:+.4f}" for k in marks)
    times = training_s(single), training_s(merged)
    walls = single.summary["wall_s"], merged.summary["wall_s"]
    return [
        f"  difference in accuracy: mean {difference.mean():+.4f}, mean absolute {difference.abs().mean():.4f}, "
        f"largest absolute {difference.abs().max():.4f} (k = {difference.abs().idxmax()})",
        *(f"  {text}" for text in at),
        f"  from round to round the accuracy of n = 1 moves by {accuracy.single.diff().abs().mean():.4f} on average",
        f"  training {times[0]:.1f} s → {times[1]:.1f} s: {times[0] / max(times[1], 1e-9):.1f} times faster; whole run "
        f"{walls[0]:.1f} s → {walls[1]:.1f} s: {walls[0] / walls[1]:.1f} times",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "experiments" / "paper" / "base.toml")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--n", type=int, default=20, help="iterations per step, compared with 1")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--scheme", choices=SCHEMES, action="append", help="run only this scheme; can be repeated")
    parser.add_argument("settings", nargs="*", metavar="TABLE.KEY=VALUE")
    options = parser.parse_intermixed_args()
    if "=" in str(options.file):  # no file was named, only settings
        options.settings, options.file = [str(options.file), *options.settings], parser.get_default("file")
    for scheme in options.scheme or SCHEMES:
        merged, single = (run_of(options.file, scheme, n, options) for n in (options.n, 1))
        orders = merged.vehicles["iterations"].dropna()
        print(
            f"{scheme}, {options.n} iterations per step against 1, {options.rounds} rounds, mean l {orders.mean():.1f}:"
        )
        print("\n".join(lines(merged, single)), flush=True)


if __name__ == "__main__":
    main()
