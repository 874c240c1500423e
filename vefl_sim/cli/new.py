"""The command `new`: writes an experiment to start from."""

from pathlib import Path
from typing import Annotated

import typer

from vefl_sim.core.errors import BadInput

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
    text = (_experiments() / name).read_text(encoding="utf-8").replace(f"experiments/{name}", str(path))
    try:
        with open(path, "x", encoding="utf-8") as created:
            created.write(text)
    except FileExistsError:
        raise BadInput(f"{path} exists and is not overwritten: name another file.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another file.") from None
    print(f"{path} is written; run it with: {command.format(file=path)}")


def _experiments() -> Path:
    """The folder of the experiments: inside the installed package, or beside it in a clone of the repository."""
    package = Path(__file__).parents[1]
    inside = package / "experiments"
    return inside if inside.is_dir() else package.parent / "experiments"
