"""The commands `sweep` and `figure`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vefl_sim.core.errors import BadInput, RunFailed, printable

if TYPE_CHECKING:
    from vefl_sim.cli.progress import PipedConsole
    from vefl_sim.experiment.toml import ExperimentFile
    from vefl_sim.sweep.points import Sweep

# As in main.py, heavy imports happen inside the commands.

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE", help="TOML files that define a sweep (table sweep) or a comparison (tables compare)."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.KEY=VALUE",
        help="Override one key, in TOML syntax; without a value, remove it. Can be repeated.",
    ),
]
Watch = Annotated[
    list[str] | None,
    typer.Option("--watch", metavar="MODULE:NAME", help="Add a watcher to run.watch. Can be repeated."),
]
Seeds = Annotated[
    str | None,
    typer.Option(metavar="SEEDS", help="Seeds to run with, instead of those in the file, for example 1,2,3 or 1-5."),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the experiment with all defaults, or list the points of a sweep or comparison with their states; "
        "and estimate the wall time, and for an experiment disk space and cost.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Out = Annotated[Path, typer.Option(help="Folder that contains the run directories.")]


def sweep(
    files: Files,
    settings: Settings = None,
    seeds: Seeds = None,
    watch: Watch = None,
    out: Out = Path("runs"),
    on: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Dask cluster to use: the address of its scheduler (tcp://…), or local-cluster to start one on this "
            "machine. Default: processes on this machine, without Dask.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Points to run in parallel. Default: one per core.")
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Start a new index if that of the sweep is of another version of vefl_sim; the old one is kept.",
        ),
    ] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Run all points of one or more sweeps; finished points are skipped, interrupted points are resumed."""
    from vefl_sim.analysis.figures.layout import require_drawable
    from vefl_sim.cli.progress import PipedConsole, showing_steps
    from vefl_sim.sweep.points import load_sweep, parse_seeds

    chosen = None if seeds is None else parse_seeds(seeds)
    with showing_steps(quiet):
        sweeps = [load_sweep(read_watched(file, watch or ()), settings or (), chosen) for file in files]
    names: dict[str, Path] = {}
    for loaded, file in zip(sweeps, files, strict=True):
        require_drawable(loaded)  # report mistakes in [figure] before the runs, not after them
        _require_new_name(names, loaded.name, file)
    console = PipedConsole(quiet=quiet)
    run_sweeps(sweeps, settings or (), out, console, dry_run=dry_run, on=on, workers=workers, restart=restart)


def read_watched(path: Path, watchers: Sequence[str]) -> "ExperimentFile":
    """Read a file, and add these watchers to its `run.watch`."""
    from vefl_sim.experiment.toml import read_experiment

    file = read_experiment(path)
    tables = file.copy_of_tables()
    run = tables.setdefault("run", {})
    own = run.get("watch", [])
    run["watch"] = [*own, *watchers] if isinstance(own, list) else own  # what is not a list is refused later
    return replace(file, tables=tables) if watchers else file


def run_sweeps(
    sweeps: "Sequence[Sweep]",
    settings: Sequence[str],
    out: Path,
    console: "PipedConsole",
    *,
    dry_run: bool = False,
    on: str | None = None,
    workers: int | None = None,
    restart: bool = False,
    fresh: bool = False,
) -> None:
    """Run all points that are not done with a progress display, or only list them; raises RunFailed if some fail.

    `settings` are the --set options, for the index; the console shows everything but errors.
    """
    from vefl_sim.cli.progress import SweepProgress, clock, live_display, showing_steps
    from vefl_sim.core.memory import cores, slowdown
    from vefl_sim.sweep.index import Index
    from vefl_sim.sweep.runner import Runner, Tasks, pool_for

    with showing_steps(console.quiet):
        indexes = [Index.of(loaded, out, settings, restart=restart) for loaded in sweeps]
        tasks = Tasks.of(indexes, out, fresh=fresh)
    tasks.workers = workers or cores()
    tasks.slowdown = slowdown(tasks.workers) if on is None else 1.0
    done = f", {len(tasks.having('done'))} of them done" if tasks.having("done") else ""
    if dry_run:
        for task in tasks:
            console.show(f"{task.status:8} {clock(tasks.factor * task.left_s):>8}  {task.point.title}")
        tasks.try_again()
        console.show(f"{len(tasks)} points{done}, about {clock(tasks.left_s())} on {tasks.workers} cores")
        return
    console.show(f"{len(tasks)} points{done}")
    tasks.try_again()
    if tasks.having("waiting"):
        pool = pool_for(on, tasks.workers, out)
        tasks.workers = pool.size()
        console.show(f"about {clock(tasks.left_s())} on {pool}")
        with live_display(console) as live:
            progress = SweepProgress(console, live)
            Runner(tasks, pool, progress).run()
        for warning in progress.warnings:
            console.show(warning)
    else:
        tasks.write_indexes()
    files = ", ".join(str(index.file) for index in indexes)
    console.show(f"{len(tasks.having('done'))} of {len(tasks)} points are done, see {files}")
    tasks.require_done()


