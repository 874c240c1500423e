"""The commands that only read or check: `runs`, `report`, `evaluate`, `verify`, `trace`, `schema` and `check`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.cli.sweep import Out
from vefl_sim.core.errors import BadInput, printable

RunName = Annotated[str, typer.Argument(help="Run directory, or the beginning of its name in --out.")]
Parts = Annotated[
    Path | None,
    typer.Option(help="Folder in which user-defined parts are searched first, instead of the current directory."),
]


def runs(
    folder: Annotated[Path | None, typer.Argument(help="Folder of the runs, as --out.")] = None, out: Out = Path("runs")
) -> None:
    """List all runs: state, scheme, seed, rounds, accuracy, age and the keys that differ; the newest run is last."""
    from vefl_sim.analysis.runs import run_lines

    _print(run_lines(folder or out))


def report(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|SWEEP",
            help="Run directory, or the beginning of its name in --out; or a sweep or comparison: its folder, its "
            "name in --out, or its TOML file.",
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="File to write, instead of report.html in the folder of the run or sweep.")
    ] = None,
    out: Out = Path("runs"),
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the report page of a run: one HTML file with curves, a replay on the map, and why updates were lost.

    The page of a sweep or comparison has means over seeds, paired differences, figures, and links to the pages of runs.
    """
    import webbrowser

    from vefl_sim.analysis.report.page import write_report
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.sweep_report.source import find_table

    if out.suffix == ".html":
        raise BadInput(f"--out {out} must be the folder of the runs: name the file to write with --to.")
    table = find_table(what, out)
    if table and not Path(what).exists() and any(out.glob(f"{what}-*/resolved.toml")):
        print(f"# a run comes before a sweep of the same name, which {table.parent} stands for", file=sys.stderr)
        table = None
    if table:
        from vefl_sim.analysis.sweep_report.page import write_sweep_report  # imports matplotlib, which takes time

        path = write_sweep_report(table, to)
    else:
        path = write_report(find_run(what, out), to)
    _print([str(path)])
    if show:
        webbrowser.open(path.resolve().as_uri())


def evaluate(
    run: RunName,
    round: Annotated[
        int | None, typer.Option(help="Evaluate the model after this round, if learning.keep_models has kept it.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Evaluate on the test set of this data set instead: a value of data.kind, or a folder or zip of "
            "train/<class>/<image> and test/<class>/<image>.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="With --data: folder of the files of the data set, instead of the one of `data get`."
        ),
    ] = None,
    parts: Parts = None,
    out: Out = Path("runs"),
) -> None:
    """Print accuracy and loss of the model that a run has saved, for all test samples and for each class."""
    from vefl_sim.analysis.evaluation import evaluate as evaluate_run
    from vefl_sim.analysis.evaluation import parts_of, version_note
    from vefl_sim.analysis.runs import find_run, source_lines
    from vefl_sim.experiment.part_files import parts_in

    if folder and data is None:
        raise BadInput(f"--dir {folder} holds the files of another data set: add --data to name it.")
    found = find_run(run, out)
    print(f"# {found.path} ({found.state})", file=sys.stderr)
    model, note = found.model(round), version_note(found)
    for line in (*source_lines(parts_of(found, model, data), parts), *([note] if note else ())):
        print(f"# {printable(line)}", file=sys.stderr)
    with parts_in(parts):
        scores = evaluate_run(found, model, data, folder)
    _print([f"{'model':16}{model.file}: {model.card.architecture}"])
    for score in scores:
        _print(score.lines())


def verify(run: RunName, out: Out = Path("runs")) -> None:
    """Check the files of a run: digests, sums, payments and constraints C1–C6."""
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.verify.verification import finding_lines
    from vefl_sim.analysis.verify.verification import verify as verify_run

    found = find_run(run, out)
    findings = list(verify_run(found))
    print(f"{found.path} ({found.state})")
    _print(finding_lines(findings))
    if not all(finding.passed for finding in findings):
        raise typer.Exit(1)


def schema() -> None:
    """Print the JSON schema of experiment files, for use in an editor."""
    import json

    from vefl_sim.analysis.schema import file_schema

    print(json.dumps(file_schema(), indent=2, ensure_ascii=False))


