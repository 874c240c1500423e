"""The commands that look at runs and models: `runs`, `verify`, `trace`, `schema` and `check`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.core.errors import BadInput


def runs(
    out: Annotated[Path, typer.Argument(help="The folder in which the runs are.")] = Path("runs"),
) -> None:
    """List runs with their state, progress, accuracy and age, the latest last."""
    from vefl_sim.analysis.runs import run_lines

    for line in run_lines(out):
        print(line)


def verify(
    run: Annotated[str, typer.Argument(help="A run directory, or the start of its name in ./runs.")],
) -> None:
    """Check a run from its files alone: digests, sums, and the constraints C1–C6; C7–C12 if slots were recorded."""
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.verify.verification import finding_lines
    from vefl_sim.analysis.verify.verification import verify as look

    found = find_run(run)
    findings = list(look(found))
    print(f"{found.path} ({found.state})")
    print("\n".join(finding_lines(findings)))
    if not all(finding.passed for finding in findings):
        raise typer.Exit(1)


def schema() -> None:
    """Print the JSON schema of experiment files, for editors."""
    import json

    from vefl_sim.experiment.experiment import Experiment

    print(json.dumps(Experiment.model_json_schema(), indent=2, ensure_ascii=False))


def trace(
    run: Annotated[str, typer.Argument(help="A run directory, or the start of its name in ./runs.")],
    cv: Annotated[int | None, typer.Option(help="Only this CV.")] = None,
    round: Annotated[int | None, typer.Option(help="Only this round.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind of event.")] = None,
    from_s: Annotated[float | None, typer.Option("--from", help="From this simulated second on.")] = None,
    to_s: Annotated[float | None, typer.Option("--to", help="Before this simulated second.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="All columns, as CSV.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Tell the story of one update; needs --cv and --round.")] = False,
) -> None:
    """Inspect the events of a run, or ask why an update made it or not."""
    from vefl_sim.analysis.events import event_lines, select
    from vefl_sim.analysis.runs import find_run
    from vefl_sim.analysis.why import why as explain

    found = find_run(run)
    if str(found.path) != run:
        print(f"# {found.path} ({found.state})", file=sys.stderr)
    if why:
        if cv is None or round is None:
            raise BadInput("--why needs --cv and --round: which update do you ask about?")
        print("\n".join(explain(found, cv=cv, round=round)))
        return
    events = select(found.events, cv=cv, round=round, kind=_known_kind(kind), between_s=(from_s, to_s))
    if events.empty:
        print("# no event matches", file=sys.stderr)
    if csv:
        events.to_csv(sys.stdout, index=False)
    else:
        for line in event_lines(events):
            print(line)


def check(
    what: Annotated[str, typer.Argument(help="What to check: radio or mobility.")],
    duration_s: Annotated[
        float, typer.Option("--duration", min=1.0, help="mobility: simulated seconds for which traffic is watched.")
    ] = 2000.0,
) -> None:
    """Compare our models with published references and print the differences."""
    from vefl_sim.analysis.references.mobility import traffic_lines
    from vefl_sim.analysis.references.sheet import check_lines

    if what == "radio":
        from vefl_sim.analysis.references.radio import radio_sheet as sheet
    elif what == "mobility":
        from vefl_sim.analysis.references.mobility import mobility_sheet as sheet
    else:
        raise BadInput(f"check {what}: there is no such check; there are: radio, mobility.")
    checks = list(sheet())
    print("\n".join(check_lines(checks)))
    if what == "mobility":
        for line in traffic_lines(duration_s=duration_s):
            print(line, flush=True)
    if not all(line.passed for line in checks):
        raise typer.Exit(1)


def _known_kind(kind: str | None) -> str | None:
    from vefl_sim.protocol.trace import KINDS

    if kind is not None and kind not in KINDS:
        raise BadInput(f"--kind {kind}: there is no such event; the kinds are {', '.join(KINDS)}.")
    return kind
