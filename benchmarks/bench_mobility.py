"""Traffic on the grid: the compiled step compared with its plain Python twin and with SUMO; wall time and memory.

    python benchmarks/bench_mobility.py [--quick]

One thread. Prints a table and writes benchmarks/bench_mobility.json.
"""

from harness import QUICK, ROOT, Figures, Turn, cpu_s, keep, peak_mib, progress, show, timed
from script import SMALL, answer_help

import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.mobility.grid.plain_step import PlainStep, vehicles_of
from vefl_sim import from_tables
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.coverage import crossings
from vefl_sim.mobility.grid.step import step
from vefl_sim.mobility.grid.traffic import IdmTraffic
from vefl_sim.mobility.kept import KeptTraffic
from vefl_sim.mobility.scene import Mobility
from vefl_sim.mobility.sumo.demand import arguments, draw_routes, write_demand
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import read_net
from vefl_sim.mobility.sumo.programs import environment, program, run_program

BLOCKS = {1000: 11, 5000: 27}  # of a square grid that holds about this many vehicles with 300 in coverage
CHANGING = ("position_m", "speed_mps", "limit_m", "cleared", "asked_step")


def traffic_of(mean_in_coverage: float, blocks: int = 8) -> IdmTraffic:
    """Traffic with this mean number of vehicles in coverage, on a grid of this size."""
    experiment = Experiment(
        run=RunTable(name="bench"),
        roads=RoadsTable(blocks=blocks),
        mobility=MobilityTable(),
        traffic=TrafficTable(mean_in_coverage=mean_in_coverage),
    )
    return IdmTraffic(experiment, Streams(1))


def against_the_twin() -> Figures:
    """Median µs per step of the plain and the compiled step, which take turns on the same states."""
    traffic = traffic_of(35)
    streets, times = traffic.streets, ([], [])
    for _ in range(5 if SMALL else 50 if QUICK else 300):
        traffic.advance()
        fleet = streets.fleet._replace(**{name: getattr(streets.fleet, name).copy() for name in CHANGING})
        rest = streets._ways, streets.signals, streets.rules, streets._now
        plain = PlainStep(vehicles_of(fleet), *rest)
        times[0].append(timed(plain.run)[0])
        times[1].append(timed(partial(step, fleet, *rest))[0])
    plain_us, compiled_us = (1e6 * statistics.median(column) for column in times)
    return {"plain, µs": plain_us, "compiled, µs": compiled_us, "ratio": plain_us / compiled_us}


def drive(traffic: Mobility, simulated_s: float) -> float:
    """Compute all that the simulator needs of mobility, scenes and crossings, every 0.1 s; mean number of vehicles."""
    vehicles, scene = [], traffic.scene()
    for _ in range(round(simulated_s / 0.1)):
        before, scene = scene, traffic.advance()
        crossings(before, scene, 500.0)
        vehicles.append(scene.vehicle.size)
    return statistics.mean(vehicles)


def long_run(mean_in_coverage: float, blocks: int, simulated_s: float) -> Figures:
    traffic = traffic_of(mean_in_coverage, blocks)
    took_s, vehicles = timed(lambda: drive(traffic, simulated_s))
    return {
        "vehicles": vehicles,
        "simulated, s": simulated_s,
        "CPU, s": took_s,
        "× real time": simulated_s / took_s,
        "peak so far, MiB": peak_mib(),
    }


def kept_run(mean_in_coverage: float, blocks: int, simulated_s: float) -> Figures:
    """The two drives of a run: the first keeps the scenes, the second plays them back."""
    before_mib, traffic = peak_mib(), KeptTraffic(traffic_of(mean_in_coverage, blocks))
    first_s, vehicles = timed(lambda: drive(traffic(), simulated_s))
    return {
        "vehicles": vehicles,
        "simulated, s": simulated_s,
        "first drive, CPU s": first_s,
        "second, CPU s": timed(lambda: drive(traffic(), simulated_s))[0],
        "added to the peak, MiB": peak_mib() - before_mib,
    }


def mobility() -> Turn:
    """Case of `python benchmarks`: many vehicles; memory is that of a process that does nothing else."""
    crowds = {vehicles: traffic_of(300, blocks) for vehicles, blocks in BLOCKS.items()}
    memory = {
        f"mobility: {vehicles} vehicles, peak MiB": float(
            subprocess.run([sys.executable, __file__, "memory", str(blocks)], check=True, stdout=-1, text=True).stdout
        )
        for vehicles, blocks in BLOCKS.items()
    }

    def turn() -> Figures:
        times = {vehicles: timed(partial(drive, traffic, 10.0))[0] for vehicles, traffic in crowds.items()}
        return {f"mobility: {vehicles} vehicles, × real time": 10.0 / times[vehicles] for vehicles in times} | memory

    return turn


def against_sumo(seconds: int, turns: int) -> dict[str, Figures]:
    """The same vehicles on the default grid: our traffic, SUMO alone, and SUMO coupled as in a run."""
    sys.path.append(str(pictures := ROOT / "docs" / "pictures"))
    grid = runpy.run_path(str(pictures / "sumo_grid.py"))
    logged = grid["Logged"](1)
    vehicles = statistics.mean(logged.advance().vehicle.size for _ in range(10 * seconds))
    logged.finish()
    with tempfile.TemporaryDirectory() as folder:
        case = _sumo_case(grid, logged, Path(folder))
        ours = {"ours": lambda: _advance(IdmTraffic(grid["experiment"](1), Streams(1)), seconds)}
        return in_turns(ours | _by_sumo(case, seconds), turns, vehicles)