def trace(
    run: RunName,
    file: Annotated[
        Path | None, typer.Argument(help="With --perfetto: file to write, instead of one in the run directory.")
    ] = None,
    cv: Annotated[int | None, typer.Option(help="Show only events of this CV.")] = None,
    round: Annotated[
        str | None, typer.Option(metavar="K or A-B", help="Show only events of this round, or of rounds A to B.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Show only events of this kind.")] = None,
    from_s: Annotated[
        float | None, typer.Option("--from", help="Show only events from this time on, in simulated seconds.")
    ] = None,
    to_s: Annotated[
        float | None, typer.Option("--to", help="Show only events before this time, in simulated seconds.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print all columns as CSV.")] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Explain why one update was received or lost; needs --cv and --round.")
    ] = False,
    perfetto: Annotated[
        bool,
        typer.Option("--perfetto", help="Write a timeline of the run, or of --round, for https://ui.perfetto.dev."),
    ] = False,
    out: Out = Path("runs"),
) -> None:
    """Print the events of a run, explain why one update was received or lost, or write a timeline."""
    from vefl_sim.analysis.events import event_lines, require_known, select
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.verify.verification import blaming_damage
    from vefl_sim.analysis.why import how_to_choose
    from vefl_sim.analysis.why import why as explain
    from vefl_sim.protocol.trace import KINDS

    rounds = None if round is None else _rounds(round)
    if perfetto and (why or csv or any(option is not None for option in (cv, kind, from_s, to_s))):
        raise BadInput("--perfetto writes a timeline of all events: of the other options, use only --round with it.")
    if file and not perfetto:
        raise BadInput(f"{file}: a file is written only with --perfetto.")
    found = find_run(run, out)
    if str(found.path) != run:
        print(f"# {found.path} ({found.state})", file=sys.stderr)
    with blaming_damage(found):
        if not found.is_checked:
            print("# not checked: the run has recorded no digests of its tables", file=sys.stderr)
        recorded = found.events
        require_known(recorded, cv, rounds)
        if perfetto:
            from vefl_sim.analysis.timeline import write_timeline

            path = write_timeline(found, file, rounds)
            size = f"{path.stat().st_size / 1e6:.1f} MB"
            page = "https://ui.perfetto.dev, which reads it in the browser and uploads nothing"
            _print([f"{path} ({size}): open it at {page}"])
            return
        if why:
            if cv is None or rounds is None or len(rounds) > 1:
                raise BadInput(how_to_choose(found, cv=cv, rounds=rounds))
            _print(explain(found, cv=cv, round=rounds.start))
            return
        if kind is not None and kind not in KINDS:
            raise BadInput(f"--kind {kind}: there is no such event kind: choose one of {', '.join(KINDS)}.")
        events = select(recorded, cv=cv, round=rounds, kind=kind, between_s=(from_s, to_s))
        if events.empty:
            print("# no events match the filters", file=sys.stderr)
        if csv:
            events.to_csv(sys.stdout, index=False)
        else:
            _print(event_lines(events))


def check(
    what: Annotated[str, typer.Argument(help="Model to check: radio or mobility.")],
    duration_s: Annotated[
        float, typer.Option("--duration", min=1.0, help="For mobility: duration of the simulated traffic in s.")
    ] = 2000.0,
) -> None:
    """Compare the radio or mobility model with published reference values and print the differences."""
    from vefl_sim.analysis.references.mobility import traffic_lines
    from vefl_sim.analysis.references.sheet import check_lines

    if what == "radio":
        from vefl_sim.analysis.references.radio import radio_sheet as sheet
    elif what == "mobility":
        from vefl_sim.analysis.references.mobility import mobility_sheet as sheet
    else:
        raise BadInput(f"check {what}: there is no such check: choose radio or mobility.")
    checks = list(sheet())
    print("\n".join(check_lines(checks)))
    if what == "mobility":
        for line in traffic_lines(duration_s=duration_s):
            print(line, flush=True)
    if not all(line.passed for line in checks):
        raise typer.Exit(1)


def _print(lines: Iterable[str]) -> None:
    """Print lines with text from a run, which may come from anywhere and must not act on the terminal."""
    for line in lines:
        print(printable(line))


def _rounds(text: str) -> range:
    """The rounds of --round: one number, or a range like 2-5."""
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text, re.ASCII)
    if not match or (rounds := range(int(match[1]), int(match[2] or match[1]) + 1)).start >= rounds.stop:
        raise BadInput(f"--round {text}: write a number or a range, for example --round 3 or --round 2-5.")
    return rounds
