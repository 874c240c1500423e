"""Converts a map from OpenStreetMap to an experiment: network, demand, TOML, and a picture."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import tomli_w

from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.core.progress import report
from vefl_sim.experiment.toml import from_tables, load
from vefl_sim.mobility.sumo.demand import BLOCKED_S, Calibration, SumoRoutes
from vefl_sim.mobility.sumo.inputs import NET, OSM, convert
from vefl_sim.mobility.sumo.net import Net, Position
from vefl_sim.mobility.sumo.programs import file_argument, home
from vefl_sim.mobility.sumo.traffic import prepare_sumo

NET_FILE, DEMAND, TOML, PICTURE, CONFIGURATION = (
    "map.net.xml.gz", "demand.rou.xml.gz", "experiment.toml", "map.png", "map.sumocfg",
)  # fmt: skip
SHOWN_S = 600.0  # duration of the demand that can be watched in sumo-gui
RADIUS_M = 500.0
LONGEST_NAME = 60


@dataclass(frozen=True)
class ImportedMap:
    """The result of an import: the map, its traffic, and the new folder."""

    source: Path
    folder: Path
    net: Net
    routes: SumoRoutes
    gnb_m: Position
    vehicles: float  # mean number wanted in coverage
    calibration: Calibration

    def lines(self) -> list[str]:
        """Summary of the import for the terminal, line by line."""
        net, (low, high), found = self.net, self.net.box_m, self.calibration
        x_m, y_m = self.gnb_m
        covered_m = net.metres_within(self.gnb_m, RADIUS_M).sum()
        pilot = f"where a pilot run had {found.in_coverage:.1f}"
        if last := found.confirming:
            pilot += (
                f" in long steps, and {last.in_coverage:.1f} in steps of {last.step_s:g} s at {last.rate_per_s:.3g}"
            )
        return [
            f"{self.source}: {(high[0] - low[0]) / 1e3:.1f} × {(high[1] - low[1]) / 1e3:.1f} km, "
            f"{len(net.junctions_m)} junctions ({len(net.signals_m)} with signals), {len(net.streets)} streets of "
            f"{net.length_m / 1e3:.1f} km, each direction counted",
            f"gNB at [{x_m:.1f}, {y_m:.1f}] in the net, {covered_m / 1e3:.1f} km of streets within {RADIUS_M:g} m",
            f"wanted in coverage: {self.vehicles:g} vehicles, at {found.rate_per_s:.3g} departures per second, {pilot}",
            *(["so many vehicles only stand in a jam: choose fewer (--vehicles)"] if found.jams else []),
            f"in {self.folder}: {NET_FILE}, {DEMAND}, {CONFIGURATION}, {TOML}, {PICTURE}",
            f"run it with: python -m vefl_sim {self.folder / TOML}",
        ]


def import_map(
    source: Path,
    folder: Path,
    gnb_deg: Position | None,
    vehicles: float,
    draw: Callable[[ImportedMap, Path], None],
) -> ImportedMap:
    """Create the folder with all files, or not at all; `draw` writes the picture."""
    home()
    _check(source, folder)
    partial = folder.with_name(f".{folder.name}-{os.getpid()}")  # on the same file system, so that it can be renamed
    try:
        partial.mkdir(parents=True)
        imported = _import_into(source, partial, gnb_deg, vehicles)
        imported = replace(imported, folder=folder)
        report("the picture")
        draw(imported, partial / PICTURE)
        (partial / TOML).write_text(_toml(imported), encoding="utf-8")
        load(partial / TOML)  # checks that the experiment can be run
        (partial / CONFIGURATION).write_text(_configuration(imported), encoding="utf-8")
        partial.rename(folder)
    except ExperimentError as error:  # rewritten in terms of the command line
        text = str(error).replace(str(partial / NET_FILE), str(source)).replace("mobility.origin_deg", "--gnb")
        raise BadInput(text.replace("traffic.mean_in_coverage", "--vehicles")) from None
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror}.") from None
    finally:
        rmtree(partial, ignore_errors=True)
    return imported


def _check(source: Path, folder: Path) -> None:
    if not source.is_file():
        raise BadInput(f"{source}: there is no such file.")
    if not source.name.lower().endswith((*NET, *OSM)):
        raise BadInput(f"{source} has an unknown format: it must be .osm(.gz) or .net.xml(.gz).")
    for path in (source, folder):
        file_argument(path)  # refuses a name that SUMO would take for another one
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists already, and nothing is overwritten: choose another -o, or remove it.")


def _import_into(source: Path, folder: Path, gnb_deg: Position | None, vehicles: float) -> ImportedMap:
    report(f"netconvert reads {source}")
    net = convert(source, folder / NET_FILE, str(source))
    experiment = from_tables(
        {
            "run": {"name": "map", "duration_s": SHOWN_S},
            "mobility": {"kind": "sumo", "file": str(net)} | ({"origin_deg": gnb_deg} if gnb_deg else {}),
            "traffic": {"mean_in_coverage": vehicles},
            "radio": {"coverage_radius_m": RADIUS_M},
        }
    )
    report("randomTrips and duarouter draw routes")
    prepared = prepare_sumo(experiment, folder)
    routes, found = prepared.routes, prepared.calibration
    assert routes
    assert found
    return ImportedMap(source, folder, routes.net, routes, prepared.setup.gnb_m, vehicles, found)


def _toml(imported: ImportedMap) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "-", imported.source.name.split(".")[0])[:LONGEST_NAME].strip("-") or "map"
    tables = {
        "run": {"name": name, "duration_s": 100.0},
        "mobility": {
            "kind": "sumo",
            "file": NET_FILE,
            "origin_m": [round(place_m, 2) for place_m in imported.gnb_m],
            "sojourn": "radial",
        },
        "traffic": {"arrivals_per_s": float(f"{imported.calibration.rate_per_s:.4g}")},
        "scheme": {"kind": "pdpc", "selected": 10},
        "data": {"kind": "signs", "train_samples": 4000, "test_samples": 1000, "image_px": 24},
        "learning": {"learning_rate": 0.1},
    }
    return f"""# {_printable(imported.source.name)} by SUMO; the gNB is at origin_m, in the net's coordinates.
#   python -m vefl_sim {_printable(str(imported.folder / TOML))}
# To watch the traffic: sumo-gui -c {_printable(str(imported.folder / CONFIGURATION))}
# To run exactly that traffic, or your own demand, set mobility.file to {CONFIGURATION} and remove [traffic].
# {imported.vehicles:g} vehicles are in coverage; for another number, set traffic.mean_in_coverage instead of the rate.

{tomli_w.dumps(tables)}"""


def _printable(name: str) -> str:
    """Replace unprintable characters, such as line breaks, in a name that is written to a comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _configuration(imported: ImportedMap) -> str:
    return f"""<configuration>
    <net-file value="{NET_FILE}"/>
    <route-files value="{DEMAND}"/>
    <begin value="0"/>
    <end value="{imported.calibration.settled_s + SHOWN_S:g}"/>
    <step-length value="0.1"/>
    <step-method.ballistic value="true"/>
    <time-to-teleport value="-1"/>
    <ignore-junction-blocker value="{BLOCKED_S}"/>
</configuration>
"""