def compare(
    sweep: "Sweep", settings: Sequence[str], out: Path, console: "PipedConsole", *, dry_run: bool, fresh: bool
) -> None:
    """Run the variants of a comparison as a sweep; then print their table, draw their figure and write the files.

    If some fail, this shows the others.
    """
    from vefl_sim.analysis.comparison import comparison_lines
    from vefl_sim.analysis.draw import draw_comparison
    from vefl_sim.analysis.figures.request import request_from
    from vefl_sim.sweep.comparison import Comparison

    detect, failure = request_from(sweep.figure).detect, None
    try:
        run_sweeps([sweep], settings, out, console, dry_run=dry_run, restart=True, fresh=fresh)
    except RunFailed as error:
        failure = error
    if not dry_run and (comparison := Comparison.of_done(sweep, out)):
        files = comparison.write()
        for line in comparison_lines(comparison, detect):
            console.show(line)
        folder = draw_comparison(comparison).parent
        console.show(f"in {folder}: {', '.join(files)}, comparison.png")
        console.show(f"To see it in the browser: python -m vefl_sim report {folder} --open")
    if failure:
        raise failure


def figure(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|RUN",
            help="TOML files that define a sweep or a comparison; or run directories, or the beginnings of their names "
            "in --out.",
        ),
    ],
    settings: Settings = None,
    seeds: Seeds = None,
    out: Out = Path("runs"),
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to write the files to. Default: <out>/figures/<name>; for a run, its directory."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of stored results, used for points without a run. Default: results, next to the file.",
        ),
    ] = None,
) -> None:
    """Draw the figure of each sweep as PDF and PNG, with its numbers as CSV; or the overview of a run.

    Exit code 1: drawn, but points are missing.
    """
    from vefl_sim.analysis.figures.drawing import IncompleteFigure, draw_figure, drawing_lines
    from vefl_sim.analysis.overview import draw_overview
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.sweep_report.source import find_table
    from vefl_sim.sweep.points import load_sweep, parse_seeds
    from vefl_sim.sweep.results.store import Store

    chosen = None if seeds is None else parse_seeds(seeds)
    if results and not results.is_dir():
        raise BadInput(f"--results {results} is not a folder: name the folder of the stored results.")
    if (settings or chosen or results) and not any(map(_is_sweep, files)):
        raise BadInput("--set, --seeds and --results have no effect on the overview of a run: remove them.")
    problems: list[str] = []
    incomplete: list[str] = []
    drawn: dict[str, Path] = {}
    for file in files:
        try:
            if not _is_sweep(file):
                if find_table(str(file), out) and not (file / "resolved.toml").is_file():
                    raise BadInput(
                        f"{file} holds the tables of a sweep or comparison: name its TOML file to draw its figure, or "
                        f"write its page with `python -m vefl_sim report {file}`."
                    )
                run = find_run(str(file), out)
                lines = [f"in {run.path}: {', '.join(path.name for path in draw_overview(run, to))}"]
            else:
                loaded = load_sweep(file, settings or (), chosen)
                _require_new_name(drawn, loaded.name, file)
                store = Store(results) if results else Store.beside(file)
                drawing = draw_figure(loaded, out, to, store if store.folder.is_dir() else None)
                lines = [*drawing_lines(drawing, out)]
                incomplete += [drawing.incomplete] if drawing.incomplete else []
            print("\n".join(map(printable, lines)), end="\n\n" if len(files) > 1 else "\n")
        except BadInput as error:  # the other figures are still drawn
            problems += [f"{file}: {problem}" for problem in error.problems] if len(files) > 1 else error.problems
    if problems:
        raise BadInput(problems)
    if incomplete:
        raise IncompleteFigure("\n".join(incomplete))


def _is_sweep(path: Path) -> bool:
    """Whether a path names a TOML file rather than a run; a file that does not exist is known by its ending."""
    return path.is_file() or (path.suffix == ".toml" and not path.is_dir())


def _require_new_name(files: dict[str, Path], name: str, file: Path) -> None:
    """Add the file of a sweep by its name, which no other file may have."""
    if (other := files.setdefault(name, file)) != file:
        raise BadInput(f"{other} and {file} have the same run.name, {name!r}: give each sweep a different name.")
