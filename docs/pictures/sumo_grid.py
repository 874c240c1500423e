"""Compare our traffic with SUMO: the same grid, vehicles, departures, routes and drivers. Prints a table and draws it.

    python docs/pictures/sumo_grid.py [seeds]

First our traffic is simulated, from empty streets. SUMO then gets the same grid from netgenerate, and every vehicle
with its departure time and its route in our simulation.
"""

from ending import SMALL

import gzip
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from vefl_sim import from_tables
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.coverage import sojourn_bound_s
from vefl_sim.mobility.grid.roads import STEP_X, STEP_Y, StreetGrid
from vefl_sim.mobility.grid.routes import GridRoutes
from vefl_sim.mobility.grid.traffic import IdmTraffic, demand
from vefl_sim.mobility.scene import Mobility, Scene
from vefl_sim.mobility.sumo.demand import _vehicle_type, arguments
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import Street, read_net
from vefl_sim.mobility.sumo.programs import run_program

FILL_S, MEASURED_S = (100, 300) if SMALL else (600, 1200)
RADIUS_M, BLOCKS, BLOCK_M = 500.0, 8, 128.0
GREEN_S, AMBER_S = 20, 5  # SUMO accepts only whole seconds; our amber time is 4.7 s at this speed
DARK, BLUE, RED = "#22303c", "#7aa0cf", "#c0392b"
COLUMNS = {"ours": DARK, "SUMO, free turns": BLUE, "SUMO, slow turns": RED}


@dataclass
class Statistics:
    """Statistics of the vehicles in coverage, and travel times of all vehicles by name."""

    in_coverage: list[int]
    speeds_mps: list[np.ndarray]
    bounds_s: list[np.ndarray]
    inside_since: dict[str, float]
    visits_s: list[float]
    began_s: dict[str, float]
    travel_s: dict[str, float]


def experiment(seed: int, **sumo: object) -> Experiment:
    """The default experiment at its default arrival rate, from empty streets; with `sumo`, driven by SUMO."""
    base = from_tables({"run": {"name": "grid", "seed": seed}})
    routes = GridRoutes(StreetGrid.of(base.roads, base.radio.coverage_radius_m), base.traffic)
    rate = demand(base, routes).arrivals_per_s
    ours = {"run": {"name": "grid", "seed": seed}, "traffic": {"warm_start": False, "arrivals_per_s": rate}}
    if not sumo:
        return from_tables(ours)
    del ours["traffic"]["warm_start"]
    reach = {"coverage_radius_m": 1500.0}  # covers all vehicles
    return from_tables(ours | {"mobility": {"kind": "sumo", "file": "-.net.xml"}, "sumo": sumo, "radio": reach})


def measure(traffic: Mobility, name: dict[int, str]) -> Statistics:
    """Simulate the whole time; statistics begin when the streets have filled."""
    statistics, before = Statistics([], [], [], {}, [], {}, {}), set()
    for step in range(1, (FILL_S + MEASURED_S) * 10 + 1):
        scene, time_s = traffic.advance(), step / 10
        names = [name.get(number, str(number)) for number in scene.vehicle.tolist()]
        for left in (before := set(before)) - set(names):
            statistics.travel_s[left] = time_s - statistics.began_s[left]
        for new in set(names) - before:
            statistics.began_s.setdefault(new, time_s)
        before = set(names)
        _add_scene(statistics, scene, names, time_s)
    return statistics


def _add_scene(statistics: Statistics, scene: Scene, names: list[str], time_s: float) -> None:
    inside = scene.x_m**2 + scene.y_m**2 <= RADIUS_M**2
    here = {names[row] for row in np.flatnonzero(inside)}
    for left in set(statistics.inside_since) - here:
        since = statistics.inside_since.pop(left)
        if since > FILL_S:
            statistics.visits_s.append(time_s - since)
    for new in here - set(statistics.inside_since):
        statistics.inside_since[new] = time_s
    if time_s <= FILL_S:
        return
    statistics.in_coverage.append(len(here))
    statistics.speeds_mps.append(scene.speed_mps[inside])
    if time_s % 5 < 0.05:
        x_m, y_m = scene.x_m[inside], scene.y_m[inside]
        statistics.bounds_s.append(sojourn_bound_s(x_m, y_m, radius_m=RADIUS_M, max_speed_mps=20.12))


