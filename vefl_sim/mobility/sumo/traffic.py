"""The traffic of a run by SUMO: made ready, driven once to the end, and kept in a folder of the run.

The data are dealt out among all CVs that will ever be in coverage, so that the whole traffic must be known before the
first round; and nothing that happens in a round changes it. Hence SUMO drives ahead of the rounds, its trajectory is
written down as it goes, and the rounds see what was written. Whoever resumes a run reads it again, without SUMO.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import ExperimentError, RunFailed
from vefl_sim.core.files import write_text, writing
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.recorded.trajectory import COMPLETE, UNFINISHED, Tell, Trajectory, TrajectoryWriter, record
from vefl_sim.mobility.sumo.calibration import Calibration, arguments, calibrate
from vefl_sim.mobility.sumo.demand import SumoRoutes, draw_routes, write_demand
from vefl_sim.mobility.sumo.inputs import gnb_m, map_path, net_of
from vefl_sim.mobility.sumo.live import SumoSetup, live
from vefl_sim.mobility.sumo.net import Net
from vefl_sim.mobility.sumo.process import CannotStart, require_accepted
from vefl_sim.mobility.sumo.programs import home

_NOTES = "sumo.json"
_TELL_EVERY_S = 1.0


@dataclass(frozen=True)
class Ready:
    """What SUMO is started with, and how the demand was found if it is ours."""

    case: SumoSetup
    net: Net
    routes: SumoRoutes | None
    calibration: Calibration | None


def prepare_sumo(experiment: Experiment, folder: Path, tell: Tell | None = None) -> Ready:
    """Net, gNB and demand; all bad input shows here. Files that are made go to the folder, `tell` hears of pilots."""
    home()
    file = experiment.mobility.file
    if "," in str(folder):
        raise ExperimentError(f"{folder} has a comma, at which SUMO would cut it: choose another place (--out).")
    net = net_of(file, folder)
    place = gnb_m(experiment, net)
    if experiment.is_sumo_configuration:
        given = ("--configuration-file", str(map_path(file)), "--route-steps", "0")  # all types, to limit them
        case = SumoSetup(experiment, given, place, experiment.mobility.start_s)
        _check(case)
        return Ready(case, net, None, None)
    routes = draw_routes(net, experiment.sumo.fringe_factor)
    calibration = calibrate(experiment, routes, place, tell)
    start_s = experiment.mobility.start_s
    if start_s is None:
        start_s = calibration.settled_s if experiment.traffic.warm_start else 0.0
    demand, until_s = folder / "demand.rou.xml.gz", start_s + to_s(experiment.duration_ns) + 1.0
    with writing(demand):
        write_demand(demand, routes, experiment, calibration.rate_per_s, until_s)
    return Ready(SumoSetup(experiment, arguments(net.path, demand), place, start_s), net, routes, calibration)


def drive(experiment: Experiment, folder: Path, tell: Tell | None = None) -> Path:
    """The complete trajectory: the one that is there, or a new one by SUMO."""
    path = folder / COMPLETE
    if not fault(folder):
        return path
    with writing(folder):
        folder.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)  # whoever has begun with a damaged one was told before
    ready = prepare_sumo(experiment, folder, tell)
    with_what = _provenance(ready)
    _note(folder, with_what)
    writer = TrajectoryWriter(path)
    try:
        _drive(ready.case, writer, tell)
    except RunFailed as error:
        if writer.is_empty:
            writer.discard()  # what an earlier one has left is more
            raise
        writer.close(folder / UNFINISHED)
        raise RunFailed(f"{str(error).rstrip('.')} (what it drove so far is in {folder / UNFINISHED}).") from error
    except BaseException:
        writer.discard()
        raise
    writer.close()
    _note(folder, with_what | {"trajectory": _sums(path)})
    (folder / UNFINISHED).unlink(missing_ok=True)
    return path


def fault(folder: Path) -> str | None:
    """What is wrong with the trajectory of a run; None if it is complete and as it was written."""
    path, notes = folder / COMPLETE, folder / _NOTES
    if not path.exists():
        return f"{path} is not there"
    try:
        noted = json.loads(notes.read_text(encoding="utf-8"))["trajectory"]
    except (OSError, ValueError, LookupError, TypeError):
        return f"{notes} does not say how {path} was written"
    return None if _sums(path) == noted else f"{path} has changed since it was written"


def _sums(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _note(folder: Path, notes: dict[str, object]) -> None:
    write_text(folder / _NOTES, json.dumps(notes, indent=2) + "\n")


def driven_trajectory(path: Path, experiment: Experiment) -> Trajectory:
    """The traffic that was driven, from its beginning."""
    return Trajectory(path, to_ns(experiment.mobility.step_s))


def _drive(case: SumoSetup, writer: TrajectoryWriter, tell: Tell | None) -> None:
    until_ns, message = case.experiment.duration_ns, time.perf_counter()
    with live(case) as traffic:
        for time_ns in record(traffic, writer, until_ns):
            if tell and time.perf_counter() - message > _TELL_EVERY_S:
                message = time.perf_counter()
                tell(to_s(time_ns), to_s(until_ns))


def _check(case: SumoSetup) -> None:
    try:
        require_accepted(case.all_arguments())
    except CannotStart as error:
        raise ExperimentError(f'mobility.file = "{case.experiment.mobility.file}": SUMO says: {error}') from None


def _provenance(ready: Ready) -> dict[str, object]:
    case = ready.case
    return {
        "sumo": version("eclipse-sumo"),
        "arguments": case.all_arguments(),
        "gnb_m": case.gnb_m,
        "start_s": case.start_s,
        "calibration": asdict(ready.calibration) if ready.calibration else None,
    }
