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

# As in main.py, heavy imports happen inside the commands.

_REPEAT_S = 20.0  # between two lines about the same step, without a terminal
map_ = typer.Typer(name="map", no_args_is_help=True, help="Create experiments from OpenStreetMap or SUMO maps.")


@map_.callback()
def maps() -> None:
    """Create experiments from OpenStreetMap or SUMO maps."""


@map_.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Map file: .osm or .net.xml, optionally with .gz.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.", show_default=False)],
    gnb: Annotated[
        str | None,
        typer.Option(
            metavar="LAT,LON", help="Position of the gNB. Default: the centre of the map.", show_default=False
        ),
    ] = None,
    vehicles: Annotated[float, typer.Option(min=0.1, help="Mean number of vehicles in coverage.")] = 35.0,
) -> None:
    """Create a SUMO network, traffic and an experiment from a map; print its key figures and draw it."""
    from vefl_sim.analysis.figures.map import draw_map
    from vefl_sim.core.stopping import stopping_at_once
    from vefl_sim.mobility.sumo.map_import import import_map

    try:
        with stopping_at_once(), _progress() as on_progress:
            imported = import_map(file, out, _degrees(gnb), vehicles, draw_map, on_progress)
    except KeyboardInterrupt:
        raise RunInterrupted(f"{out} was not created") from None
    print("\n".join(imported.lines()))


@contextmanager
def _progress() -> "Iterator[Step]":
    """Show progress on stderr: one live line on a terminal, else one line per step and every 20 s of a long step."""
    from rich.console import Console
    from rich.markup import escape

    console, last_printed = Console(stderr=True), ("", 0.0)  # step, time in s

    def on_progress(step: str, so_far: str) -> None:
        nonlocal last_printed
        line, now_s = f"{step}: {so_far}" if so_far else step, time.monotonic()
        if status:
            status.update(escape(line))
        elif step != last_printed[0] or now_s - last_printed[1] > _REPEAT_S:
            last_printed = step, now_s
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    with console.status("…") if console.is_terminal else nullcontext() as status:
        yield on_progress


def _degrees(text: str | None) -> tuple[float, float] | None:
    """Parse "LAT,LON" in degrees."""
    if text is None:
        return None
    try:
        latitude, longitude = (float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(
            f"--gnb {text}: write latitude,longitude in degrees, for example --gnb 37.8124,-122.3045."
        ) from None
    return latitude, longitude
