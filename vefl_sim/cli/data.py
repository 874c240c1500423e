"""The commands `data get`, `data list` and `data show`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.core.errors import BadInput

# As in cli.py, heavy imports happen inside the commands.

data = typer.Typer(name="data", no_args_is_help=True, help="Data sets: download them, list them, see who holds what.")

Parent = Annotated[
    Path | None,
    typer.Option(
        "--dir", help="A folder with one folder per data set; if not given, the user's cache.", show_default=False
    ),
]


@data.command("get")
def get(
    kind: Annotated[str, typer.Argument(help="mnist, fashion-mnist, cifar10 or gtsrb.", show_default=False)],
    parent: Parent = None,
) -> None:
    """Download a data set; every file is checked, and one that is there and right is left alone."""
    from rich.console import Console

    from vefl_sim.cli.downloads import download_display
    from vefl_sim.learning.datasets.files.download import download, files_of
    from vefl_sim.learning.datasets.files.location import downloads

    files, folder = files_of(kind), (parent or downloads()) / kind
    with download_display(Console(stderr=True)) as bars:
        download(files, folder, watcher=bars)
    print(f"{kind} is complete in {folder}")
    if parent:
        print(f'an experiment finds it with data.kind = "{kind}" and data.dir = "{folder}"')


@data.command("list")
def list_(parent: Parent = None) -> None:
    """Show which data sets are there, where, how large, and whether they are complete."""
    from vefl_sim.learning.datasets.files.inventory import inventory
    from vefl_sim.learning.datasets.files.location import downloads

    if parent and not os.path.isdir(parent):
        raise BadInput(f"--dir {parent}: there is no such folder.")
    print("signs          drawn by the program")
    for holding in inventory(parent or downloads()):
        print(holding.line())


@data.command("show")
def show(
    experiment: Annotated[Path, typer.Argument(help="The experiment's TOML file.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a key, in TOML syntax; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The picture to write, .png, .pdf or .svg; if not given, <run.name>-data.png here.", show_default=False
        ),
    ] = None,
) -> None:
    """Say who holds how many samples of which class, and draw it."""
    from vefl_sim.analysis.data_split import data_split, draw_data_split, target
    from vefl_sim.experiment.toml import load

    loaded = load(experiment, settings or ())
    picture = target(out or Path(f"{loaded.run.name}-data.png"))
    shared = data_split(loaded)
    print("\n".join(shared.lines()))
    print(f"picture: {draw_data_split(shared, picture)}")
