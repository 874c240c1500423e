"""The reasons in the tables, in words, and which of them left nobody to order."""

from collections import Counter

REASONS = {
    "time": "no time was left for training after the worst-case upload",
    "cpu": "the CPU was too slow for a single iteration in that time",
    "energy": "a single iteration would have exceeded the energy budget",
    "budget": "the share of the budget did not pay for a single iteration",
    "round_ended": "the round ended",
    "coverage_left": "the CV left coverage",
    "trip_ended": "the CV ended its trip",
    "training_unfinished": "the training was not finished in time",
    "expired": "the order expired",
    "nobody_in_coverage": "nobody was in coverage",
    "nobody_asks": "all CVs were busy with earlier orders",
    "nobody_eligible": "nobody was eligible",
    "budget_buys_nobody": "the budget did not pay for a single CV",
    "nobody_found": "the search found nobody",
}
"""The reasons in the tables, in words."""

_KEYS = {
    "time": "vefl.round_s",
    "cpu": "sla.cpu_max_hz",
    "energy": "sla.energy_budget_j",
    "budget": "vefl.budget",
    "budget_buys_nobody": "vefl.budget",
}
"""The key that sets the limit of a constraint."""


def in_words(reason: str | None) -> str:
    """A reason from a table, in words; itself if a user-defined part gave it."""
    return "no reason was recorded" if reason is None else REASONS.get(reason, str(reason)[:200])


def why_nobody(statuses: Counter[str], ineligible: Counter[str]) -> str:
    """Why plans are empty, as a clause: the most frequent status and, if nobody was eligible, what binds most.

    `statuses` counts the status of the empty plans, `ineligible` the constraints that made CVs ineligible.
    """
    (status, _), *_ = statuses.most_common(1)
    words = f"{in_words(status)}{_key(status)}"
    if status != "nobody_eligible" or not ineligible:
        return words
    (limit, count), *_ = ineligible.most_common(1)
    share = f"{count:,} of {ineligible.total():,} times" if len(ineligible) > 1 else "every time"
    return f"{words}, {share} because {in_words(limit)}{_key(limit)}"


def _key(reason: str) -> str:
    return f" ({_KEYS[reason]})" if reason in _KEYS else ""
