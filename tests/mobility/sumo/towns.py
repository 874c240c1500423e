"""Small maps for SUMO: a grid by netgenerate, and a similar one in the format of OpenStreetMap.

Both differ in x and y, so that tests detect swapped coordinates.
"""

from pathlib import Path
from typing import Any

from vefl_sim import from_tables
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.sumo.programs import run_program

RADIUS_M = 150.0
MIDDLE = (0.0018, 10.0027)  # latitude and longitude of the centre of `osm`


def grid_net(folder: Path, *options: str) -> Path:
    """3 × 3 junctions, 100 m apart in x and 80 m in y, with 60 m of street beyond; the middle is at [160, 140]."""
    net = folder / "grid.net.xml"
    grid = ("--grid", "--grid.number", 3, "--grid.x-length", 100, "--grid.y-length", 80, "--grid.attach-length", 60)
    run_program("netgenerate", (*grid, *options, "--output-file", net), "no grid")
    return net


def osm(path: Path, highway: str = "residential") -> Path:
    """3 × 3 nodes, about 300 m apart from west to east and 200 m from south to north, around MIDDLE."""
    nodes = [
        f'<node id="{3 * i + j + 1}" lat="{0.0018 * i:.4f}" lon="{10 + 0.0027 * j:.4f}"/>'
        for i in range(3)
        for j in range(3)
    ]
    rows = [[3 * i + j + 1 for j in range(3)] for i in range(3)]
    ways = [
        f'<way id="{number}">{"".join(map(_ref, way))}<tag k="highway" v="{highway}"/></way>'
        for number, way in enumerate([*rows, *zip(*rows, strict=True)], 1)
    ]
    path.write_text(f'<osm version="0.6">{"".join(nodes)}{"".join(ways)}</osm>')
    return path


def _ref(node: int) -> str:
    return f'<nd ref="{node}"/>'


def town(file: Path | str, **tables: dict[str, Any]) -> Experiment:
    """A run of five seconds without learning; the departure rate is given, so that no pilot runs are needed."""
    base: dict[str, dict[str, Any]] = {
        "run": {"name": "town", "rounds": 5, "checkpoint_every": 1},
        "mobility": {"kind": "sumo", "file": str(file), "start_s": 30.0, "max_speed_mps": 15.0},
        "traffic": {"arrivals_per_s": 0.6},
        "radio": {"coverage_radius_m": RADIUS_M, "prbs": 4},
        "vefl": {"round_s": 1.0},
        "scheme": {"selected": 3},
        "data": {"train_samples": 800, "test_samples": 100, "image_px": 16, "min_samples": 5},
        "model": {"factory": "tests.scripted:thousand_weights"},
        "learning": {"kind": "none"},
    }
    if str(file).endswith(".sumocfg"):
        del base["traffic"]
    merged = {name: base.get(name, {}) | tables.get(name, {}) for name in {**base, **tables}}
    return from_tables({name: {k: v for k, v in table.items() if v is not None} for name, table in merged.items()})
