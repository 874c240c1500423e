"""All figures and the table of the paper, from the results in `results/` beside this file and from runs.

    python experiments/paper/run.py --figures    # draws everything from what is there, and runs nothing
    python experiments/paper/run.py --status     # what is there, what is missing, and how long it would take
    python experiments/paper/run.py --next 10    # runs the ten most useful points that are missing, and stores them
    python experiments/paper/run.py --add DIR    # stores the finished runs of a folder
    python experiments/paper/run.py --probe      # whether the code still gives the results that are stored
    python experiments/paper/run.py              # the whole: 5 seeds, 400 rounds, all data; days on two cores
    python experiments/paper/run.py --quick      # 12 rounds, two seeds, 1000 samples: half an hour, to see it work

Without options, and with --quick, it prints the commands that it runs, so you can run them one by one, on a cluster,
or with other settings. --quick takes Fashion-MNIST if it is there, or else traffic signs that the program draws, and in
the table those data sets that are there; the whole needs all four.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from vefl_sim.analysis.figures.drawing import NothingToDraw, draw_figure
from vefl_sim.analysis.figures.report import drawing_lines
from vefl_sim.core.errors import BadInput, RunFailed, RunInterrupted
from vefl_sim.learning.datasets.files.inventory import inventory
from vefl_sim.learning.datasets.files.location import downloads
from vefl_sim.sweep.points import Point, Sweep, load_sweep
from vefl_sim.sweep.results.gathering import Gathering, ResultsChanged, add_runs, duration, require_equal
from vefl_sim.sweep.results.keys import key_digest, keys_of
from vefl_sim.sweep.results.store import Store, runs_in

HERE = Path(__file__).parent
ACCEPTING = (
    "If that is meant, run python experiments/paper/run.py --probe --accept: results of these schemes are stale then."
)
SELECTED = {"mnist": 8, "fashion-mnist": 10, "gtsrb": 8, "cifar10": 12}
"""CVs that PDPC selects, as the paper says for each data set."""
QUICK = (
    "run.duration_s=60",
    "vefl.max_local_iterations=8",
    "data.train_samples=1000",
    "data.test_samples=500",
)
FIRST = ("fig05", "fig13", "fig17", "fig18", "fig15")
"""Figures that are wanted with all seeds before the others begin; all but the last need no learning."""
THEN = ("fig16", "fig14", "fig07", "fig08", "fig09", "fig10", "fig11", "fig12", "table1")
NAMED = 4
"""Points that are missing or stale are named for each figure; more are counted."""
DATA = ("fashion-mnist", "mnist", "gtsrb", "cifar10")


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


def data_there() -> list[str]:
    """The public data sets that are downloaded and whole."""
    return [one.kind for one in inventory(downloads()) if one.state.startswith("complete")]


def in_order(sweeps: Sequence[Sweep]) -> list[Point]:
    """All points, the most useful first, each once."""
    ranked = sorted(((rank(sweep.name, p), p) for sweep in sweeps for p in sweep.points), key=lambda one: one[0])
    found: dict[str, Point] = {}
    for _, point in ranked:
        found.setdefault(key_digest(keys_of(point.experiment)), point)
    return [*found.values()]


def rank(name: str, point: Point) -> tuple[float, ...]:
    """First the figures that are wanted whole, then two seeds of the others, then the rest."""
    data = point.experiment.data
    if name in FIRST:
        return 0, FIRST.index(name), 0, 0, point.seed
    place = THEN.index(name) if name in THEN else len(THEN)
    kind = DATA.index(data.kind) if data.kind in DATA else len(DATA)
    return 1 + (point.seed > 2), place, kind, data.dirichlet_alpha, point.seed


def gather(gathering: Gathering, sweeps: Sequence[Sweep], count: int) -> int:
    """Run the next points, those that have only a stale result last; those whose data set is not there are left out."""
    found = [(point, gathering.store.find(point)) for point in with_data(in_order(sweeps))]
    wanted = [point for point, result in found if not result]
    wanted += [point for point, result in found if result and result.stale]
    ready = [(point, run) for point in wanted if (run := point.run(gathering.out)) and run.is_done]
    require_equal(gathering.probe([point for point, _ in ready], again=False))
    add_runs(gathering.store, [run for _, run in ready], wanted, say)
    failed = gathering.gather(wanted, count)
    for problem in failed:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if failed else 0


def with_data(points: Sequence[Point]) -> Iterator[Point]:
    """The points that can be run here; the others are counted in a sentence."""
    there = data_there()
    for kind in DATA:
        absent = sum(point.experiment.data.kind == kind and not point.experiment.data.dir for point in points)
        if absent and kind not in there:
            say(f"{absent} points are left out, because {kind} is not there: python -m vefl_sim data get {kind}")
    for point in points:
        data = point.experiment.data
        if data.kind not in DATA or data.kind in there or data.dir:
            yield point


def status(gathering: Gathering, sweeps: Sequence[Sweep]) -> int:
    """What is there by figure, and how long the rest would take on one core."""
    missing: dict[str, Point] = {}
    say(f"{'':8}{'points':>8}{'stored':>8}{'stale':>8}{'missing':>9}   on one core")
    for sweep in sweeps:
        found = [gathering.store.find(point) for point in sweep.points]
        pairs = zip(sweep.points, found, strict=True)
        own = {key_digest(keys_of(point.experiment)): point for point, result in pairs if not result or result.stale}
        missing |= own
        stored, stale = sum(map(bool, found)), sum(bool(result and result.stale) for result in found)
        time = duration(sum(gathering.wall_s(point) for point in own.values())) if own else "nothing to do"
        say(f"{sweep.name:8}{len(found):>8}{stored:>8}{stale:>8}{len(found) - stored:>9}   {time}")
    left = sum(gathering.wall_s(point) for point in missing.values())
    say(f"{len(gathering.store)} results in {gathering.store.folder}; {len(missing)} points to run, {duration(left)}")
    for problem in gathering.store.problems:
        say(problem)
    return 0


def probe(gathering: Gathering, sweeps: Sequence[Sweep], accept: bool) -> int:
    """Run all probes and compare them with what is stored."""
    before = len(gathering.store.probes.probes)
    differ = gathering.probe([point for sweep in sweeps for point in sweep.points], accept=accept)
    if not accept:
        require_equal(differ)
    for name, message in differ.items():
        say(f"accepted, results of {name} are stale: {'; '.join(message)}")
    if new := len(gathering.store.probes.probes) - before:
        say(f"{new} probes are new")
    elif not differ:
        say("all probes are as stored")
    return 0


def figures(gathering: Gathering, sweeps: Sequence[Sweep]) -> int:
    """Draw everything from runs and stored results; a figure of which nothing is there is a line."""
    failed = False
    for sweep in sweeps:
        folder = gathering.out / "figures"
        try:
            drawing = draw_figure(sweep, gathering.out, folder, gathering.store)
            say("\n".join(drawing_lines(drawing, gathering.out, NAMED)) + "\n")
        except NothingToDraw as error:
            say(f"{error}\n")
        except BadInput as error:
            failed = True
            print(f"error: {error}\n", file=sys.stderr)
    return 2 if failed else 0


def say(line: str) -> None:
    """At once, also into a file."""
    print(line, flush=True)


def chosen_options() -> argparse.Namespace:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--quick", action="store_true", help="a reduced version of everything")
    what.add_argument("--figures", action="store_true", help="draw everything from what is there")
    what.add_argument("--next", type=count, metavar="N", help="run the N most useful missing points, and store them")
    what.add_argument("--status", action="store_true", help="what is stored and what is missing")
    what.add_argument("--add", type=Path, action="append", metavar="DIR", help="store finished runs; repeatable")
    what.add_argument("--probe", action="store_true", help="compare short runs with those stored beside the results")
    parser.add_argument("--accept", action="store_true", help="with --probe: what differs is meant")
    parser.add_argument("--nice", action="store_true", help="leave the cores to others who want them")
    parser.add_argument("--out", type=Path, help="parent of the run directories (runs/paper)")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="instead of the files of the paper")
    chosen = parser.parse_args()
    if problem := next(useless(chosen), None):
        parser.error(problem)
    return chosen


def count(text: str) -> int:
    """Of points: at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} points cannot be run: choose 1 or more")
    return number


