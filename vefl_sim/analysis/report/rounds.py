"""The rounds of a run as columns: the curves, and how many CVs took part."""

import math
from collections import Counter, defaultdict
from typing import Any

from vefl_sim.analysis.grants import GrantCounts
from vefl_sim.analysis.report.source import Source

CURVES = ("metric", "loss", "share", "cost", "energy_j", "bits_per_joule", "grants_lost_share")
"""The curves of a page, of which the first two are known without CVs."""
_COLUMNS = {  # with the digits that a curve can show
    "loss": 5,
    "p_suc": 4,
    "cost": 2,
    "energy_j": 3,
    "bits_per_joule": 0,
}
_COUNTS = ("in_coverage", "eligible", "ordered", "delivered", "steps", "overruns")


def rounds_of(source: Source) -> dict[str, list[Any]]:
    """The numbers of all rounds, their times in ms, and one list per column."""
    rows = source.rounds
    columns: dict[str, list[Any]] = {
        name: [_rounded(row[name], digits) for row in rows] for name, digits in _COLUMNS.items()
    }
    columns["metric"] = [_metric_of(source, row) for row in rows]
    columns |= {name: [row[name] for row in rows] for name in ("round", *_COUNTS, "plan_status")}
    columns |= _grants(source)
    return columns | {name: [row[f"{name}_ns"] / 1e6 for row in rows] for name in ("start", "end")}


def _grants(source: Source) -> dict[str, list[Any]]:
    """Used and lost grants of the orders of each round, and the share of lost ones, which is None without grants."""
    counts = [source.grants_by_round.get(row["round"], GrantCounts()) for row in source.rounds]
    return {
        "grants": [count.used for count in counts],
        "grants_lost": [count.lost for count in counts],
        "grants_lost_share": [_rounded(count.lost_share, 4) if count.used else None for count in counts],
    }


def decisions_of(source: Source) -> dict[str, Any]:
    """By round, how many decisions ended how: `states` and, of lost updates and ineligible CVs, `reasons`.

    Each is a list of one dictionary per round; the reasons are keyed "lost/round_ended", "ineligible/time", ….
    """
    states, reasons = defaultdict[int, Counter[str]](Counter), defaultdict[int, Counter[str]](Counter)
    for row in source.vehicles:
        states[row["round"]][str(row["state"])] += 1
        if row["state"] in ("lost", "ineligible"):
            reasons[row["round"]][f"{row['state']}/{row['reason']}"] += 1
    numbers = [row["round"] for row in source.rounds]
    return {
        "states": [dict(states[number]) for number in numbers],
        "reasons": [dict(reasons[number]) for number in numbers],
    }


def _metric_of(source: Source, row: dict[str, Any]) -> float | None:
    """The metric of a round; numbers that are no shares can be of any size, and are not rounded."""
    value = source.metric.value(row["accuracy"], row["loss"])
    if value is None or source.metric.is_share:
        return _rounded(value, 4)
    return value if math.isfinite(value) else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
