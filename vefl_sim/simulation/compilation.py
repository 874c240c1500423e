"""Compiles the kernels of the radio network in a second process, while the first one prepares traffic, data and model.

Numba compiles one function at a time, and those kernels take as long as all the rest together. The second process
rehearses: it simulates one round with a few standing CVs and without learning, which leaves the kernels in the cache of
`core/kernel.py`. If anything goes wrong there, the first process compiles them itself, at their first call.
"""

import gc
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from vefl_sim.core.clock import to_ns
from vefl_sim.core.kernel import cache_folder, compiling
from vefl_sim.core.memory import cores
from vefl_sim.core.progress import report
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration, is_part, load_part
from vefl_sim.experiment.toml import as_toml, validated
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import Learner
from vefl_sim.mobility.scene import Scene
from vefl_sim.optimize.rat.allocate import needs_large
from vefl_sim.radio.link import Link

_HERE = str(Path(__file__).parents[2])  # vefl_sim itself; the second process needs no module of the user
_LONGEST_S = 300.0  # many times what compiling takes: then the second process is stuck
_CVS = 3  # of a rehearsal


@contextmanager
def compiling_ahead(experiment: Experiment) -> Iterator[subprocess.Popen[bytes] | None]:
    """Compile in a second process, unless all kernels are in the cache or the run may use one core only.

    The end of the block waits until the kernels are in the cache, and remembers that they are. An error in the block
    ends the process.
    """
    marker = _marker(experiment)
    if marker is None or marker.exists() or (experiment.learning.threads or cores()) == 1:
        yield None
        return
    try:
        process = _start(experiment)
    except OSError:  # no process can be started: the run compiles alone
        yield None
        return
    report(compiling())
    try:
        yield process
        report(compiling())
        with suppress(OSError, subprocess.TimeoutExpired):  # the disk is full: the next run rehearses again
            if process.wait(_LONGEST_S) == 0:
                marker.touch()
    finally:
        process.kill()  # does nothing after its end
        process.wait()


def _marker(experiment: Experiment) -> Path | None:
    """A file that exists once the kernels of such experiments are in the cache; None if there is nothing to rehearse.

    User-defined parts are not run in a second process, because nobody knows what else they do.
    """
    scheme, rat, radio, folder = experiment.scheme, experiment.rat, experiment.radio, cache_folder()
    if any(map(is_part, (scheme.kind, experiment.mac.scheduler, rat.method, radio.channel))):
        return None
    uses_network = scheme.constrained and not declaration("scheme.kind", scheme.kind, "trains_centrally", False)
    code = load_part("rat.method", rat.method).code
    if not uses_network or code is None or folder is None:
        return None
    kinds = {
        "large": needs_large(code, radio.prbs) and radio.power == "optimized",
        "csi": radio.csi_delay_slots,
        "fixed": radio.power != "optimized",
        "paths": radio.fading in ("jakes", "rician"),
    }
    return folder / "-".join(["rehearsed", *(kind for kind, needed in kinds.items() if needed)])


def _start(experiment: Experiment) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],  # -P: no modules of the current directory
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (_HERE, os.environ.get("PYTHONPATH"))))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin
    with suppress(OSError), process.stdin:  # it may have ended already
        process.stdin.write(as_toml(experiment).encode())
    return process


@dataclass
class StandingCars:
    """CVs that stand at different distances from the gNB."""

    step_ns: int
    radius_m: float
    time_ns: int = 0

    def scene(self) -> Scene:
        """The current scene: the same at all times."""
        x_m, zeros = np.linspace(0.2, 1.0, _CVS) * min(100.0, 0.5 * self.radius_m), np.zeros(_CVS)
        return Scene(self.time_ns, np.arange(1, _CVS + 1), x_m, zeros, zeros, np.ones(_CVS, np.bool_))

    def advance(self) -> Scene:
        """Let one step pass."""
        self.time_ns += self.step_ns
        return self.scene()


def rehearse(experiment: Experiment) -> None:
    """Simulate one round of the experiment with standing CVs and without learning; nothing is kept of it."""
    from vefl_sim.simulation.scenario import Scenario  # here, since it imports this file
    from vefl_sim.simulation.simulation import Simulation

    run = experiment.run.model_copy(update={"rounds": 1, "duration_s": None})
    update = experiment.update.model_copy(update={"codec": "float32"})
    radio = experiment.radio.model_copy(update={"on": True})
    images, labels = np.zeros((1, 1, 1, 1), np.uint8), np.zeros(1, np.int32)
    dataset, learner = Dataset("rehearsal", images, labels, images, labels, classes=1), Learner(parameters=1000)
    scenario = Scenario(
        experiment=experiment.model_copy(update={"run": run, "update": update, "radio": radio, "change": ()}),
        streams=Streams(run.seed),
        shards={cv: np.zeros(1, np.int64) for cv in range(1, _CVS + 1)},
        dataset=dataset,
        learner=learner,
        mobility=partial(StandingCars, to_ns(experiment.mobility.step_s), experiment.radio.coverage_radius_m),
        link=Link.of(experiment.radio),
        payload_bits=33_000,  # few enough to be sent within some slots
        learn=lambda _: (dataset, learner),
    )
    simulation = Simulation(scenario)
    for _ in simulation:
        pass
    if not simulation.audit.slots:
        raise RuntimeError("no CV has sent anything, so the kernels are not compiled")


if __name__ == "__main__":
    gc.disable()  # Numba makes many objects, and this process ends soon: a twentieth of its time
    rehearse(validated(tomllib.loads(sys.stdin.read())))
