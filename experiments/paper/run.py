"""All figures and the table of the paper: runs what is not done yet, then draws everything.

    python experiments/paper/run.py              # the whole: 5 seeds, 400 rounds, all data; days on two cores
    python experiments/paper/run.py --quick      # 12 rounds, two seeds, 1000 samples: half an hour, to see it work

It prints the commands that it runs, so you can run them one by one, on a cluster, or with other settings. --quick takes
Fashion-MNIST if it is there, or else traffic signs that the program draws, and in the table those data sets that are
there; the whole needs all four.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vefl_sim.learning.datasets.inventory import inventory
from vefl_sim.learning.datasets.place import downloads

HERE = Path(__file__).parent
SELECTED = {"mnist": 8, "fashion-mnist": 10, "gtsrb": 8, "cifar10": 12}
"""CVs that PDPC selects, as the paper says for each data set."""
QUICK = (
    "run.duration_s=60",
    "vefl.max_local_iterations=8",
    "data.train_samples=1000",
    "data.test_samples=500",
)


def call(*arguments: str) -> int:
    """Run a command of the program, and show it."""
    print(f"\n$ python -m vefl_sim {shlex.join(arguments)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "vefl_sim", *arguments])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # it has heard of it, too, and saves what it has


def both(files: Sequence[Path], out: str, *options: str) -> int:
    """Sweep and draw; a point that fails does not keep the others from being drawn."""
    names = [os.path.relpath(file) for file in files]
    code = call("sweep", *names, "--out", out, *options)
    return code if code in (2, 130) else call("figure", *names, "--out", out, *options) or code


def settings(*pairs: str) -> list[str]:
    """As options."""
    return [word for pair in pairs for word in ("--set", pair)]


def table_data(kinds: Sequence[str]) -> str:
    """The rows of the table, for these data sets."""
    names = ", ".join(f'"{kind}"' for kind in kinds)
    return f"sweep.zip=[{{data.kind=[{names}], scheme.selected=[{', '.join(str(SELECTED.get(k, 8)) for k in kinds)}]}}]"


def quick(figures: Sequence[Path], table: Path, there: Sequence[str]) -> int:
    """Less of everything, on what there is."""
    out = "runs/paper-quick"
    stand_in = [] if "fashion-mnist" in there else ["data.kind=signs"]
    if stand_in:
        print("Fashion-MNIST is not there (python -m vefl_sim data get fashion-mnist): traffic signs take its place.")
    if missing := [kind for kind in SELECTED if kind not in there]:
        print(f"The table is without {', '.join(missing)}: python -m vefl_sim data get NAME would get them.")
    first = both(figures, out, "--seeds", "1-2", *settings(*QUICK, *stand_in))
    if first in (2, 130):
        return first
    return both([table], out, "--seeds", "1", *settings(*QUICK, table_data(there or ["signs"]))) or first


def whole(figures: Sequence[Path], table: Path, there: Sequence[str]) -> int:
    """As in the paper."""
    if missing := [kind for kind in SELECTED if kind not in there]:
        commands = ", ".join(f"python -m vefl_sim data get {kind}" for kind in missing)
        print(f"error: {', '.join(missing)} must be there first: {commands}", file=sys.stderr)
        return 2
    return both([*figures, table], "runs/paper")


def main() -> int:
    """Look which data are there, and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a reduced version of everything")
    chosen = parser.parse_args()
    held = inventory(downloads())
    there = [one.kind for one in held if one.state == "complete" or one.state.startswith("compact")]
    figures, table = sorted(HERE.glob("fig*.toml")), HERE / "table1.toml"
    return (quick if chosen.quick else whole)(figures, table, [kind for kind in SELECTED if kind in there])


if __name__ == "__main__":
    sys.exit(main())
