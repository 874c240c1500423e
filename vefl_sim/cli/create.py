"""The commands that make what is run: `new` and `map import` write experiments, `data` gets and shows data sets."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.cli.sweep import Settings
from vefl_sim.core.errors import BadInput, RunInterrupted

# As in main.py, heavy imports happen inside the commands.

data = typer.Typer(
    name="data", no_args_is_help=True, help="Download data sets, list them, and show how they are split over the CVs."
)
map_ = typer.Typer(name="map", no_args_is_help=True, help="Create experiments from OpenStreetMap or SUMO maps.")
_FILES = {
    "quickstart": ("quickstart.toml", "python -m vefl_sim {file}"),
    "compare": ("schemes.toml", "python -m vefl_sim {file}"),
    "sweep": ("cell_size.toml", "python -m vefl_sim sweep {file}"),
    "positions": ("positions.toml", "python -m vefl_sim {file}"),
    "map": ("own_map.toml", "python -m vefl_sim {file} --set mobility.file=YOUR_MAP.osm"),
}
"""Kind -> the file in experiments/ that is copied, and how a copy is run."""


def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="What to write: quickstart (one run), compare (many schemes side by side), sweep (many values and "
            "seeds), positions (CVs learn where they will be) or map (traffic on your own map)."
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(help="File to write. Default: KIND.toml in the current folder.")
    ] = None,
) -> None:
    """Write an experiment to start from; an existing file is never overwritten."""
    if kind not in _FILES:
        raise BadInput(f"new {kind}: there is no such experiment: choose one of {', '.join(_FILES)}.")
    name, command = _FILES[kind]
    path = file or Path(f"{kind}.toml")
    package = Path(__file__).parents[1]  # the experiments are in it, or beside it in a clone of the repository
    folder = next(place / "experiments" for place in (package, package.parent) if (place / "experiments").is_dir())
    text = (folder / name).read_text(encoding="utf-8").replace(f"experiments/{name}", str(path))
    try:
        with open(path, "x", encoding="utf-8") as created:
            created.write(text)
    except FileExistsError:
        raise BadInput(f"{path} exists and is not overwritten: name another file.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another file.") from None
    print(f"{path} is written; run it with: {command.format(file=path)}")


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


Parent = Annotated[
    Path | None, typer.Option("--dir", help="Folder that contains one folder per data set. Default: the user's cache.")
]


@data.command("get")
def get(
    kind: Annotated[str, typer.Argument(help="Data set: mnist, fashion-mnist, cifar10 or gtsrb.")],
    parent: Parent = None,
) -> None:
    """Download a data set and check the digest of every file; correct files are not downloaded again."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from vefl_sim.learning.datasets.files import downloads
    from vefl_sim.learning.datasets.public import download, files_of

    files, folder = files_of(kind), (parent or downloads()) / kind
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:

        def shown(name: str, size: int | None) -> Callable[[int], None]:
            """A new bar for each attempt."""
            task = progress.add_task(name, total=size)
            return lambda received: progress.advance(task, received)

        download(files, folder, shown)
    print(f"{kind} is complete in {folder}")
    if parent:
        print(f'to use it in an experiment, set data.kind = "{kind}" and data.dir = "{folder}"')


@data.command("list")
def list_(parent: Parent = None) -> None:
    """List the downloaded data sets with their folder, size, and whether they are complete."""
    from vefl_sim.experiment.kinds import DATA_SETS
    from vefl_sim.experiment.plugins import load_part
    from vefl_sim.learning.datasets.files import downloads
    from vefl_sim.learning.datasets.public import inventory

    if parent and not os.path.isdir(parent):
        raise BadInput(f"--dir {parent}: there is no such folder: name an existing folder.")
    for kind in DATA_SETS:
        if (declared := load_part("data.kind", kind)).any_number or declared.from_traffic:
            print(f"{kind:<14} built in, needs no files")
    for holding in inventory(parent or downloads()):
        print(holding.line())


@data.command("show")
def show(
    experiment: Annotated[Path, typer.Argument(help="TOML file of the experiment.")],
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Picture to write (.png, .pdf or .svg). Default: <run.name>-data.png in the current folder."),
    ] = None,
) -> None:
    """Print how many samples of each class every CV holds, and draw a picture of it."""
    from vefl_sim.analysis.data_split import data_split, draw_data_split, picture_path
    from vefl_sim.experiment.toml import load

    loaded = load(experiment, settings or ())
    picture = picture_path(out or Path(f"{loaded.run.name}-data.png"))
    split = data_split(loaded)
    print("\n".join(split.lines()))
    print(f"picture: {draw_data_split(split, picture)}")
