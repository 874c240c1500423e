"""The commands `data get`, `data list` and `data show`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.cli.sweep import Settings
from vefl_sim.core.errors import BadInput

# As in main.py, heavy imports happen inside the commands.

data = typer.Typer(
    name="data", no_args_is_help=True, help="Download data sets, list them, and show how they are split over the CVs."
)

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
