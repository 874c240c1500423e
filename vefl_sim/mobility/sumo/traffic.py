"""The traffic of a run by SUMO: prepared, simulated once from start to end, and stored in the run directory.

The data are distributed over all CVs that will ever be in coverage, so the whole traffic must be known before the first
round; and nothing that happens in a round changes it. Therefore SUMO runs before the rounds and its trajectory is
written to a file, from which the rounds read. A resumed run reads the same file, without SUMO.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import explain_write_errors, read_json, write_text
from vefl_sim.core.progress import report
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.playback import COMPLETE, digest_of, record, trajectory
from vefl_sim.mobility.scene import Mobility
from vefl_sim.mobility.sources import is_sumo_configuration
from vefl_sim.mobility.sumo.demand import Calibration, SumoRoutes, arguments, calibrate, draw_routes, write_demand
from vefl_sim.mobility.sumo.inputs import configuration_of, gnb_m, net_of
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import Net
from vefl_sim.mobility.sumo.programs import ask, file_argument, home

_NOTES = "sumo.json"


@dataclass(frozen=True)
class PreparedSumo:
    """Everything that SUMO needs to start; `routes` and `calibration` only if we generate the demand."""

    setup: SumoSetup
    routes: SumoRoutes | None
    calibration: Calibration | None


def prepare_sumo(experiment: Experiment, folder: Path) -> PreparedSumo:
    """Prepare network, gNB and demand, and report all bad input; new files go to `folder`."""
    home()
    file = experiment.mobility.file
    file_argument(folder)  # before it is written to, refuses a name that SUMO would take for another one
    if is_sumo_configuration(experiment):
        net, named = configuration_of(file, folder)
        gnb, options = gnb_m(experiment, net), (*named, "--route-steps", "0")  # reads all types, to limit them
        setup = SumoSetup(experiment, options, gnb, experiment.mobility.start_s)
        ask(setup.all_arguments(), f'mobility.file = "{file}"')
        return PreparedSumo(setup, None, None)
    net = net_of(file, folder)
    gnb = gnb_m(experiment, net)
    _require_readable(net, f'mobility.file = "{file}"')
    routes = draw_routes(net, experiment.sumo.fringe_factor)
    calibration = calibrate(experiment, routes, gnb)
    start_s = experiment.mobility.start_s
    if start_s is None:
        start_s = calibration.settled_s if experiment.traffic.warm_start else 0.0
    demand, until_s = folder / "demand.rou.xml.gz", start_s + to_s(experiment.duration_ns) + 1.0
    with explain_write_errors(demand):
        write_demand(demand, routes, experiment, calibration.rate_per_s, until_s)
    return PreparedSumo(SumoSetup(experiment, arguments(net.path, demand), gnb, start_s), routes, calibration)


def drive(experiment: Experiment, folder: Path) -> Path:
    """The path of the complete trajectory in the folder; SUMO simulates it unless it exists and is intact."""
    path = folder / COMPLETE
    if not fault(folder):
        return path
    with explain_write_errors(folder):
        folder.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)  # a damaged one; runs that have used it are refused before
    prepared = prepare_sumo(experiment, folder)
    setup = prepared.setup
    notes: dict[str, object] = {
        "sumo": version("eclipse-sumo"),
        "arguments": setup.all_arguments(),
        "gnb_m": setup.gnb_m,
        "start_s": setup.start_s,
        "calibration": asdict(prepared.calibration) if prepared.calibration else None,
    }
    write_text(folder / _NOTES, json.dumps(notes, indent=2) + "\n")
    with live(setup, partial(report, "SUMO: the traffic settles", of=setup.start_s or 0.0)) as traffic:
        record(traffic, path, experiment.duration_ns)
    notes["trajectory"] = {"bytes": path.stat().st_size, "sha256": digest_of(path)}
    write_text(folder / _NOTES, json.dumps(notes, indent=2) + "\n")
    return path


def fault(folder: Path) -> str | None:
    """A phrase that describes what is wrong with the trajectory of a run; None if it is complete and unchanged."""
    path, notes = folder / COMPLETE, folder / _NOTES
    if not path.exists():
        return f"{path} is missing"
    try:
        noted = read_json(notes)["trajectory"]
        same = path.stat().st_size == noted["bytes"] and digest_of(path) == noted["sha256"]  # a huge file is not read
        return None if same else f"{path} has changed since it was written"
    except ExperimentError as error:
        return str(error).rstrip(".")
    except (OSError, ValueError, LookupError, TypeError):
        return f"{notes} has no checksum of {path}"


def driven_trajectory(path: Path, experiment: Experiment) -> Mobility:
    """The recorded traffic of a run, from its start."""
    return trajectory(path, to_ns(experiment.mobility.step_s))


@lru_cache(maxsize=16)  # the runs of a comparison share the same network
def _require_readable(net: Net, label: str) -> None:
    """Check in another process that SUMO can read a network, because libsumo may crash ours."""
    ask(("--net-file", file_argument(net.path)), label)
