"""The traffic of a run, which can be started any number of times."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part, make_part, require_protocol
from vefl_sim.mobility.recorded.trajectory import DriveProgress
from vefl_sim.mobility.scene import Mobility


def make_mobility(experiment: Experiment, streams: Streams) -> Mobility:
    """Start the traffic named by `mobility.kind`."""
    kind = experiment.mobility.kind
    if is_part(kind):
        own: Mobility = make_part("mobility.kind", kind, experiment, streams)
        require_protocol("mobility.kind", own, Mobility)
        return own
    if kind == "playback":
        from vefl_sim.mobility.recorded.playback import Playback

        return Playback(experiment, streams)
    from vefl_sim.mobility.grid.traffic import IdmTraffic

    return IdmTraffic(experiment, streams)


def make_traffic(
    experiment: Experiment, streams: Streams, folder: Path | None = None, on_progress: DriveProgress | None = None
) -> Callable[[], Mobility]:
    """A function that starts the same traffic each time it is called.

    SUMO is run to the end here, and its trajectory is written to `folder`, or to a temporary one.
    """
    if experiment.mobility.kind != "sumo":
        return partial(make_mobility, experiment, streams)
    from vefl_sim.mobility.sumo.traffic import drive, driven_trajectory

    if folder:
        return partial(driven_trajectory, drive(experiment, folder, on_progress), experiment)
    temporary = Path(mkdtemp(prefix="vefl_sim-"))
    try:
        traffic = partial(driven_trajectory, drive(experiment, temporary, on_progress), experiment)
    except BaseException:
        rmtree(temporary, ignore_errors=True)
        raise
    finalize(traffic, rmtree, temporary, ignore_errors=True)
    return traffic
