"""A rehearsal: one round of an experiment with a few standing CVs and without learning.

It takes a moment once all kernels of the radio network are in the cache, and leaves them there if they are not.
"""

import sys
import tomllib
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from vefl_sim.core.clock import to_ns
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import validated
from vefl_sim.learning.codecs.floats import Float32
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import NullLearner
from vefl_sim.mobility.scene import Mobility, Scene
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.radio.link import Link
from vefl_sim.records.recorder import Recorder
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.parts import make_channel, make_policy, make_scheduler, make_scheme
from vefl_sim.simulation.scenario import Scenario
from vefl_sim.simulation.wiring import wire

_CVS = 3
_PARAMETERS = 1000  # of a model: few enough for an update to be sent within some slots


class StandingCars:
    """CVs that stand at different distances from the gNB."""

    def __init__(self, step_ns: int, radius_m: float) -> None:
        self.step_ns, self._time_ns, self._farthest_m = step_ns, 0, min(100.0, 0.5 * radius_m)

    def scene(self) -> Scene:
        """The current scene: the same at all times."""
        cv, nothing = np.arange(1, _CVS + 1), np.zeros(_CVS)
        return Scene(
            self._time_ns, cv, np.linspace(0.2, 1.0, _CVS) * self._farthest_m, nothing, nothing, np.ones(_CVS, np.bool_)
        )

    def advance(self) -> Scene:
        """Let one step pass."""
        self._time_ns += self.step_ns
        return self.scene()


def rehearse(experiment: Experiment) -> None:
    """Simulate one round of the experiment with standing CVs and without learning; nothing is kept of it."""
    once = experiment.run.model_copy(update={"rounds": 1, "duration_s": None})
    scenario, env = _scenario(experiment.model_copy(update={"run": once})), NanosecondEnvironment()
    with TemporaryDirectory(prefix="vefl_sim-") as folder:
        recorder = Recorder(Path(folder), experiment.trace, experiment.slots)
        audit = Audit(scenario.link, experiment.slots.slot_s)
        env.run(until=wire(scenario, env, recorder, audit, lambda report: None).processes(env))
    if not audit.slots:
        raise RuntimeError("no CV has sent anything, so the kernels are not compiled")


def _scenario(experiment: Experiment) -> Scenario:
    streams, step_ns = Streams(experiment.run.seed), to_ns(experiment.mobility.step_s)
    images, labels = np.zeros((1, 1, 1, 1), np.uint8), np.zeros(1, np.int32)

    def mobility() -> Mobility:
        return StandingCars(step_ns, experiment.radio.coverage_radius_m)

    return Scenario(
        experiment=experiment,
        streams=streams,
        shards={cv: np.zeros(1, np.int64) for cv in range(1, _CVS + 1)},
        dataset=Dataset("rehearsal", images, labels, images, labels, classes=1),
        learner=NullLearner(_PARAMETERS),
        codec=Float32(experiment),
        link=Link.of(experiment.radio),
        scheme=make_scheme(experiment),
        scheduler=make_scheduler(experiment),
        policy=make_policy(experiment),
        mobility=mobility,
        channel=partial(make_channel, experiment, streams),
    )


if __name__ == "__main__":
    rehearse(validated(tomllib.loads(sys.stdin.read())))
