"""The reasons in the tables, in words, which of them left nobody to order, and the terms that a page explains."""

from collections import Counter
from typing import NamedTuple

REASONS = {
    "time": "no time was left for training after the worst-case upload",
    "cpu": "the CPU was too slow for a single iteration in that time",
    "energy": "a single iteration would have exceeded the energy budget",
    "budget": "the share of the budget did not pay for a single iteration",
    "round_ended": "the round ended during the upload",
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


class Term(NamedTuple):
    """A row of docs/glossary.md, and the words on the page of a run that it explains."""

    name: str
    meaning: str
    words: tuple[str, ...]


TERMS = (
    Term(
        "CV, connected vehicle",
        "a vehicle that has data, a CPU and a radio, and can take part in the learning; other vehicles only take part "
        "in the traffic",
        ("CVs", "CV"),
    ),
    Term("gNB", "the 5G base station; it stands in the middle of the cell", ("gNB",)),
    Term(
        "server, edge server",
        "the computer at the gNB that leads the learning: it plans, orders, pays and aggregates",
        ("server",),
    ),
    Term(
        "FDPC, PDPC",
        "full and partial device participation case: the paper's two schemes. In FDPC all CVs that can take part get "
        "an order; in PDPC the server selects some",
        ("FDPC", "PDPC"),
    ),
    Term(
        "FedAvg, FedProx, AFA-CD",
        "schemes of others, with which the paper or we compare; AFA-CD (anarchic federated averaging, cross-device) "
        "has no rounds",
        ("FedAvg", "FedProx", "AFA-CD"),
    ),
    Term(
        "round, window",
        "the time between two aggregations; a scheme without rounds is counted in windows of the same length",
        ("rounds", "round", "windows", "window"),
    ),
    Term(
        "order",
        "the server's request to a CV: how many iterations, at which CPU frequency, until when",
        ("ordered", "orders", "order"),
    ),
    Term(
        "iteration",
        "one pass over all samples of a CV; by default one step of gradient descent",
        ("iterations", "iteration"),
    ),
    Term(
        "update",
        "the trained model of a CV, or its difference to the model that it started from",
        ("updates", "update"),
    ),
    Term(
        "delivered, lost",
        "delivered: all bits of the update arrived in time; lost: they did not, for a reason that is recorded",
        ("delivered", "lost"),
    ),
    Term(
        "eligible",
        "able to do at least one iteration in time and within its energy (for baselines also within its share of the "
        "money)",
        ("eligible",),
    ),
    Term("passed over", "eligible, but not selected", ("passed over",)),
    Term("coverage", "the circle around the gNB in which CVs can be reached", ("coverage",)),
    Term(
        "sojourn, sojourn bound",
        "the time that a CV stays in coverage; the shortest time that it can stay, by its position and the highest "
        "speed",
        ("sojourn bound",),
    ),
    Term("budget", "money of the server for one round; for a CV, energy for one round", ("budget",)),
    Term(
        "worst-case upload",
        "slots that a plan reserves for an upload, as if the CV had only its worst pRB",
        ("worst-case upload",),
    ),
    Term("overrun", "a planned worst case that was exceeded; it is allowed, and counted", ("overruns", "overrun")),
    Term(
        "pRB",
        "physical resource block: a piece of the band; in a slot it belongs to one CV, and a CV may have several",
        ("pRBs", "pRB"),
    ),
    Term("slot, TTI", "transmission time interval: the unit of radio time, 0.5 ms by default", ("slots", "slot")),
    Term("grant", "permission to send at a given rate in a slot", ("grants", "grant")),
    Term("SNR", "signal-to-noise ratio", ("SNR",)),
    Term(
        "Dirichlet split",
        "how data are spread over CVs: the smaller α, the fewer classes a CV has",
        ("Dirichlet α", "Dirichlet"),
    ),
    Term("content digest", "a number computed from the tables: equal digests mean equal results", ("content digest",)),
    Term("T, T_v", "time left for training: the smaller of t_th and t_soj, less the worst-case upload", ("T",)),
    Term("t_cmp", "time that training takes, l·cD/η", ("t_cmp",)),
    Term("l, l_v", "iterations of an order", ("l",)),
    Term("η", "CPU frequency of an order", ("η",)),
    Term("Ξ", "budget of the server per round", ("Ξ",)),
)
