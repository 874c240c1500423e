"""The command `map import`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vefl_sim.core.errors import BadInput, RunInterrupted

if TYPE_CHECKING:
    from vefl_sim.mobility.sumo.map_import import Step

# As in cli.py, heavy imports happen inside the commands.

_AGAIN_S = 20.0
map_ = typer.Typer(name="map", no_args_is_help=True, help="Maps: make an experiment of a part of OpenStreetMap.")


@map_.callback()
def maps() -> None:
    """Maps: make an experiment of a part of OpenStreetMap."""


@map_.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="An .osm or .net.xml, which may end in .gz.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to make.", show_default=False)],
    gnb: Annotated[
        str | None,
        typer.Option(metavar="LAT,LON", help="Where the gNB stands; if not given, at the centre.", show_default=False),
    ] = None,
    vehicles: Annotated[float, typer.Option(min=0.1, help="Vehicles in coverage, on average.")] = 35.0,
) -> None:
    """Make a net, traffic and an experiment of a map, say what is in it, and draw it."""
    from vefl_sim.analysis.figures.map import draw_map
    from vefl_sim.core.stopping import stopping_at_once
    from vefl_sim.mobility.sumo.map_import import import_map

    try:
        with stopping_at_once(), _shown() as tell:
            imported = import_map(file, out, _degrees(gnb), vehicles, draw_map, tell)
    except KeyboardInterrupt:
        raise RunInterrupted(f"{out} is not made") from None
    print("\n".join(imported.lines()))


@contextmanager
def _shown() -> "Iterator[Step]":
    """One live line on a terminal; elsewhere a line for every step, and for long ones more. It is no result: stderr."""
    from rich.console import Console
    from rich.markup import escape

    console, message = Console(stderr=True), ("", 0.0)

    def tell(step: str, so_far: str) -> None:
        nonlocal message
        line, now_s = f"{step}: {so_far}" if so_far else step, time.monotonic()
        if status:
            status.update(escape(line))
        elif step != message[0] or now_s - message[1] > _AGAIN_S:
            message = step, now_s
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    with console.status("…") if console.is_terminal else nullcontext() as status:
        yield tell


def _degrees(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        latitude, longitude = (float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--gnb {text}: write latitude and longitude in degrees, as --gnb 37.8124,-122.3045.") from None
    return latitude, longitude
