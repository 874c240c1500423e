"""Train an agent by the cross-entropy method, and compare it with schemes on seeds that it has not seen."""

import sys
import time

import numpy as np

import vefl_sim
from vefl_sim.gym import RoundEnv

tables = {"data": {"train_samples": 4000}, "learning": {"kind": "none"}, "scheme": {"selected": 40}}  # all in coverage
world = vefl_sim.from_tables({"run": {"name": "agent", "rounds": 4}} | tables)
env = RoundEnv(world, action="plan", levels=4, reward={"delivered": 1.0, "money": -0.02})


def worth(weights: np.ndarray, seed: int) -> float:
    """Rewards of an episode: a CV trains a share of its feasible iterations that is linear in its features."""
    (seen, _), total, is_over = env.reset(seed=seed), 0.0, False
    while not is_over:
        wanted = np.round(seen["cvs"] @ weights[:-1] + weights[-1])
        seen, reward, _, is_over, _ = env.step(np.clip(wanted, 0, 4).astype(int) * seen["mask"])
        total += reward
    return total


rng, mean, spread, started = np.random.default_rng(1), np.zeros(11), np.ones(11), time.process_time()  # ten features
for generation in range(6):
    tried = mean + spread * rng.standard_normal((12, 11))
    scores = [np.mean([worth(weights, seed) for seed in (1, 2)]) for weights in tried]
    mean, spread = (best := tried[np.argsort(scores)[-3:]]).mean(axis=0), best.std(axis=0) + 0.05
    print(f"generation {generation + 1}: mean {np.mean(scores):.1f}, best {max(scores):.1f}")
print(f"trained in {time.process_time() - started:.0f} s of CPU time", file=sys.stderr)  # differs from run to run
agent = np.array([worth(mean, seed) for seed in range(101, 111)])
print(f"ten seeds it has not seen: {agent.mean():.1f}")
for kind in ("pdpc", "random"):
    runs = [vefl_sim.simulate(world, {"scheme.kind": kind, "run.seed": seed}, out=None) for seed in range(101, 111)]
    better = agent - [run.rounds["delivered"].sum() - 0.02 * run.rounds["cost"].sum() for run in runs]
    half = 2.262 * better.std(ddof=1) / np.sqrt(10)  # 95 % t interval of ten pairs
    print(f"better than {kind} by {better.mean():.1f} ± {half:.1f}")
