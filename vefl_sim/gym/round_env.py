"""Gymnasium environment in which a step is a round."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings
from vefl_sim.gym.actions import Actions
from vefl_sim.gym.episodes import Episodes, require_rounds, require_same
from vefl_sim.gym.features import Seen, View
from vefl_sim.gym.rewards import DEFAULT, Reward, checked_reward, reward_of, terms
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.schemes.observation import Observation
from vefl_sim.simulation.simulation import Simulation


class RoundEnv(gymnasium.Env[Seen, Any]):
    """`vefl_sim/Round-v0`: in each round the agent decides who trains; the world is that of an experiment.

    experiment   a TOML file or an experiment, with `settings` of keys; its scheme only aggregates
    action       "count", "select" or "plan" (vefl_sim.gym.actions)
    max_cvs      rows of the table of CVs; a CV keeps its row while it is shown
    levels       of "plan": shares of the feasible iterations
    features     names of the features of a CV, all if not given (vefl_sim.gym.features)
    reward       weights of terms by name, or a function of the round's report (vefl_sim.gym.rewards)

    The end of the run truncates the episode. `info["report"]` has all terms of a reward, `report` is the whole report
    of the last round, and `run` the `vefl_sim.Simulation` of the episode, with its tables.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)
    run: Simulation
    report: RoundReport

    def __init__(
        self,
        experiment: Experiment | str | Path,
        settings: Settings = (),
        *,
        action: str = "count",
        max_cvs: int = 64,
        levels: int = 4,
        features: Iterable[str] | None = None,
        reward: Reward = DEFAULT,
    ) -> None:
        self._episodes = Episodes(experiment, settings, require_rounds)
        own = self._episodes.experiment
        self._next: Observation | None = None  # what the next action plans for; None: there is no episode
        self._decides = action, max_cvs, levels
        self._view, self._reward = View.of(own, max_cvs, features), checked_reward(reward)
        self._actions = Actions.of(own, *self._decides)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                "cvs": spaces.Box(-1.0, 1.0, (max_cvs, len(self._view.cvs)), np.float32),
                "mask": spaces.MultiBinary(max_cvs),
                "server": spaces.Box(-1.0, 1.0, (len(self._view.server),), np.float32),
            }
        )
        sizes = self._actions.sizes
        by_name: dict[str, Callable[[], spaces.Space[Any]]] = {
            "count": lambda: spaces.Discrete(sizes[0]),
            "select": lambda: spaces.MultiBinary(max_cvs),
            "plan": lambda: spaces.MultiDiscrete(sizes),
        }
        self.action_space = by_name[action]()

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Start a run with this seed, or with the next one of `np_random`; options={"set": {…}} changes keys."""
        super().reset(seed=seed)
        self._next = None
        scenario = self._episodes.scenario(seed, self.np_random, options)
        require_same(self._episodes.experiment, scenario.experiment, "scheme.selected")
        self.run, self._actions = Simulation(scenario), Actions.of(scenario.experiment, *self._decides)
        self._placed = np.full(self._actions.rows, -1)
        self._observe(self.run.next_plan())
        return self._seen(), self._info({})

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Plan this round and simulate up to the next one."""
        if self._next is None:
            raise BadInput("this episode is over: call reset().")
        observation = self._next
        plan, cuts = self._actions.plan(observation, self._placed, action)
        self._observe(self.run.next_plan(plan))
        [self.report] = self.run.new_reports()
        values = terms(self.report, observation.snapshot.last)
        reward = reward_of(self._reward, self.report, values)
        return self._seen(), reward, False, self._next is None, self._info(cuts) | {"report": values}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions change something, in the form that sb3-contrib expects."""
        return self._actions.mask(self._last, self._placed)

    def _observe(self, observation: Observation | None) -> None:
        """Take the next observation; after the last round the agent sees the one before, without CVs."""
        self._next = observation
        if observation is not None:
            self._last, self._placed = observation, self._view.place(self._placed, observation)
        else:
            self._placed = np.full(self._actions.rows, -1)

    def _seen(self) -> Seen:
        return self._view.seen(self._last, self._placed)

    def _info(self, cuts: dict[str, int]) -> dict[str, Any]:
        """`cuts`: how often the action was cut, by reason; `hidden`: CVs in coverage that are not shown."""
        hidden = 0 if self._next is None else len(self._next.cv) - int(np.count_nonzero(self._placed >= 0))
        return {"cuts": cuts, "hidden": hidden}
