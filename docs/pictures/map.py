"""Draw docs/pictures/map.png: the picture of `map import` for a small grid made by netgenerate.

python docs/pictures/map.py
"""

import ending  # noqa: F401

import tempfile
from pathlib import Path
from shutil import copyfile

from vefl_sim.analysis.figures.map import draw_map
from vefl_sim.mobility.sumo.map_import import PICTURE, import_map
from vefl_sim.mobility.sumo.programs import run_program

GRID = (
    "--grid", "--grid.x-number", 9, "--grid.y-number", 7, "--grid.x-length", 180, "--grid.y-length", 150,
    "--grid.attach-length", 150, "--random-lanenumber", "--random-priority",
    "--tls.set", "C2,C4,D1,D3,D5,E2,E4,F1,F3,F5,G2,G4",
    "--perturb-x", "norm(0,14)", "--perturb-y", "norm(0,14)", "--seed", 4,
)  # fmt: skip


def main() -> None:
    """Generate a fictional town, import it, and keep its picture."""
    with tempfile.TemporaryDirectory() as folder:
        net, imported = Path(folder) / "a-town.net.xml", Path(folder) / "imported"
        run_program("netgenerate", (*GRID, "--output-file", net), "no grid")
        print("\n".join(import_map(net, imported, None, 35.0, draw_map).lines()))
        copyfile(imported / PICTURE, Path(__file__).with_suffix(".png"))


if __name__ == "__main__":
    main()
