"""The command `map import`."""

from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.core.errors import BadInput, RunInterrupted

# As in main.py, heavy imports happen inside the commands.

map_ = typer.Typer(name="map", no_args_is_help=True, help="Create experiments from OpenStreetMap or SUMO maps.")


@map_.callback()
def maps() -> None:
    """Create experiments from OpenStreetMap or SUMO maps."""


@map_.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Map file: .osm or .net.xml, optionally with .gz.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.")],
    gnb: Annotated[
        str | None, typer.Option(metavar="LAT,LON", help="Position of the gNB. Default: the centre of the map.")
    ] = None,
    vehicles: Annotated[float, typer.Option(min=0.1, help="Mean number of vehicles in coverage.")] = 35.0,
) -> None:
    """Create a SUMO network, traffic and an experiment from a map; print its key figures and draw it."""
    from vefl_sim.analysis.figures.map import draw_map
    from vefl_sim.cli.progress import showing_steps
    from vefl_sim.core.stopping import stopping_at_once
    from vefl_sim.mobility.sumo.map_import import import_map

    try:
        with stopping_at_once(), showing_steps():
            imported = import_map(file, out, _degrees(gnb), vehicles, draw_map)
    except KeyboardInterrupt:
        raise RunInterrupted(f"{out} was not created") from None
    print("\n".join(imported.lines()))


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