def on_a_map(seconds: int, turns: int) -> dict[str, Figures]:
    """A grid of 5 × 5 km, of which the gNB covers a small part, as on a map; the streets are empty at first."""
    with tempfile.TemporaryDirectory() as folder:
        net = Path(folder) / "map.net.xml"
        streets = ("--grid", "--grid.number", 26, "--grid.length", 200, "--tls.guess", "--output-file", net)
        run_program("netgenerate", streets, "no grid")
        tables = {
            "run": {"name": "map"},
            "mobility": {"kind": "sumo", "file": str(net)},
            "traffic": {"arrivals_per_s": 2.0},
        }
        experiment, demand = from_tables(tables), Path(folder) / "demand.rou.xml.gz"
        write_demand(demand, draw_routes(read_net(net, "map"), 10.0), experiment, 2.0, seconds)
        case = SumoSetup(experiment, arguments(net, demand), (2500.0, 2500.0), 0.0)
        # The number of vehicles is an estimate: trips are longer than the simulated time.
        return in_turns(_by_sumo(case, seconds), turns, 2.0 * seconds / 2)


def in_turns(jobs: dict[str, Callable[[], None]], turns: int, vehicles: float) -> dict[str, Figures]:
    """Median wall and CPU seconds of each, and the median over the turns of the ratio of its CPU time to SUMO alone."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            took_s, (used_s, _) = timed(partial(timed, job, cpu_s), time.perf_counter)
            times[name].append((took_s, used_s))
    alone = [cpu for _, cpu in times["SUMO alone"]]
    return {
        name: {
            "vehicles": vehicles,
            "wall, s": statistics.median(wall for wall, _ in pairs),
            "CPU, s": statistics.median(cpu for _, cpu in pairs),
            "CPU, of SUMO alone": statistics.median(cpu / of for (_, cpu), of in zip(pairs, alone, strict=True)),
        }
        for name, pairs in times.items()
    }


def _by_sumo(case: SumoSetup, seconds: int) -> dict[str, Callable[[], None]]:
    return {
        "SUMO alone": lambda: _alone(case, seconds),
        "SUMO by libsumo": lambda: _coupled(case, seconds, "libsumo"),
        "SUMO by traci": lambda: _coupled(case, seconds, "traci"),
    }


def _sumo_case(grid: dict[str, Any], logged: Any, folder: Path) -> SumoSetup:
    net, origin_m = grid["sumo_grid"](folder, 1), grid["BLOCK_M"] * (1 + grid["BLOCKS"] / 2)
    streets = logged.traffic.streets.grid
    own = grid["experiment"](1, lane_limits=False)
    grid["write_routes"](
        folder / "routes.xml.gz", logged, grid["names_of"](streets, read_net(net, "grid").streets, origin_m), own
    )
    covered = own.model_copy(update={"radio": Experiment(run=RunTable(name="bench")).radio})  # 500 m, as in a run
    return SumoSetup(covered, arguments(net, folder / "routes.xml.gz"), (origin_m, origin_m), 0.0)


def _advance(traffic: Any, seconds: int) -> None:
    for _ in range(10 * seconds):
        traffic.advance()


def _alone(case: SumoSetup, seconds: int) -> None:
    quiet = ("--no-step-log", "--no-warnings", "--duration-log.disable", "--end", str(seconds))
    subprocess.run([program("sumo"), *case.all_arguments(), *quiet], env=environment(), check=True)


def _coupled(case: SumoSetup, seconds: int, client: str) -> None:
    sumo = case.experiment.sumo.model_copy(update={"client": client})
    experiment = case.experiment.model_copy(update={"sumo": sumo})
    with live(SumoSetup(experiment, case.arguments, case.gnb_m, case.start_s)) as traffic:
        _advance(traffic, seconds)


def main() -> None:
    share, repeats = (0.01, 1) if SMALL else (0.1, 1) if QUICK else (1.0, 7)
    figures = {"one step, 60 vehicles": {"": against_the_twin()}, "long runs": {}, "driven once": {}}
    for mean_in_coverage, blocks, simulated_s in ((35, 8, 2000), (35, 8, 8000), (330, 12, 500)):
        progress(name := f"{mean_in_coverage} in coverage, {simulated_s} s")
        figures["long runs"][name] = long_run(mean_in_coverage, blocks, share * simulated_s)
    for mean_in_coverage, blocks, simulated_s in ((35, 8, 1000), (300, BLOCKS[1000], 1000), (300, BLOCKS[5000], 500)):
        progress(name := f"{mean_in_coverage} in coverage, {blocks} blocks, twice")
        figures["driven once"][name] = kept_run(mean_in_coverage, blocks, share * simulated_s)
    comparisons = (("the same vehicles on the same grid", against_sumo, 600), ("on a map of 5 × 5 km", on_a_map, 150))
    for title, measure, seconds in comparisons:
        progress(title)
        figures[title] = measure(10 if SMALL else 60 if QUICK else seconds, repeats)
    for title, rows in figures.items():
        show(title, rows)
    if not QUICK:
        keep(__file__, figures)


if __name__ == "__main__":
    answer_help(__doc__)
    if sys.argv[1:2] == ["memory"]:
        drive(traffic_of(300, int(sys.argv[2])), 10.0)
        print(peak_mib())
    else:
        main()
