"""vefl_sim beside its peers: plain SUMO for traffic, PyTorch and a Flower simulation for local training.

    python -m venv .venv-peers && .venv-peers/bin/pip install -r benchmarks/requirements-peers.txt
    python benchmarks/peers.py --peers .venv-peers/bin/python

Traffic: 600 s of the default grid with the same vehicles, routes and driver model, in steps of 0.1 s.
Learning: one round of federated averaging, in which the eight clients of bench_learning.py train the same CNN on one
thread; no network model, no evaluation. Flower's clients train with PyTorch, eager, and its times include Ray's
processes. For the other two the average of the eight models, one to two milliseconds, is left out.

All take turns, and learners have a process of their own in each turn, in which a first round is not timed. Figures are
medians. A peer that is not installed is skipped, with the reason.
"""

from harness import Figures, Skipped, Turn, cpu_s, measured, progress, show, timed
from script import SMALL

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from history import this_commit, this_machine

FOLDER = Path(__file__).parent
PACKAGES = ("jax", "numba", "eclipse-sumo"), ("torch", "flwr", "ray")  # of this Python, and of that of the peers
VERSIONS = """
import sys
from importlib.metadata import distributions
installed = {one.name: one.version for one in distributions()}
print(", ".join(f"{name} {installed[name]}" for name in sys.argv[1:] if name in installed) or "none")
"""


def versions(python: str, packages: tuple[str, ...]) -> str:
    """Versions of those packages that this Python can import."""
    return subprocess.check_output([python, "-c", VERSIONS, *packages], text=True).strip()


def in_own_process(name: str, python: str, modules: str, *script: str) -> Turn:
    """Prepare a learner: a turn starts its script, which prints the figures of one round as JSON."""
    if subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode:
        raise Skipped(f"{python} cannot import {modules} (see benchmarks/requirements-peers.txt)")

    def turn() -> Figures:
        printed = subprocess.check_output([python, "-W", "ignore", *script], text=True, timeout=600)
        return {f"{name}: {label}": value for label, value in json.loads(printed.splitlines()[-1]).items()}

    return turn


def one_round(learner: str) -> Figures:
    """Train all clients once with `ours` or `pytorch` of bench_learning.py, after a round that compiles."""
    import bench_learning

    bench_learning.THREADS = 1
    train = getattr(bench_learning, learner)()
    train()
    wall_s, (used_s, _) = timed(partial(timed, train, cpu_s), time.perf_counter)
    return {"CPU, s": used_s, "wall, s": wall_s}


def learning(peers: str, turns: int) -> None:
    """Print a row for each learner, and the reason for each that is skipped."""
    scripts = {
        "vefl_sim": (sys.executable, "jax", __file__, "--round", "ours"),
        "PyTorch eager": (peers, "torch", __file__, "--round", "pytorch"),
        "Flower, PyTorch eager": (peers, "torch, flwr, ray", str(FOLDER / "peer_flower.py")),
    }
    figures, skipped = measured({name: partial(in_own_process, name, *run) for name, run in scripts.items()}, turns)
    rows = {
        name: {unit: figures[f"{name}: {unit}"] for unit in ("CPU, s", "wall, s")}
        | {"CPU, of vefl_sim": figures[f"{name}: CPU, s"] / figures["vefl_sim: CPU, s"]}
        for name in scripts
        if name not in skipped
    }
    show("Learning: one round, eight clients, one thread", rows)
    for name, reason in skipped.items():
        print(f"{name} was skipped: {reason}")


def traffic(turns: int) -> None:
    """Print a row for our traffic, for SUMO alone, and for SUMO coupled to a run."""
    if not find_spec("sumo"):
        print("SUMO was skipped: it is not installed (pip install 'vefl_sim[sumo]')")
        return
    from bench_mobility import against_sumo

    progress("traffic")
    seconds = 10 if SMALL else 600
    show(f"Traffic: {seconds} s on the same grid", against_sumo(seconds, turns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peers", default=sys.executable, metavar="PYTHON", help="Python with PyTorch and Flower (this)"
    )
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="how often each is measured (5)")
    parser.add_argument("--round", choices=("ours", "pytorch"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns < 1 or not which(options.peers):
        parser.error("--turns must be at least 1" if options.turns < 1 else f"there is no program {options.peers}")
    if options.round:
        print(json.dumps(one_round(options.round)))
        return
    print(f"{this_machine()}; vefl_sim {this_commit()}, {versions(sys.executable, PACKAGES[0])}")
    print(f"peers: {versions(options.peers, PACKAGES[1])}")
    traffic(options.turns)
    learning(options.peers, options.turns)


if __name__ == "__main__":
    main()
