"""What the scripts of a page read: rounds, decisions, orders, visits, uploads, and who took part."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.events import Order, orders_in, outcome_of
from vefl_sim.analysis.report.source import Source
from vefl_sim.analysis.summary import GrantCounts
from vefl_sim.core.errors import RunNotFound
from vefl_sim.protocol.trace import DEPARTURES
from vefl_sim.records.models import ConfusionMatrix, read_confusion

Columns = dict[str, list[Any]]
CURVES = ("metric", "loss", "share", "cost", "energy_j", "bits_per_joule", "grants_lost_share")
"""The curves of a page, of which the first two are known without CVs."""
STATES = ("delivered", "lost", "passed_over", "ineligible")
_DIGITS = {"loss": 5, "p_suc": 4, "cost": 2, "energy_j": 3, "bits_per_joule": 0}  # that a curve can show
_COUNTS = ("in_coverage", "eligible", "ordered", "delivered", "steps", "overruns")
_REFUSALS = {"cv_ineligible": "ineligible", "cv_passed_over": "passed_over"}
_TIMES = {"trained": "training_finished", "offered": "upload_offered", "started": "upload_started"}
_SHARE_BINS = 8
_BIN_MS = 50
_MAX_BINS = 200_000  # a page with more would be slow; bins are then merged
_BIN_NAMES = ["bin", "cv", "slots", "prbs", "mbps"]


def rounds_of(source: Source) -> Columns:
    """The numbers of all rounds, their times in ms, and one list per column."""
    rows = source.rounds
    grants = [source.grants_by_round.get(row["round"], GrantCounts()) for row in rows]
    columns: Columns = {name: [_rounded(row[name], digits) for row in rows] for name, digits in _DIGITS.items()}
    metric = [source.metric.value(row["accuracy"], row["loss"]) for row in rows]
    columns["metric"] = [None if value is None else float(f"{value:.5g}") for value in metric]
    columns |= {name: [row[name] for row in rows] for name in ("round", *_COUNTS, "plan_status")}
    columns |= {"grants": [count.used for count in grants], "grants_lost": [count.lost for count in grants]}
    columns["grants_lost_share"] = [_rounded(count.lost_share, 4) if count.used else None for count in grants]
    return columns | {name: [row[f"{name}_ns"] / 1e6 for row in rows] for name in ("start", "end")}


def changes_of(source: Source) -> list[dict[str, Any]]:
    """The time in ms of each change of keys that the run has reached, and its text."""
    starts_ms = {row["round"]: row["start_ns"] / 1e6 for row in source.rounds}
    changes = [(starts_ms.get(one.from_round or 0, 1e3 * (one.at_s or 0.0)), one) for one in source.experiment.change]
    return [{"at": at, "text": str(one)} for at, one in changes if at and at <= source.end_s * 1e3]


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
    return {"states": [states[number] for number in numbers], "reasons": [reasons[number] for number in numbers]}


def orders_of(source: Source) -> list[dict[str, Any]]:
    """One row per order: times in ms, and what happened to its update."""
    return [_row_of(order) for order in orders_in(source.explanations.by_id.values())]


def _row_of(order: Order) -> dict[str, Any]:
    ordered, end = order["training_ordered"], outcome_of(order) or defaultdict(lambda: None)
    start, sojourn = ordered["time_ns"], ordered["sojourn_ns"]
    state = {"upload_received": "delivered", "update_lost": "lost"}.get(str(end["kind"]), "in_progress")
    return {
        "round": ordered["round"],
        "cv": ordered["cv"],
        "at": _ms(start),
        **{name: _ms(order[kind]["time_ns"]) if kind in order else None for name, kind in _TIMES.items()},
        "ended": _ms(end["time_ns"]),
        "state": state,
        "reason": end["reason"],
        "earliest": _ms(ordered["earliest_ns"]),
        "deadline": _ms(ordered["deadline_ns"]),
        "sojourn": None if sojourn is None else _ms(start + sojourn),
        "distance": _rounded(ordered["distance_m"], 1),
        "iterations": ordered["iterations"],
        "slots": end["slots"],
        "bits": _rounded(end["bits"], 0),
        "left": _rounded(end["bits_left"], 0),
        "snr": _rounded(end["mean_snr_db"], 1),
        "joules": _rounded(end["energy_j"], 3),
        "paid": _rounded(end["cost"], 2),
        "weight": _rounded(order.get("update_aggregated", {}).get("weight"), 4),
    }


def refusals_of(source: Source) -> Columns:
    """One row per CV that asked for an order, or was in coverage when a round was planned, and got none."""
    return columns(
        {
            "round": event["round"],
            "cv": event["cv"],
            "at": _ms(event["time_ns"]),
            "state": _REFUSALS[event["kind"]],
            "reason": event["reason"],
            "distance": _rounded(event["distance_m"], 1),
        }
        for event in source.explanations.by_id.values()
        if event["kind"] in _REFUSALS
    )


def visits_of(source: Source) -> list[list[int]]:
    """For each CV its number, then the times in ms at which it entered and left coverage in turn."""
    visits = []
    for cv, events in source.explanations.by_cv.items():
        crossings = [event for event in events if event["kind"] in ("coverage_entered", *DEPARTURES)]
        visits.append([cv, *(_ms(event["time_ns"]) for event in crossings)])
    return visits


def columns(rows: Iterable[dict[str, Any]]) -> Columns:
    """Rows in the order of their times, as columns."""
    ordered = sorted(rows, key=lambda row: (row["at"], row["cv"]))
    return {name: [row[name] for row in ordered] for name in (ordered[0] if ordered else ())}


def uploads_of(source: Source) -> dict[str, Any]:
    """What is recorded of uploads between their first and last slot, in bins of 50 ms.

    For each CV a list of bin number, pRBs and Mbit/s in turn, means over the slots that served it. `kind` is the table
    from which they come, "off" if none is recorded; then only means over whole uploads are known, from the events.
    """
    slot_ms = source.experiment.slots.slot_ns / 1e6
    if (table := source.table("uploads")) is not None:
        rows = _numbers(table, ["time_ns", "cv", "slots", "prbs", "bits"])
        rows = rows[rows["slots"] > 0]
        kind, mbps = "uploads", rows["bits"] / (rows["slots"] * slot_ms * 1e3)
        bins = rows.assign(bin=(rows["time_ns"] // (_BIN_MS * 1e6)).astype(int), mbps=mbps)[_BIN_NAMES]
    elif (table := source.table("slots")) is not None:
        rows = _numbers(table, ["slot", "cv", "prbs", "rate_bps"])
        kind, numbers = str(source.experiment.trace.slots), (rows["slot"] * slot_ms // _BIN_MS).astype(int)
        bins = _merged(rows.assign(bin=numbers, slots=1.0, mbps=rows["rate_bps"] / 1e6)[_BIN_NAMES])
    else:
        return {"kind": "off", "bin_ms": _BIN_MS, "cvs": {}}
    width_ms = _BIN_MS
    while len(bins) > _MAX_BINS:
        width_ms *= 2
        bins = _merged(bins.assign(bin=bins["bin"] // 2))
    by_cv = {str(cv): _flat(bins[bins["cv"] == cv]) for cv in bins["cv"].unique().astype(int).tolist()}
    return {"kind": kind, "bin_ms": width_ms, "cvs": by_cv}


def _merged(bins: pd.DataFrame) -> pd.DataFrame:
    """Rows of the same bin and CV as one: means, weighted by their slots."""
    weighted = bins.assign(prbs=bins["prbs"] * bins["slots"], mbps=bins["mbps"] * bins["slots"])
    sums = weighted.groupby(["bin", "cv"], as_index=False)[["slots", "prbs", "mbps"]].sum()
    return sums.assign(prbs=sums["prbs"] / sums["slots"], mbps=sums["mbps"] / sums["slots"])[_BIN_NAMES]


def _numbers(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """These columns as floats, without rows in which one is missing or not a number."""
    values = table[names].to_numpy(np.float64, na_value=np.nan)
    return pd.DataFrame(values[np.isfinite(values).all(axis=1)], columns=names)


def _flat(rows: pd.DataFrame) -> list[float]:
    """The bins of a CV in a row, the differences of their numbers instead of the numbers."""
    rows = rows.sort_values("bin")
    columns = (np.diff(rows["bin"], prepend=0).tolist(), rows["prbs"].round(2).tolist(), rows["mbps"].round(3).tolist())
    return [value for values in zip(*columns, strict=True) for value in values]


def shares_of(source: Source) -> dict[str, Any]:
    """How decisions ended, by the samples of the CV and by its distance; each a list of bins."""
    rows, radius_m = source.vehicles, source.experiment.radio.coverage_radius_m
    samples, distance_m = ([row[name] or 0 for row in rows] for name in ("samples", "distance_m"))
    edges = np.unique(np.quantile(samples, np.linspace(0, 1, _SHARE_BINS + 1)).round()) if rows else np.zeros(1)
    edges = edges if len(edges) > 1 else np.append(edges, edges + 1)
    states = [str(row["state"]) for row in rows]
    rings_m = np.linspace(0, radius_m, _SHARE_BINS + 1)
    return {"samples": _bins(states, samples, edges), "distance": _bins(states, distance_m, rings_m)}


def _bins(states: Sequence[str], values: Sequence[float], edges: np.ndarray) -> list[dict[str, Any]]:
    """Counts by state in the bins between the edges; a value on an edge belongs to the bin that it begins."""
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2).tolist()
    counts = Counter(zip(places, states, strict=True))
    return [
        {"from": low, "to": high, "counts": [counts[place, state] for state in STATES]}
        for place, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        if place in places
    ]


def confusion_of(source: Source) -> ConfusionMatrix | None:
    """The confusion matrix of the last evaluation, with a name for each class, if the run has one that can be read."""
    with suppress(RunNotFound):
        if matrix := read_confusion(source.run.path):
            return replace(matrix, classes=[str(name)[:60] for name in matrix.classes or range(len(matrix.counts))])
    return None


def _ms(time_ns: int | None) -> Any:
    return None if time_ns is None else round(time_ns / 1e6, 2)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
