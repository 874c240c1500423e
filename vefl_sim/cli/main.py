"""The command line program. Exit codes: 0 done, 1 run failed, 2 bad input, 130 interrupted."""

import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from vefl_sim.cli.create import data, map_, new
from vefl_sim.cli.inspect import Parts, RunName, check, evaluate, report, runs, schema, trace, verify
from vefl_sim.cli.sweep import DryRun, Out, Quiet, Seeds, Settings, Watch, compare, figure, read_watched, sweep
from vefl_sim.core.errors import BadInput, RunInterrupted, VeflError, first_line, printable

if TYPE_CHECKING:
    from vefl_sim.experiment.experiment import Experiment
    from vefl_sim.records.run_directory import Run

# Heavy imports (pydantic, jax, pandas, …) happen inside the commands, so that --help is fast.

app = typer.Typer(
    add_completion=False, no_args_is_help=True, invoke_without_command=True, pretty_exceptions_enable=False
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point; a first argument that is not a command is taken as the experiment file of `run`."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    replace_unwritable_characters()
    if args and args[0] not in {*typer.main.get_group(app).commands, "--help", "--version"}:
        args.insert(0, "run")
    try:
        app(args=args, prog_name="python -m vefl_sim")
    except BadInput as error:
        _fail(2, *error.problems)
    except RunInterrupted as error:
        print(f"interrupted: {error}", file=sys.stderr)
        sys.exit(130)
    except VeflError as error:
        problem, *details = str(error).split("\n")  # a sweep has a line for each point that failed
        _fail(1, problem, details=details)
    except OSError as error:  # of a file that a command names, or of a run; a run itself turns its own into RunFailed
        if error.filename is None:
            raise
        _fail(2, f"{error.filename} cannot be used: {error.strerror}.")


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Simulate vehicular edge federated learning. To run an experiment: python -m vefl_sim EXPERIMENT.toml"""
    if version:
        from importlib.metadata import version as package_version

        print(package_version("vefl_sim"))
        raise typer.Exit


def run(
    experiment: Annotated[Path, typer.Argument(help="TOML file of the experiment.")],
    settings: Settings = None,
    seeds: Seeds = None,
    watch: Watch = None,
    out: Out = Path("runs"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run again, in a new directory, even if this run is done.")
    ] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment; resume it if it was stopped, or print its summary if it is already done."""
    from vefl_sim.experiment.toml import load
    from vefl_sim.experiment.unused_keys import length_note

    file = read_watched(experiment, watch or ())
    if seeds is not None:
        from vefl_sim.sweep.points import compared_with_itself

        file = compared_with_itself(file)
    if "compare" in file.tables and "sweep" not in file.tables:
        from vefl_sim.cli.progress import PipedConsole, showing_steps
        from vefl_sim.sweep.points import load_sweep, parse_seeds

        with showing_steps(quiet):
            variants = load_sweep(file, settings or (), None if seeds is None else parse_seeds(seeds))
        compare(variants, settings or (), out, PipedConsole(quiet=quiet), dry_run=dry_run, fresh=fresh)
        return
    loaded = load(file, settings or ())
    if not quiet and (note := length_note(loaded, settings or ())):
        print(f"# note: {note}", file=sys.stderr)
    if dry_run:
        _dry_run(loaded)
        return
    from vefl_sim.simulation.run import simulate

    _run_with_progress(quiet, partial(simulate, loaded, out=out, fresh=fresh, toml=file.text, settings=settings or ()))


def resume(
    run: RunName,
    parts: Parts = None,
    watch: Watch = None,
    out: Out = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Resume a stopped or killed run from its last checkpoint."""
    from vefl_sim.analysis.runs import find_run, part_lines
    from vefl_sim.simulation.run import resume as resume_run

    found = find_run(run, out, unfinished=True)
    print(f"# {found.path} ({found.state})", file=sys.stderr)
    for line in part_lines(found, parts, watch or ()):
        print(f"# {line}", file=sys.stderr)
    _run_with_progress(quiet, partial(resume_run, found, parts=parts, watch=watch or ()))


def branch(
    run: RunName,
    settings: Settings = None,
    from_round: Annotated[
        int | None, typer.Option(help="The first round with the new values; without rounds, the first window of t_th.")
    ] = None,
    at_s: Annotated[
        float | None, typer.Option(help="Simulated time of the change, in seconds, instead of --from-round.")
    ] = None,
    parts: Parts = None,
    out: Out = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Run a finished or stopped run again with other values of keys from some time on, and print the difference.

    For example: python -m vefl_sim branch quickstart --from-round 11 --set vefl.budget=2000
    """
    from vefl_sim.analysis.branches import branch_lines
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.sweep.branch import branch as branch_of

    found = find_run(run, out)
    print(f"# from {found.path} ({found.state})", file=sys.stderr)
    made = _run_with_progress(
        quiet, partial(branch_of, found, settings or (), from_round=from_round, at_s=at_s, parts=parts)
    )
    if not quiet:
        print("\n".join(branch_lines(found, made)))


for command in (new, run, resume, branch, runs, report, evaluate, trace, verify, sweep, figure, check, schema):
    app.command()(command)
app.add_typer(data)
app.add_typer(map_)


def _run_with_progress(quiet: bool, work: "Callable[..., Run]") -> "Run":
    """Call `work` with a progress display, print the summary of the run it returns, and return this run."""
    from vefl_sim.analysis.summary import summary_lines
    from vefl_sim.cli.progress import PipedConsole, RunProgress, live_display
    from vefl_sim.core.stopping import stopping_at_once
    from vefl_sim.simulation.watcher import warnings_told

    console = PipedConsole(quiet=quiet)
    with live_display(console) as live:
        progress = RunProgress(console, live)
        try:
            with stopping_at_once(), warnings_told(progress.warned):
                finished = work(watcher=progress)
        except KeyboardInterrupt:
            raise RunInterrupted(_saved_progress(progress.run)) from None
    if not progress.run:
        console.show("This run is already done; its summary follows. To run it again, run the experiment with --fresh.")
    for line in (
        *summary_lines(finished, progress.rule),
        *(f"{'warning':16}{sentence}" for sentence in progress.warnings),
    ):
        console.show(line)
    if not quiet:
        console.show(f"{'report':16}{_report_page(finished, is_new=progress.run is not None)}")
    return finished


def _report_page(run: "Run", *, is_new: bool) -> str:
    """Where the report page of a run is; it is written if the run `is_new`, and fails no run if it cannot be."""
    from vefl_sim.analysis.report.page import NAME, write_report

    path = run.path / NAME
    if not is_new:  # what is done is not changed
        return str(path) if path.is_file() else f"python -m vefl_sim report {run.path} writes it"
    try:
        return str(write_report(run))
    except Exception as error:
        return f"not written ({first_line(error)}): python -m vefl_sim report {run.path} tries again"


def _saved_progress(run: "Run | None") -> str:
    """The message for a run that was stopped immediately: how many rounds are saved, and how to continue."""
    rounds = run.summary.get("rounds", 0) if run else 0
    if run is None or not rounds:
        return "stopped immediately; no rounds are saved yet, the same command starts again"
    return f"stopped immediately; {rounds} rounds are saved, continue with: python -m vefl_sim resume {run.path}"


def _dry_run(experiment: "Experiment") -> None:
    from vefl_sim.cli.dry_run import estimate
    from vefl_sim.experiment.toml import to_toml
    from vefl_sim.simulation.watcher import warnings_told

    print(to_toml(experiment))
    print("# simulating the first rounds to estimate the cost …", file=sys.stderr)
    with warnings_told(lambda sentence: print(f"# warning: {sentence}")):
        for line in estimate(experiment):
            print(f"# {line}")  # a TOML comment, so that the output is a valid experiment file


def replace_unwritable_characters() -> None:
    """Let a stream that is not UTF-8 show "?" for a character that it cannot write, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(code: int, *problems: str, details: Sequence[str] = ()) -> NoReturn:
    for line in (*(f"error: {problem}" for problem in problems), *details):
        print(printable(line), file=sys.stderr)
    sys.exit(code)
