"""What `learning.iterations_per_step` costs in accuracy and saves in time, in an experiment of yours.

    python benchmarks/iterations_per_step.py [FILE.toml] [--rounds 100] [--n 20] [--out runs] [TABLE.KEY=VALUE ...]

Runs FDPC and FedProx with n iterations per step and with 1, in the same world, and prints how far the accuracies of the
two are apart, round by round, and how much sooner the first was done. Runs that are done are not run again; one that
was interrupted is continued. Of the file only the tables of an experiment count, not [sweep], [[compare]] or seeds.
"""

import argparse
from pathlib import Path

import pandas as pd

import vefl_sim
from vefl_sim.experiment.toml import override, read_experiment
from vefl_sim.sweep.variants import variant_of

ROOT = Path(__file__).parents[1]
SCHEMES = {"FDPC": "fdpc", "FedProx": "fedprox"}


def run_of(file: Path, scheme: str, n: int, given: argparse.Namespace) -> vefl_sim.Run:
    """One run of the file, evaluated after every round; keys of the file that the scheme does not use are ignored."""
    tables = {name: table for name, table in read_experiment(file).items() if name in vefl_sim.Experiment.model_fields}
    override(tables, [f"run.rounds={given.rounds}", "learning.evaluate_every=1", *given.settings])
    own = {"scheme": {"kind": SCHEMES[scheme]}, "learning": {"iterations_per_step": n}}
    return vefl_sim.simulate(variant_of(tables, {"label": f"{scheme}-{n}", **own}).experiment, out=given.out)


def training_s(run: vefl_sim.Run) -> float:
    """Wall seconds of local training, without the first two rounds, which compile."""
    timings = run.table("timings").query("what == 'train' and round > 2")
    return float(timings["wall_s"].sum())


def lines(merged: vefl_sim.Run, single: vefl_sim.Run) -> list[str]:
    """The differences of one scheme."""
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
        *(f"  {message}" for message in at),
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
    parser.add_argument("--scheme", choices=SCHEMES, action="append", help="only this one; repeatable")
    parser.add_argument("settings", nargs="*", metavar="TABLE.KEY=VALUE")
    given = parser.parse_intermixed_args()
    if "=" in str(given.file):  # settings alone
        given.settings, given.file = [str(given.file), *given.settings], parser.get_default("file")
    for scheme in given.scheme or SCHEMES:
        merged, single = (run_of(given.file, scheme, n, given) for n in (given.n, 1))
        orders = merged.vehicles["iterations"].dropna()
        print(f"{scheme}, {given.n} iterations per step against 1, {given.rounds} rounds, mean l {orders.mean():.1f}:")
        print("\n".join(lines(merged, single)), flush=True)


if __name__ == "__main__":
    main()
