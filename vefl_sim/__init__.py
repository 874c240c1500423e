"""Simulate vehicular edge federated learning: a real learner, a per-TTI 5G-NR uplink, and traffic on one clock.

import vefl_sim
run = vefl_sim.simulate(vefl_sim.load("experiments/quickstart.toml"))
print(run.rounds[["round", "delivered", "accuracy"]])
"""

from vefl_sim.experiment.foreign_code import leave_run_directory

leave_run_directory()  # before the first import of a module that the current directory could replace

TYPE_CHECKING = False  # without importing `typing`, see above
if TYPE_CHECKING:
    from typing import Any

    from vefl_sim.analysis.why import why
    from vefl_sim.core.errors import BadInput, RunFailed, VeflError
    from vefl_sim.experiment.experiment import Experiment
    from vefl_sim.experiment.toml import from_tables, load, with_settings
    from vefl_sim.learning import trees
    from vefl_sim.learning.codecs.codec import Codec
    from vefl_sim.learning.datasets.dataset import Dataset
    from vefl_sim.learning.learner import Local
    from vefl_sim.mobility.scene import Mobility, Scene
    from vefl_sim.optimize.rat.edf import Backlog, Scheduler
    from vefl_sim.optimize.rat.problem import RatAllocation, RatPolicy, RatProblem
    from vefl_sim.radio.channel import Channel
    from vefl_sim.radio.link import Link
    from vefl_sim.records.run_directory import Run
    from vefl_sim.schemes.observation import Observation
    from vefl_sim.schemes.scheme import Aggregated, AsynchronousScheme, LocalUpdate, Plan, Received, Scheme
    from vefl_sim.simulation.run import resume, simulate
    from vefl_sim.simulation.watcher import RunWatcher
    from vefl_sim.sweep.comparison import compare
    from vefl_sim.sweep.points import load_sweep
    from vefl_sim.sweep.run_sweep import run_sweep

_MODULES = {
    "Aggregated": "schemes.scheme",
    "AsynchronousScheme": "schemes.scheme",
    "Backlog": "optimize.rat.edf",
    "BadInput": "core.errors",
    "Channel": "radio.channel",
    "Codec": "learning.codecs.codec",
    "Dataset": "learning.datasets.dataset",
    "Experiment": "experiment.experiment",
    "Link": "radio.link",
    "Local": "learning.learner",
    "LocalUpdate": "schemes.scheme",
    "Mobility": "mobility.scene",
    "Observation": "schemes.observation",
    "Plan": "schemes.scheme",
    "RatAllocation": "optimize.rat.problem",
    "RatPolicy": "optimize.rat.problem",
    "RatProblem": "optimize.rat.problem",
    "Received": "schemes.scheme",
    "Run": "records.run_directory",
    "RunFailed": "core.errors",
    "RunWatcher": "simulation.watcher",
    "Scene": "mobility.scene",
    "Scheduler": "optimize.rat.edf",
    "Scheme": "schemes.scheme",
    "VeflError": "core.errors",
    "compare": "sweep.comparison",
    "from_tables": "experiment.toml",
    "load": "experiment.toml",
    "load_sweep": "sweep.points",
    "resume": "simulation.run",
    "run_sweep": "sweep.run_sweep",
    "simulate": "simulation.run",
    "trees": "learning.trees",
    "why": "analysis.why",
    "with_settings": "experiment.toml",
}

__all__ = [
    "Aggregated",
    "AsynchronousScheme",
    "Backlog",
    "BadInput",
    "Channel",
    "Codec",
    "Dataset",
    "Experiment",
    "Link",
    "Local",
    "LocalUpdate",
    "Mobility",
    "Observation",
    "Plan",
    "RatAllocation",
    "RatPolicy",
    "RatProblem",
    "Received",
    "Run",
    "RunFailed",
    "RunWatcher",
    "Scene",
    "Scheduler",
    "Scheme",
    "VeflError",
    "compare",
    "from_tables",
    "load",
    "load_sweep",
    "resume",
    "run_sweep",
    "simulate",
    "trees",
    "why",
    "with_settings",
]


def __getattr__(name: str) -> "Any":
    """Import a public name on its first use, so that `--help` does not have to wait for JAX and pandas."""
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("vefl_sim")
    if name not in _MODULES:
        raise AttributeError(f"module 'vefl_sim' has no attribute {name!r}")
    module = import_module(f"vefl_sim.{_MODULES[name]}")
    return module if name == "trees" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
