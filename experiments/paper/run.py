"""Run and draw all figures and the table of the paper, from runs and from the stored results in `results/`.

    python experiments/paper/run.py --figures    # draws everything from runs and stored results, and runs nothing
    python experiments/paper/run.py --claims     # judges every statement of the paper by the stored results
    python experiments/paper/run.py --status     # lists what is stored and missing, and how long the rest would take
    python experiments/paper/run.py --next 10    # runs the ten most useful missing points, and stores their results
    python experiments/paper/run.py --add DIR    # stores the finished runs of a folder, or the results of another store
    python experiments/paper/run.py --probe      # checks whether the code still gives the stored results
    python experiments/paper/run.py              # runs everything: 5 seeds, 400 rounds, all data; days on two cores
    python experiments/paper/run.py --quick      # a small version: 2 seeds, 12 rounds, 1000 samples; half an hour

Without options, and with --quick, it prints the commands that it runs, so that you can run them one by one, on a
cluster, or with other settings. --quick uses Fashion-MNIST if it is downloaded, or else traffic signs that the program
draws, and in the table the data sets that are downloaded; the full version needs all four.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from claims import judged, read_claims, summary, table
from collector import ResultCollector, ResultsChanged, add_runs, adopt_store, duration, require_unchanged, runs_in

from vefl_sim.analysis.figures.drawing import NothingToDraw, draw_figure, drawing_lines
from vefl_sim.cli.main import replace_unwritable_characters
from vefl_sim.core.errors import BadInput, RunFailed, RunInterrupted
from vefl_sim.learning.datasets.files import downloads
from vefl_sim.learning.datasets.public import inventory
from vefl_sim.sweep.points import Point, Sweep, load_sweep
from vefl_sim.sweep.results.keys import key_digest, keys_of
from vefl_sim.sweep.results.result import SUFFIX
from vefl_sim.sweep.results.store import Store

HERE = Path(__file__).parent
ACCEPTING = (
    "If this is intended, run python experiments/paper/run.py --probe --accept, which makes their stored results stale."
)
SELECTED = {"mnist": 8, "fashion-mnist": 10, "gtsrb": 8, "cifar10": 12}
"""Number of CVs that PDPC selects, for each data set of the paper."""
QUICK = (
    "run.duration_s=60",
    "vefl.max_local_iterations=8",
    "data.train_samples=1000",
    "data.test_samples=500",
)
ORDER = (
    *("fig05", "fig13", "fig17", "fig18", "fig15", "fig09", "fig07", "fig10"),
    *("fig14", "fig16", "fig08", "fig11", "fig12", "table1"),
)
"""Figures in the order in which they are run; the first four need no learning, and are run with all seeds."""
WITHOUT_LEARNING = ORDER[:4]
ALL_SEEDS_EARLY = ("fig15", "fig16")
NAMED_LAMBDAS = (0.0, 0.8, 1.0)
"""Values of λ that the paper names; those between are ours, and are run later."""
MAX_LISTED = 4
"""Missing or stale points that are listed for each figure; further ones are only counted."""
DATA = ("mnist", "fashion-mnist", "gtsrb", "cifar10")


def call(*arguments: str) -> int:
    """Print a command of the program, run it and return its exit code."""
    print(f"\n$ python -m vefl_sim {shlex.join(arguments)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "vefl_sim", *arguments])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the command receives the signal, too, saves its state and ends


def sweep_and_draw(files: Sequence[Path], out: str, *options: str) -> int:
    """Run the sweeps of some files and draw them, also if some points fail."""
    names = [os.path.relpath(file) for file in files]
    code = call("sweep", *names, "--out", out, *options)
    return code if code in (2, 130) else call("figure", *names, "--out", out, *options) or code


def settings(*pairs: str) -> list[str]:
    """The options `--set PAIR` for these pairs."""
    return [word for pair in pairs for word in ("--set", pair)]


def table_data(kinds: Sequence[str]) -> str:
    """The setting of sweep.zip that limits the table to these data sets."""
    names = ", ".join(f'"{kind}"' for kind in kinds)
    return f"sweep.zip=[{{data.kind=[{names}], scheme.selected=[{', '.join(str(SELECTED.get(k, 8)) for k in kinds)}]}}]"


def run_quick(figures: Sequence[Path], table: Path, downloaded: Sequence[str]) -> int:
    """Run and draw a small version of everything, with the data sets that are downloaded."""
    out = "runs/paper-quick"
    substitute = [] if "fashion-mnist" in downloaded else ["data.kind=signs"]
    if substitute:
        print("Fashion-MNIST is not downloaded (python -m vefl_sim data get fashion-mnist): traffic signs are used.")
    if missing := [kind for kind in SELECTED if kind not in downloaded]:
        print(f"The table is without {', '.join(missing)}: download them with python -m vefl_sim data get NAME.")
    first = sweep_and_draw(figures, out, "--seeds", "1-2", *settings(*QUICK, *substitute))
    if first in (2, 130):
        return first
    chosen = settings(*QUICK, table_data(downloaded or ["signs"]))
    return sweep_and_draw([table], out, "--seeds", "1", *chosen) or first


def run_all(figures: Sequence[Path], table: Path, downloaded: Sequence[str]) -> int:
    """Run and draw everything as in the paper."""
    if missing := [kind for kind in SELECTED if kind not in downloaded]:
        commands = ", ".join(f"python -m vefl_sim data get {kind}" for kind in missing)
        print(f"error: {', '.join(missing)} must be downloaded first: {commands}", file=sys.stderr)
        return 2
    return sweep_and_draw([*figures, table], "runs/paper")


def downloaded_data() -> list[str]:
    """The public data sets that are downloaded and complete."""
    return [holding.kind for holding in inventory(downloads()) if holding.state.startswith("complete")]


def in_order(sweeps: Sequence[Sweep]) -> list[Point]:
    """All points, the most useful first, each once."""
    ranked = sorted(((rank(sweep.name, p), p) for sweep in sweeps for p in sweep.points), key=lambda pair: pair[0])
    points: dict[str, Point] = {}
    for _, point in ranked:
        points.setdefault(key_digest(keys_of(point.experiment)), point)
    return [*points.values()]


def rank(name: str, point: Point) -> tuple[float, ...]:
    """Sort key of a point: its stage, then figure, data set, skew and seed."""
    data = point.experiment.data
    place = ORDER.index(name) if name in ORDER else len(ORDER)
    kind = DATA.index(data.kind) if data.kind in DATA else len(DATA)
    return stage(name, point), place, kind, data.dirichlet_alpha, point.seed


def stage(name: str, point: Point) -> int:
    """Stages: no learning; two seeds of the figures; their other λ; two seeds of the table; more seeds; the rest."""
    if name in WITHOUT_LEARNING:
        return 0
    if point.seed <= 2:
        is_ours = point.experiment.aggregation.sojourn_weight not in NAMED_LAMBDAS
        return 3 if name == "table1" else 2 if is_ours else 1
    return 4 if name in ALL_SEEDS_EARLY else 5 if point.seed == 3 else 6


def collect(collector: ResultCollector, sweeps: Sequence[Sweep], limit: int) -> int:
    """Run the next points, those with a stale result last; points whose data set is not downloaded are left out."""
    pairs = [(point, collector.store.find(point)) for point in with_data(in_order(sweeps))]
    wanted = [point for point, result in pairs if not result]
    wanted += [point for point, result in pairs if result and result.stale]
    finished = [(point, run) for point in wanted if (run := point.run(collector.out)) and run.is_done]
    require_unchanged(collector.probe([point for point, _ in finished], again=False))
    add_runs(collector.store, [run for _, run in finished], wanted, print_line)
    failed = collector.collect(wanted, limit)
    for problem in failed:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if failed else 0


def with_data(points: Sequence[Point]) -> Iterator[Point]:
    """The points whose data set is downloaded; a printed line counts the others."""
    downloaded = downloaded_data()
    for kind in DATA:
        left_out = sum(point.experiment.data.kind == kind and not point.experiment.data.dir for point in points)
        if left_out and kind not in downloaded:
            get = f"python -m vefl_sim data get {kind}"
            print_line(f"{left_out} points are left out, because {kind} is not downloaded: {get}")
    for point in points:
        data = point.experiment.data
        if data.kind not in DATA or data.kind in downloaded or data.dir:
            yield point


def print_status(collector: ResultCollector, sweeps: Sequence[Sweep]) -> int:
    """Print how many points of each figure are stored, and how long the rest would take on one core."""
    missing: dict[str, Point] = {}
    print_line(f"{'':8}{'points':>8}{'stored':>8}{'stale':>8}{'missing':>9}   on one core")
    for sweep in sweeps:
        results = [collector.store.find(point) for point in sweep.points]
        pairs = zip(sweep.points, results, strict=True)
        own = {key_digest(keys_of(point.experiment)): point for point, result in pairs if not result or result.stale}
        missing |= own
        stored, stale = sum(map(bool, results)), sum(bool(result and result.stale) for result in results)
        time = duration(sum(collector.expected_s(point) for point in own.values())) if own else "nothing to do"
        print_line(f"{sweep.name:8}{len(results):>8}{stored:>8}{stale:>8}{len(results) - stored:>9}   {time}")
    left = duration(sum(collector.expected_s(point) for point in missing.values()))
    print_line(f"{len(collector.store)} results in {collector.store.folder}; {len(missing)} points to run, {left}")
    for problem in collector.store.problems:
        print_line(problem)
    return 0


def probe(collector: ResultCollector, sweeps: Sequence[Sweep], accept: bool) -> int:
    """Run all probes and compare them with the stored ones."""
    before = len(collector.store.probes.probes)
    differ = collector.probe([point for sweep in sweeps for point in sweep.points], accept=accept)
    if not accept:
        require_unchanged(differ)
    for name, differences in differ.items():
        print_line(f"accepted, results of {name} are stale: {'; '.join(differences)}")
    if new := len(collector.store.probes.probes) - before:
        print_line(f"{new} probes are new")
    elif not differ:
        print_line("all probes are as stored")
    return 0


def draw_figures(collector: ResultCollector, sweeps: Sequence[Sweep]) -> int:
    """Draw everything from runs and stored results; for a figure without any result a line is printed."""
    failed = False
    for sweep in sweeps:
        folder = collector.out / "figures"
        try:
            drawing = draw_figure(sweep, collector.out, folder, collector.store)
            print_line("\n".join(drawing_lines(drawing, collector.out, MAX_LISTED)) + "\n")
        except NothingToDraw as error:
            print_line(f"{error}\n")
        except BadInput as error:
            failed = True
            print(f"error: {error}\n", file=sys.stderr)
    return 2 if failed else 0


def print_claims(collector: ResultCollector, sweeps: Sequence[Sweep]) -> int:
    """Print the verdict on every statement of the paper, from stored results."""
    by_name = {sweep.name: sweep for sweep in sweeps}
    claims = [claim for claim in read_claims(HERE / "claims.toml") if claim.figure in by_name]
    rows = [*judged(claims, by_name, collector.store.find)]
    print_line(f"{summary(rows)}\n\n{table(rows)}")
    return 0


def print_line(line: str) -> None:
    """Print a line at once, also if the output is a file."""
    print(line, flush=True)


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--quick", action="store_true", help="run a small version of everything")
    action.add_argument("--figures", action="store_true", help="draw everything from runs and stored results")
    action.add_argument("--claims", action="store_true", help="judge the paper's statements (claims.toml), as Markdown")
    action.add_argument("--next", type=count, metavar="N", help="run and store the N most useful missing points")
    action.add_argument("--status", action="store_true", help="list what is stored and what is missing")
    action.add_argument(
        "--add",
        type=Path,
        action="append",
        metavar="DIR",
        help="store the finished runs of a folder, or the results of another store; repeatable",
    )
    action.add_argument("--probe", action="store_true", help="check by short runs whether results have changed")
    parser.add_argument(
        "--accept", action="store_true", help="with --probe: accept the differences; older results become stale"
    )
    parser.add_argument("--nice", action="store_true", help="run with low priority")
    parser.add_argument("--out", type=Path, help="parent of the run directories (runs/paper)")
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="sweeps to use instead of those of the paper"
    )
    options = parser.parse_args()
    if problem := next(without_effect(options), None):
        parser.error(problem)
    return options


def count(text: str) -> int:
    """A number of points, at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} points cannot be run: choose 1 or more")
    return number


