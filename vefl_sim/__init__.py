"""Simulate vehicular edge federated learning: a real learner, a per-TTI 5G-NR uplink, and traffic on one clock.

import vefl_sim
run = vefl_sim.simulate("experiments/quickstart.toml")
print(run.rounds[["round", "delivered", "accuracy"]])

These are all public names; help(vefl_sim.simulate) explains one of them, docs/api.md all.

experiments      load, from_tables, with_settings, Experiment
one run          simulate, resume, branch, Run, Simulation, why, RunWatcher
many runs        load_sweep, run_sweep, compare
figures          draw
schemes          Scheme, AsynchronousScheme, Observation, Plan, Received, Aggregated, LocalUpdate, Local, Codec
other parts      Dataset, Channel, Link, Scheduler, Backlog, RatPolicy, RatProblem, RatAllocation, Mobility, Scene
models           trees
errors           VeflError, BadInput, RunFailed, VeflWarning, FinishedRun
"""

from vefl_sim.experiment.foreign_code import leave_run_directory

leave_run_directory()  # before the first import of a module that the current directory could replace

TYPE_CHECKING = False  # without importing `typing`, see above
if TYPE_CHECKING:
    from typing import Any

    from vefl_sim.analysis.draw import draw as draw
    from vefl_sim.analysis.why import why as why
    from vefl_sim.core.errors import BadInput as BadInput
    from vefl_sim.core.errors import FinishedRun as FinishedRun
    from vefl_sim.core.errors import RunFailed as RunFailed
    from vefl_sim.core.errors import VeflError as VeflError
    from vefl_sim.core.errors import VeflWarning as VeflWarning
    from vefl_sim.experiment.experiment import Experiment as Experiment
    from vefl_sim.experiment.toml import from_tables as from_tables
    from vefl_sim.experiment.toml import load as load
    from vefl_sim.experiment.toml import with_settings as with_settings
    from vefl_sim.learning import trees as trees
    from vefl_sim.learning.codecs import Codec as Codec
    from vefl_sim.learning.datasets.dataset import Dataset as Dataset
    from vefl_sim.learning.learner import Local as Local
    from vefl_sim.mobility.scene import Mobility as Mobility
    from vefl_sim.mobility.scene import Scene as Scene
    from vefl_sim.optimize.rat.edf import Backlog as Backlog
    from vefl_sim.optimize.rat.edf import Scheduler as Scheduler
    from vefl_sim.optimize.rat.problem import RatAllocation as RatAllocation
    from vefl_sim.optimize.rat.problem import RatPolicy as RatPolicy
    from vefl_sim.optimize.rat.problem import RatProblem as RatProblem
    from vefl_sim.radio.channel import Channel as Channel
    from vefl_sim.radio.link import Link as Link
    from vefl_sim.records.run_directory import Run as Run
    from vefl_sim.schemes.observation import Observation as Observation
    from vefl_sim.schemes.scheme import Aggregated as Aggregated
    from vefl_sim.schemes.scheme import AsynchronousScheme as AsynchronousScheme
    from vefl_sim.schemes.scheme import LocalUpdate as LocalUpdate
    from vefl_sim.schemes.scheme import Plan as Plan
    from vefl_sim.schemes.scheme import Received as Received
    from vefl_sim.schemes.scheme import Scheme as Scheme
    from vefl_sim.simulation.run import resume as resume
    from vefl_sim.simulation.run import simulate as simulate
    from vefl_sim.simulation.simulation import Simulation as Simulation
    from vefl_sim.simulation.watcher import RunWatcher as RunWatcher
    from vefl_sim.sweep.branch import branch as branch
    from vefl_sim.sweep.comparison import compare as compare
    from vefl_sim.sweep.points import load_sweep as load_sweep
    from vefl_sim.sweep.runner import run_sweep as run_sweep


def _modules() -> "dict[str, str]":
    """Public name -> the module that it is imported from above, read from this file as type checkers read it."""
    import ast

    with open(__file__, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {name.asname: str(node.module) for node in imports for name in node.names if name.asname}


_MODULES = _modules()


def __getattr__(name: str) -> "Any":
    """Import a public name on its first use, so that `--help` does not have to wait for JAX and pandas."""
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("vefl_sim")
    if name not in _MODULES:
        raise AttributeError(f"module 'vefl_sim' has no attribute {name!r}")
    if _MODULES[name] == "vefl_sim.learning":
        return import_module(f"vefl_sim.learning.{name}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The public names; there is no __all__, with which help(vefl_sim) would print all of their documentation."""
    return sorted(_MODULES)