class Logged:
    """Our traffic, with a log of the route and the departure time of every vehicle."""

    def __init__(self, seed: int) -> None:
        self.traffic = IdmTraffic(experiment(seed), Streams(seed))
        self.routes: dict[int, list[int]] = {}
        self.entered_s: dict[int, float] = {}

    def advance(self) -> Scene:
        """Advance by one step and log the edge of every vehicle."""
        scene, fleet = self.traffic.advance(), self.traffic.streets.fleet
        for number, edge in zip(fleet.vehicle.tolist(), fleet.edge.tolist(), strict=True):
            route = self.routes.setdefault(number, [])
            if not route or route[-1] != edge:
                route.append(edge)
                self.entered_s.setdefault(number, scene.time_ns / 1e9)
        return scene

    def finish(self) -> None:
        """Add the next edge to the routes of vehicles that are still driving at the end."""
        fleet = self.traffic.streets.fleet
        for number, following in zip(fleet.vehicle.tolist(), fleet.next_edge.tolist(), strict=True):
            if following >= 0:
                self.routes[number].append(following)


def sumo_grid(folder: Path, seed: int) -> Path:
    """Make the same grid with the same signals for SUMO; signal offsets are random, as ours are."""
    net = folder / "grid.net.xml"
    run_program(
        "netgenerate",
        ("--grid", "--grid.number", BLOCKS + 1, "--grid.length", BLOCK_M, "--grid.attach-length", BLOCK_M,
         "--default.lanenumber", 1, "--default.speed", 20.12, "--default-junction-type", "traffic_light",
         "--tls.green.time", GREEN_S, "--tls.yellow.time", AMBER_S, "--tls.left-green.time", 0,
         "--no-turnarounds", "--output-file", net),
        "no grid",
    )  # fmt: skip
    rng, cycle = np.random.default_rng(seed), 2 * (GREEN_S + AMBER_S)
    net.write_text(re.sub(r'offset="0"', lambda _: f'offset="{rng.integers(cycle)}"', net.read_text()))
    return net


def names_of(grid: StreetGrid, streets: list[Street], origin_m: float) -> list[str]:
    """SUMO's name of each of our edges: the street with the same midpoint and heading."""
    heading = np.array([street.points_m[-1] - street.points_m[0] for street in streets])
    heading /= np.hypot(*heading.T)[:, None]
    middle = np.array([(street.points_m[-1] + street.points_m[0]) / 2 for street in streets]) - origin_m
    matched = []
    for edge in range(grid.edges):
        step = np.array([STEP_X[grid.heading[edge]], STEP_Y[grid.heading[edge]]])
        place = np.array([grid.start_x_m[edge], grid.start_y_m[edge]]) + step * grid.block_m / 2
        off = np.hypot(*(middle - place).T) + 1e6 * (heading @ step < 0.9)
        assert off.min() < 12.0
        matched.append(streets[int(off.argmin())].name)
    assert len(set(matched)) == grid.edges
    return matched


def write_routes(path: Path, logged: Logged, names: list[str], own: Experiment) -> None:
    """Write every vehicle of our simulation with its departure time and its route."""
    rows = sorted(logged.routes, key=lambda number: (logged.entered_s[number], number))
    with gzip.open(path, "wt") as file:
        file.write(f"<routes>{_vehicle_type(own)}\n")
        for number in rows:
            edges = " ".join(names[edge] for edge in logged.routes[number])
            file.write(f'<vehicle id="{number}" type="car" depart="{logged.entered_s[number]:.3f}" departSpeed="max">')
            file.write(f'<route edges="{edges}"/></vehicle>\n')
        file.write("</routes>")


def measure_sumo(seed: int, logged: Logged, folder: Path, lane_limits: bool) -> Statistics:
    """Simulate the same vehicles with SUMO and return their statistics."""
    net_file, origin_m = sumo_grid(folder, seed), BLOCK_M + BLOCKS * BLOCK_M / 2
    grid = StreetGrid.rectangle(BLOCKS, BLOCKS, BLOCK_M)
    names = names_of(grid, read_net(net_file, "grid").streets, origin_m)
    own = experiment(seed, lane_limits=lane_limits)
    write_routes(folder / "routes.xml.gz", logged, names, own)
    setup = SumoSetup(own, arguments(net_file, folder / "routes.xml.gz"), (origin_m, origin_m), 0.0)
    with live(setup) as traffic:
        return measure(traffic, _Names(traffic._register._numbers))


