"""Simulate vehicular edge federated learning: a real learner, a per-TTI 5G-NR uplink, and traffic on one clock.

import vefl_sim
run = vefl_sim.simulate(vefl_sim.load("experiments/quickstart.toml"))
print(run.rounds[["round", "delivered", "accuracy"]])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vefl_sim.comparison import compare
    from vefl_sim.errors import BadInput, RunFailed, VeflError
    from vefl_sim.experiment import Experiment
    from vefl_sim.loading import from_tables, load, with_settings
    from vefl_sim.mobility.scene import Mobility, Scene
    from vefl_sim.optimize.edf import Backlog, Scheduler
    from vefl_sim.optimize.rat import RatAllocation, RatPolicy, RatProblem
    from vefl_sim.results import Run
    from vefl_sim.schemes.observation import Observation
    from vefl_sim.schemes.scheme import Plan, Scheme
    from vefl_sim.simulation import resume, simulate
    from vefl_sim.story import why
    from vefl_sim.sweep.points import load_sweep
    from vefl_sim.sweep.sweeping import run_sweep
    from vefl_sim.variants import load_variants

_HOMES = {
    "Backlog": "optimize.edf",
    "BadInput": "errors",
    "Experiment": "experiment",
    "Mobility": "mobility.scene",
    "Observation": "schemes.observation",
    "Plan": "schemes.scheme",
    "RatAllocation": "optimize.rat",
    "RatPolicy": "optimize.rat",
    "RatProblem": "optimize.rat",
    "Run": "results",
    "RunFailed": "errors",
    "Scene": "mobility.scene",
    "Scheduler": "optimize.edf",
    "Scheme": "schemes.scheme",
    "VeflError": "errors",
    "compare": "comparison",
    "from_tables": "loading",
    "load": "loading",
    "load_sweep": "sweep.points",
    "load_variants": "variants",
    "resume": "simulation",
    "run_sweep": "sweep.sweeping",
    "simulate": "simulation",
    "why": "story",
    "with_settings": "loading",
}

__all__ = [
    "Backlog",
    "BadInput",
    "Experiment",
    "Mobility",
    "Observation",
    "Plan",
    "RatAllocation",
    "RatPolicy",
    "RatProblem",
    "Run",
    "RunFailed",
    "Scene",
    "Scheduler",
    "Scheme",
    "VeflError",
    "compare",
    "from_tables",
    "load",
    "load_sweep",
    "load_variants",
    "resume",
    "run_sweep",
    "simulate",
    "why",
    "with_settings",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `--help` must not wait for jax and pandas."""
    if name == "__version__":
        return import_module("importlib.metadata").version("vefl_sim")
    if name not in _HOMES:
        raise AttributeError(f"module 'vefl_sim' has no attribute {name!r}")
    return getattr(import_module(f"vefl_sim.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
