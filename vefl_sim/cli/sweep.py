"""The commands `sweep` and `figure`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vefl_sim.core.errors import BadInput, RunFailed

if TYPE_CHECKING:
    from vefl_sim.sweep.tasks import Tasks

# As in cli.py, heavy imports happen inside the commands.

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="TOML files with a table sweep, or several compare.", show_default=False),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a key of all points, in TOML syntax; repeatable."),
]
Seeds = Annotated[
    str | None, typer.Option(metavar="SEEDS", help="Instead of those in the files, for example 1,2,3 or 1-5.")
]
Out = Annotated[Path, typer.Option(help="Parent of the run directories.")]


def sweep(
    files: Files,
    settings: Settings = None,
    seeds: Seeds = None,
    out: Out = Path("runs"),
    on: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="A Dask cluster: the address of one that is there (tcp://…), or local-cluster to start one here; "
            "if not given, processes on this machine.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Points to run at once; if not given, one per core.", show_default=False)
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew beside an index of another version, which is kept.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points with their states, and say how long it would take.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run all points of one or more sweeps; what is done is skipped, what was interrupted goes on."""
    from vefl_sim.analysis.figures.drawing import require_drawable
    from vefl_sim.cli.progress import PipedConsole, clock
    from vefl_sim.cli.sweep_progress import watching
    from vefl_sim.sweep.executors.local import cores
    from vefl_sim.sweep.index import Index
    from vefl_sim.sweep.points import load_sweep
    from vefl_sim.sweep.runner import Runner
    from vefl_sim.sweep.seeds import parse_seeds
    from vefl_sim.sweep.sweeping import executor_for
    from vefl_sim.sweep.tasks import tasks_of

    chosen = None if seeds is None else parse_seeds(seeds)
    sweeps = [load_sweep(file, settings or (), chosen) for file in files]
    for found in sweeps:
        require_drawable(found)  # a mistake in how it is to be drawn is better told before the runs than after
    _require_names([found.name for found in sweeps], files)
    indexes = [Index.of(found, out, settings or (), restart=restart and not dry_run) for found in sweeps]
    tasks = tasks_of(indexes, out)
    console = PipedConsole(quiet=quiet)

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    tasks.workers = workers or cores()
    done = f", {len(tasks.having('done'))} of them done" if tasks.having("done") else ""
    if dry_run:
        for task in tasks:
            say(f"{task.entry.status:8} {clock(tasks.factor * task.left_s):>8}  {task.point.title}")
        tasks.try_again()
        say(f"{len(tasks)} points{done}, about {clock(tasks.left_s())} on {tasks.workers} cores")
        return
    say(f"{len(tasks)} points{done}")
    tasks.try_again()
    if tasks.having("waiting"):
        _make(out)
        executor = executor_for(on, tasks.workers, out)
        tasks.workers = executor.size()
        say(f"about {clock(tasks.left_s())} on {executor}")
        with watching(console) as audience:
            Runner(tasks, indexes, out, executor, audience).run()
    else:
        for index in indexes:
            index.write({digest: task.entry for digest, task in tasks.by_digest.items()})
    say(f"{len(tasks.having('done'))} of {len(tasks)} points are done, see {', '.join(str(i.file) for i in indexes)}")
    _require_all(tasks)


def figure(
    files: Files,
    settings: Settings = None,
    seeds: Seeds = None,
    out: Out = Path("runs"),
    to: Annotated[
        Path | None,
        typer.Option(help="Where the files go; if not given, <out>/figures/<name>.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Stored results, for points without a run; if not given, the folder results beside the file.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw sweeps from the points that are done or stored: the figure of each as PDF and PNG, its numbers as CSV."""
    from vefl_sim.analysis.figures.drawing import draw_figure
    from vefl_sim.analysis.figures.report import drawing_lines
    from vefl_sim.sweep.points import load_sweep
    from vefl_sim.sweep.results.store import FOLDER, Store
    from vefl_sim.sweep.seeds import parse_seeds

    chosen = None if seeds is None else parse_seeds(seeds)
    problems: list[str] = []
    stores: dict[Path, Store] = {}
    if results and not results.is_dir():
        raise BadInput(f"--results {results} is not a folder: name the folder of stored results.")
    drawn: dict[str, Path] = {}
    for file in files:
        try:
            found = load_sweep(file, settings or (), chosen)
            _require_names([found.name, *drawn], [file, *drawn.values()])
            drawn[found.name] = file
            folder = results or file.parent / FOLDER
            store = stores.setdefault(folder, Store(folder)) if folder.is_dir() else None
            lines = [*drawing_lines(draw_figure(found, out, to, store), out)]
            print("\n".join(lines), end="\n\n" if len(files) > 1 else "\n")
        except BadInput as error:  # the other figures are drawn all the same
            problems += [f"{file}: {problem}" for problem in error.problems] if len(files) > 1 else error.problems
    if problems:
        raise BadInput(problems)


def _require_names(names: list[str], files: list[Path]) -> None:
    for name in names:
        if names.count(name) > 1:
            both = [str(file) for file, other in zip(files, names, strict=True) if other == name]
            raise BadInput(f"{' and '.join(both)} have the same run.name, {name!r}: give each sweep one of its own.")


def _make(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file, and must be a folder: choose another.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out} cannot be made ({error.strerror}): choose another --out.") from None


def _require_all(tasks: "Tasks") -> None:
    failed = [task for task in tasks if task.entry.status != "done"]
    if failed:
        message = "".join(f"\n  {task.point.title}: {task.entry.error}" for task in failed[:5])
        more = f"\n  … and {len(failed) - 5} more, see the index" if len(failed) > 5 else ""
        raise RunFailed(
            f"{len(failed)} of {len(tasks)} points failed; the same command tries them again:{message}{more}"
        )