class _Names(dict[int, str]):
    """Number of a vehicle in the run → its name in SUMO, which is our number; grows as vehicles depart."""

    def __init__(self, numbers: dict[str, int]) -> None:
        super().__init__()
        self._numbers = numbers

    def get(self, number: int, default: str = "") -> str:  # type: ignore[override]
        if number not in self:
            self.update({value: key for key, value in self._numbers.items()})
        return self[number]


def compare(seed: int) -> dict[str, Statistics]:
    """Statistics of our traffic, and of SUMO with and without slowing down for turns."""
    logged = Logged(seed)
    columns = {"ours": measure(logged, {})}
    logged.finish()
    for column, limits in (("SUMO, free turns", False), ("SUMO, slow turns", True)):
        with tempfile.TemporaryDirectory() as folder:
            columns[column] = measure_sumo(seed, logged, Path(folder), limits)
    return columns


def pooled(by_seed: list[dict[str, Statistics]], column: str) -> dict[str, np.ndarray]:
    """The samples of all seeds; travel times only of vehicles that departed after the streets had filled."""
    parts = [columns[column] for columns in by_seed]
    common = [set.intersection(*(set(s.travel_s) for s in columns.values())) for columns in by_seed]
    late = [[v for v in both if p.began_s[v] > FILL_S] for p, both in zip(parts, common, strict=True)]
    return {
        "in coverage, mean": np.concatenate([p.in_coverage for p in parts]),
        "speed in coverage, m/s": np.concatenate([s for p in parts for s in p.speeds_mps]),
        "sojourn bound": np.concatenate([b for p in parts for b in p.bounds_s]),
        "visit": np.concatenate([p.visits_s for p in parts]),
        "travel": np.concatenate([[p.travel_s[v] for v in vs] for p, vs in zip(parts, late, strict=True)]),
    }


def table(figures: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """The table in Markdown."""
    rows = {
        "vehicles in coverage, mean": lambda f: f"{f['in coverage, mean'].mean():.1f}",
        "mean speed in coverage, m/s": lambda f: f"{f['speed in coverage, m/s'].mean():.2f}",
        "slower than 0.1 m/s, than 2 m/s": lambda f: ", ".join(
            f"{100 * (f['speed in coverage, m/s'] < mps).mean():.0f} %" for mps in (0.1, 2.0)
        ),
        "sojourn bound below 5 s, below 2.5 s": lambda f: ", ".join(
            f"{100 * (f['sojourn bound'] < t).mean():.1f} %" for t in (5.0, 2.5)
        ),
        "visit to the circle, s: median (90 %)": lambda f: (
            f"{np.median(f['visit']):.0f} ({np.percentile(f['visit'], 90):.0f})"
        ),
        "travel time, s: median (90 %)": lambda f: (
            f"{np.median(f['travel']):.0f} ({np.percentile(f['travel'], 90):.0f})"
        ),
        "vehicles timed": lambda f: str(f["travel"].size),
    }
    lines = [f"| | {' | '.join(figures)} |", "|---" * (len(figures) + 1) + "|"]
    return lines + [f"| {row} | {' | '.join(show(f) for f in figures.values())} |" for row, show in rows.items()]


def draw(figures: dict[str, dict[str, np.ndarray]]) -> None:
    """Draw three CCDFs."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    titles = {
        "sojourn bound": (25, "sojourn bound"),
        "visit": (500, "time in coverage"),
        "travel": (700, "travel time"),
    }
    for axes, (name, (most, title)) in zip(panels, titles.items(), strict=True):
        for column, colour in COLUMNS.items():
            values = np.sort(figures[column][name])
            axes.step(values, 1 - np.arange(values.size) / values.size, color=colour, label=column)
        axes.set(title=f"CCDF of the {title}", xlabel="t, s", xlim=(0, most), ylim=(0, 1.01))
        axes.grid(color="#e8ecef")
    panels[0].set_ylabel("P(more than t)")
    panels[2].legend(frameon=False)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


def main() -> None:
    """Compare seeds 1, 2 and 3, or as many as given on the command line."""
    seeds = range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 3))
    by_seed = [compare(seed) for seed in seeds]
    figures = {column: pooled(by_seed, column) for column in COLUMNS}
    print("\n".join(table(figures)))
    draw(figures)


if __name__ == "__main__":
    main()
