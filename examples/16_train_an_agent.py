"""Train an agent by the cross-entropy method, and compare it with schemes on seeds that it has not seen."""

import numpy as np

import vefl_sim
from vefl_sim.gym import RoundEnv

tables = {
    "run": {"name": "agent", "rounds": 4},
    "data": {"train_samples": 4000},
    "learning": {"kind": "none"},
    "scheme": {"selected": 40},  # more than are ever in coverage
}
reward = {"delivered": 1.0, "money": -0.02}  # an update is worth 50 units of money
env = RoundEnv(vefl_sim.from_tables(tables), action="plan", levels=4, reward=reward)
features, levels = env.observation_space["cvs"].shape[1], 4


def act(weights: np.ndarray, seen: dict[str, np.ndarray]) -> np.ndarray:
    """The share of its feasible iterations that each CV trains: linear in its features, from 0 to `levels`."""
    wanted = seen["cvs"] @ weights[:-1] + weights[-1]
    return np.clip(np.round(wanted), 0, levels).astype(int) * seen["mask"]


def worth(weights: np.ndarray, seed: int) -> float:
    """The sum of the rewards of one episode."""
    seen, _ = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        seen, step, _, is_over, _ = env.step(act(weights, seen))
        total += step
    return total


rng = np.random.default_rng(1)
mean, spread = np.zeros(features + 1), np.ones(features + 1)
for generation in range(6):
    tried = mean + spread * rng.standard_normal((12, features + 1))
    scores = [np.mean([worth(weights, seed) for seed in (1, 2)]) for weights in tried]
    best = tried[np.argsort(scores)[-3:]]
    mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
    print(f"generation {generation + 1}: mean {np.mean(scores):6.1f}, best {max(scores):6.1f}")


def worth_of_scheme(kind: str, seed: int) -> float:
    """The same sum for a scheme of the program; FDPC selects nobody, it orders all."""
    scheme = {"kind": kind} if kind == "fdpc" else {"kind": kind, "selected": 40}
    run = vefl_sim.Simulation(vefl_sim.from_tables(tables | {"scheme": scheme}), {"run.seed": seed})
    rounds = [*run] and run.rounds
    return float((reward["delivered"] * rounds["delivered"] + reward["money"] * rounds["cost"]).sum())


held_out = range(101, 111)
agent = np.array([worth(mean, seed) for seed in held_out])
print(f"ten seeds it has not seen: the agent {agent.mean():.1f}")
for kind in ("pdpc", "fdpc", "random"):
    other = np.array([worth_of_scheme(kind, seed) for seed in held_out])
    better = agent - other
    half = 2.262 * better.std(ddof=1) / np.sqrt(len(better))  # 95 % t interval of ten pairs
    print(f"  {kind:6} {other.mean():6.1f}; the agent is better by {better.mean():.1f} ± {half:.1f}")
