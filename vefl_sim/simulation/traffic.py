"""The traffic of a run, which can be started any number of times."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration, make_part, require_protocol
from vefl_sim.mobility.scene import Mobility


def make_mobility(experiment: Experiment, streams: Streams) -> Mobility:
    """Start the traffic named by `mobility.kind`, unless it is driven ahead of the rounds."""
    mobility: Mobility = make_part("mobility.kind", experiment.mobility.kind, experiment, streams)
    require_protocol("mobility.kind", mobility, Mobility)
    return mobility


def make_traffic(experiment: Experiment, streams: Streams, folder: Path | None = None) -> Callable[[], Mobility]:
    """A function that starts the same traffic each time it is called, or copies it as it was at its start.

    Traffic that is driven ahead of the rounds is driven here, into `folder`, or into a temporary one.
    """
    kind = experiment.mobility.kind
    if not declaration("mobility.kind", kind, "drives_ahead", False):
        start = partial(make_mobility, experiment, streams)
        return partial(deepcopy, start()) if declaration("mobility.kind", kind, "copied", False) else start
    drive = partial(make_part, "mobility.kind", kind, experiment)
    if folder:
        return drive(folder)  # type: ignore[no-any-return]
    temporary = Path(mkdtemp(prefix="vefl_sim-"))
    try:
        traffic: Callable[[], Mobility] = drive(temporary)
    except BaseException:
        rmtree(temporary, ignore_errors=True)
        raise
    finalize(traffic, rmtree, temporary, ignore_errors=True)
    return traffic
