"""The commands `sweep` and `figure`."""

from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.errors import BadInput

# As in cli.py, heavy imports happen inside the commands.


def figure(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="TOML files of sweeps.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a key, as for the sweep; repeatable."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="SEEDS", help="Only these repeats, for example 1,2,3 or 1-5.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder in which the runs are.")] = Path("runs"),
    to: Annotated[
        Path | None,
        typer.Option(help="Where the files go; if not given, <out>/figures/<name>.", show_default=False),
    ] = None,
) -> None:
    """Draw sweeps from the points that are done: the figure of each as PDF and PNG, its numbers as CSV."""
    from vefl_sim.figures.drawing import draw
    from vefl_sim.figures.report import drawing_lines
    from vefl_sim.seeds import parse_seeds
    from vefl_sim.sweep.points import load_sweep

    chosen = None if seeds is None else parse_seeds(seeds)
    problems: list[str] = []
    for file in files:
        try:
            lines = [*drawing_lines(draw(load_sweep(file, settings or (), chosen), out, to), out)]
            print("\n".join(lines), end="\n\n" if len(files) > 1 else "\n")
        except BadInput as error:  # the other figures are drawn all the same
            problems += [f"{file}: {problem}" for problem in error.problems] if len(files) > 1 else error.problems
    if problems:
        raise BadInput(problems)