def useless(chosen: argparse.Namespace) -> Iterator[str]:
    """What is given and would have no effect."""
    if chosen.accept and not chosen.probe:
        yield "--accept goes with --probe only"
    if not wants_results(chosen) and (chosen.files or chosen.out):
        yield "FILE and --out go with --figures, --status, --next, --add and --probe only"
    if len({file.resolve().parent for file in chosen.files}) > 1:
        yield "the FILEs lie in several folders, each with results of its own: call this once for each folder"
    if chosen.out and (chosen.status or chosen.add):
        yield "--out goes with --figures, --next and --probe only"


def main() -> int:
    """Look which data are there, and go."""
    chosen = chosen_options()
    if chosen.nice:
        os.nice(19)
    try:
        return (collected if wants_results(chosen) else from_scratch)(chosen)
    except BadInput as error:
        print("\n".join(f"error: {problem}" for problem in error.problems), file=sys.stderr)
        if isinstance(error, ResultsChanged):
            print(ACCEPTING, file=sys.stderr)
        return 2
    except OSError as error:
        reason = error.strerror or error
        print(f"error: {error.filename or 'a file'} cannot be used ({reason}): choose another --out.", file=sys.stderr)
        return 2
    except RunFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (RunInterrupted, KeyboardInterrupt) as error:
        print(str(error) or "stopped", file=sys.stderr)
        return 130


def wants_results(chosen: argparse.Namespace) -> bool:
    """Whether it is about the stored results."""
    return bool(chosen.add or chosen.figures or chosen.status or chosen.probe or chosen.next is not None)


def from_scratch(chosen: argparse.Namespace) -> int:
    """Run and draw all files of the paper."""
    there = [kind for kind in SELECTED if kind in data_there()]
    return (quick if chosen.quick else whole)(sorted(HERE.glob("fig*.toml")), HERE / "table1.toml", there)


def collected(chosen: argparse.Namespace) -> int:
    """Look at the stored results, or add to them."""
    files = chosen.files or [*sorted(HERE.glob("fig*.toml")), HERE / "table1.toml"]
    store = Store.beside(files[0])
    gathering, sweeps = Gathering(store, chosen.out or Path("runs/paper"), say), [load_sweep(file) for file in files]
    if chosen.add:
        added = add_runs(store, runs_in(chosen.add), [point for sweep in sweeps for point in sweep.points], say)
        say(f"{added} results added to {store.folder}")
        return 0
    if chosen.status or chosen.figures:
        return (status if chosen.status else figures)(gathering, sweeps)
    return probe(gathering, sweeps, chosen.accept) if chosen.probe else gather(gathering, sweeps, chosen.next)


if __name__ == "__main__":
    sys.exit(main())
