"""Agents in the loop: Gymnasium environments for rounds and for slots, and a scheme that a trained agent plans.

import vefl_sim.gym                                # registers the environments: pip install 'vefl_sim[rl]'
env = gymnasium.make("vefl_sim/Round-v0", experiment="quickstart.toml")

RoundEnv       a step is a round: how many CVs, which CVs, or how long each of them trains
SlotEnv        a step is a slot of the uplink: who owns each pRB, with which power
PolicyScheme   `scheme.kind = "vefl_sim.gym:PolicyScheme"`: a trained agent plans a normal run (needs no Gymnasium)
"""

from typing import TYPE_CHECKING, Any

from vefl_sim.core.errors import BadInput
from vefl_sim.gym.policy import PolicyScheme as PolicyScheme

if TYPE_CHECKING:
    from vefl_sim.gym.round_env import RoundEnv as RoundEnv
    from vefl_sim.gym.slot_env import SlotEnv as SlotEnv

_MODULES = {"RoundEnv": "round_env", "SlotEnv": "slot_env"}


def __getattr__(name: str) -> Any:
    """Import an environment on its first use, since only environments need Gymnasium."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'vefl_sim.gym' has no attribute {name!r}")
    try:
        return getattr(import_module(f"vefl_sim.gym.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        raise BadInput(f"vefl_sim.gym.{name} needs Gymnasium: pip install 'vefl_sim[rl]'.") from None


try:
    from gymnasium.envs.registration import register
except ModuleNotFoundError:  # PolicyScheme works without it
    pass
else:
    register("vefl_sim/Round-v0", entry_point="vefl_sim.gym:RoundEnv")
    register("vefl_sim/Slot-v0", entry_point="vefl_sim.gym:SlotEnv")
