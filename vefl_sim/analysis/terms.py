"""Terms that the page of a run explains where they occur, with the meanings of docs/glossary.md."""

from typing import NamedTuple


class Term(NamedTuple):
    """A row of the glossary, and the words on a page that it explains."""

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
