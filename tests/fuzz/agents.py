"""Random agents in the Gymnasium environments, in experiments with keys drawn from their whole ranges.

No exception but refused input, observations inside of their spaces, finite rewards, and an audit without violations.
"""

import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

from tests.fuzz.command import Broken
from tests.fuzz.experiments import Extreme
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.toml import load
from vefl_sim.gym import RoundEnv, SlotEnv

_MOST_STEPS = 300


class Agents(Extreme):
    """An episode with each kind of action, as far as the environments accept the experiment."""

    name = "agents"
    goal = 200

    def make(self, random: Random, folder: Path) -> None:
        """Write an experiment, without keys that only make traffic slow, and the seed of the episodes."""
        super().make(random, folder)
        tables = tomllib.loads((folder / "extreme.toml").read_text())
        tables.get("mobility", {}).pop("step_s", None)
        tables["roads"]["blocks"] = 3
        (folder / "extreme.toml").write_text(tomli_w.dumps(tables))
        (folder / "seed").write_text(str(random.randrange(2**31)))

    def check(self, folder: Path) -> int:
        """Play; returns the number of episodes, which is 0 if the experiment is refused."""
        try:
            experiment, seed = load(folder / "extreme.toml"), int((folder / "seed").read_text())
        except BadInput:
            return 0
        rounds = [lambda kind=kind: RoundEnv(experiment, action=kind) for kind in ("count", "select", "plan")]
        slots = [lambda kind=kind: SlotEnv(experiment, action=kind) for kind in ("owners", "levels")]
        return sum(_episode(made, seed) for made in (*rounds, *slots))


def _episode(made: Callable[[], Any], seed: int) -> bool:
    """Whether the environment accepts the experiment; an episode of a random agent keeps all laws."""
    try:
        env = made()
        env.reset(seed=seed)
    except BadInput:
        return False
    env.action_space.seed(seed)
    for _ in range(_MOST_STEPS):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        if not env.observation_space.contains(seen) or not math.isfinite(reward):
            raise Broken(f"{type(env).__name__} shows {seen} with the reward {reward}")
        if terminated or truncated:
            break
    if breaches := env.run.audit.breaches:
        raise Broken(f"{type(env).__name__}: the audit finds {breaches}")
    return True


ATTACK = Agents()