def without_effect(options: argparse.Namespace) -> Iterator[str]:
    """A problem for each option that would have no effect."""
    if options.accept and not options.probe:
        yield "--accept can only be used with --probe"
    if not uses_store(options) and (options.files or options.out):
        yield "FILE and --out can only be used with --figures, --claims, --status, --next, --add and --probe"
    if len({file.resolve().parent for file in options.files}) > 1:
        yield "the FILEs are in several folders, each with results of its own: call this once for each folder"
    if options.out and (options.status or options.claims or options.add):
        yield "--out can only be used with --figures, --next and --probe"


def main() -> int:
    """Run the command line; returns the exit code."""
    replace_unwritable_characters()
    options = parse_options()
    if options.nice:
        os.nice(19)
    try:
        return (with_store if uses_store(options) else from_scratch)(options)
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


def uses_store(options: argparse.Namespace) -> bool:
    """Whether the options read or change the stored results."""
    return bool(
        options.add or options.figures or options.claims or options.status or options.probe or options.next is not None
    )


def from_scratch(options: argparse.Namespace) -> int:
    """Run and draw all files of the paper."""
    downloaded = [kind for kind in SELECTED if kind in downloaded_data()]
    return (run_quick if options.quick else run_all)(sorted(HERE.glob("fig*.toml")), HERE / "table1.toml", downloaded)


def with_store(options: argparse.Namespace) -> int:
    """Use the stored results, or add to them."""
    files = options.files or [*sorted(HERE.glob("fig*.toml")), HERE / "table1.toml"]
    store = Store.beside(files[0])
    collector = ResultCollector(store, options.out or Path("runs/paper"), print_line)
    sweeps = [load_sweep(file) for file in files]
    if options.add:
        points = [point for sweep in sweeps for point in sweep.points]
        others = [Store(folder) for folder in options.add if any(folder.glob(f"*{SUFFIX}"))]
        added = sum(adopt_store(store, other, print_line) for other in others)
        folders = [folder for folder in options.add if folder not in [other.folder for other in others]]
        added += add_runs(store, runs_in(folders), points, print_line)
        print_line(f"{added} results added to {store.folder}")
        return 0
    if options.claims:
        return print_claims(collector, sweeps)
    if options.status or options.figures:
        return (print_status if options.status else draw_figures)(collector, sweeps)
    return probe(collector, sweeps, options.accept) if options.probe else collect(collector, sweeps, options.next)


if __name__ == "__main__":
    sys.exit(main())
