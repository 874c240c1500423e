"""A trained agent as a scheme: its policy plans the rounds of a normal run."""

from typing import Any

import numpy as np

from vefl_sim.core.errors import BadInput, ExperimentError, RunFailed
from vefl_sim.core.state import State, optional_state
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import load_part
from vefl_sim.gym.actions import Actions
from vefl_sim.gym.features import View
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.pdpc import Pdpc
from vefl_sim.schemes.scheme import KEYS_WITHOUT_ROUNDS, Plan


class PolicyScheme(Pdpc):
    """Plans what the policy `agent.policy` wants, and aggregates like PDPC.

    A policy is called with what the environment shows, a dict of `cvs`, `mask` and `server`, and returns an action of
    the kind `agent.action`. A class is made without arguments; a policy that remembers something has `state()` and
    `restore(state)`, so that a run can be resumed.
    """

    label = "agent"
    uses_table = "agent"
    unused_keys = (*Pdpc.unused_keys, *KEYS_WITHOUT_ROUNDS, "scheme.constrained")

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        agent = experiment.agent
        if agent.policy is None:
            raise ExperimentError('agent.policy names no policy: set agent.policy = "module:name".')
        policy = load_part("agent.policy", agent.policy)
        self._name, self._policy = agent.policy, policy() if isinstance(policy, type) else policy
        if not callable(self._policy):
            raise ExperimentError(f'agent.policy = "{agent.policy}" cannot be called: name a function or a class.')
        self._view = View.of(experiment, agent.max_cvs, agent.features)
        self._actions = Actions.of(experiment, agent.action, agent.max_cvs, agent.levels)
        self.memory: dict[str, Any] = {"rows": np.full(agent.max_cvs, -1)}  # CV of each row, -1: none

    def plan(self, observation: Observation) -> Plan:
        """Ask the policy, and cut what is not lawful."""
        placed = self._view.place(self.memory["rows"], observation)
        self.memory["rows"] = placed
        action = self._policy(self._view.seen(observation, placed))
        try:
            return self._actions.plan(observation, placed, action)[0]
        except BadInput as error:
            raise RunFailed(f'agent.policy = "{self._name}": {error}') from error

    def state(self) -> State:
        """What the policy remembers, if it says so; the rows of CVs are in `memory`."""
        return {"policy": optional_state(self._policy)}

    def restore(self, state: State) -> None:
        """Restore what the policy remembers from a checkpoint."""
        if state["policy"] is not None:
            self._policy.restore(state["policy"])
