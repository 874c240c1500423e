"""What a step of an agent is worth: a weighted sum of named terms of a round, or a function of its report."""

from collections.abc import Callable, Mapping

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import BadInput
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.schemes.observation import LastRound

Reward = Mapping[str, float] | Callable[[RoundReport], float]
DEFAULT = {"accuracy": 1.0, "money": -1e-4, "lost": -0.01}


def terms(report: RoundReport, before: LastRound) -> dict[str, float]:
    """All terms of a round; `before`: how it stood at its start."""
    outcomes, after = report.outcomes, report.evaluation
    accuracy = after.accuracy if after is not None else None
    return {
        "accuracy": 0.0 if accuracy is None else accuracy - before.accuracy,  # the gain since the last evaluation
        "loss": 0.0 if after is None or before.loss is None else before.loss - after.loss,  # by how much it fell
        "money": sum(outcome.account.paid for outcome in outcomes),
        "joules": sum(outcome.account.energy_j for outcome in outcomes),
        "ordered": float(len(outcomes)),
        "delivered": float(sum(outcome.lost is None for outcome in outcomes)),
        "lost": float(sum(outcome.lost is not None for outcome in outcomes)),
        "time": to_s(report.end_ns - report.start_ns),  # in seconds
    }


TERMS = ("accuracy", "loss", "money", "joules", "ordered", "delivered", "lost", "time")


def checked_reward(reward: Reward) -> Reward:
    """A reward whose terms exist."""
    if not callable(reward) and (unknown := [name for name in reward if name not in TERMS]):
        raise BadInput(f"reward: {unknown[0]!r} is none of {', '.join(TERMS)}.")
    return reward


def reward_of(reward: Reward, report: RoundReport, values: Mapping[str, float]) -> float:
    """The reward of a round with these terms."""
    if callable(reward):
        return float(reward(report))
    return float(sum(weight * values[name] for name, weight in reward.items()))
