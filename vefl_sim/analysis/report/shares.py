"""Who took part: the outcomes of all decisions by data size and by distance; and accuracy by class."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from vefl_sim.analysis.report.source import Source

STATES = ("delivered", "lost", "passed_over", "ineligible")
_BINS = 8
_MAX_CLASSES = 200


def shares_of(source: Source) -> dict[str, Any]:
    """How decisions ended, by the samples of the CV and by its distance; each a list of bins."""
    rows = source.vehicles
    radius_m = source.experiment.radio.coverage_radius_m
    samples = [row["samples"] or 0 for row in rows]
    edges = np.unique(np.quantile(samples, np.linspace(0, 1, _BINS + 1)).round()).tolist() if rows else []
    return {
        "samples": _bins(rows, samples, edges),
        "distance": _bins(
            rows, [row["distance_m"] or 0.0 for row in rows], np.linspace(0, radius_m, _BINS + 1).tolist()
        ),
    }


def _bins(rows: Sequence[dict[str, Any]], values: Sequence[float], edges: Sequence[float]) -> list[dict[str, Any]]:
    """Counts by state in the bins between the edges; a value on an edge belongs to the bin that it begins."""
    if len(edges) < 2:
        edges = [edges[0], edges[0] + 1] if edges else []
    counts = [Counter[str]() for _ in edges[1:]]
    for row, value in zip(rows, values, strict=True):
        place = min(max(int(np.searchsorted(edges, value, side="right")) - 1, 0), len(counts) - 1)
        counts[place][str(row["state"])] += 1
    return [
        {"from": low, "to": high, "counts": [count[state] for state in STATES]}
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count
    ]


def confusion_of(source: Source) -> dict[str, Any] | None:
    """The confusion matrix of the last evaluation, if the run has one that can be read: rows are the true classes."""
    note = source.note("confusion.json")
    if not isinstance(note, dict):
        return None
    counts: Any = note.get("counts")
    names: Any = note.get("classes")
    if not _is_matrix(counts):
        return None
    named = isinstance(names, list) and len(names) == len(counts)
    classes = [str(name)[:60] for name in names] if named else [str(number) for number in range(len(counts))]
    number = note.get("round")
    return {"round": number if isinstance(number, int) else None, "classes": classes, "counts": counts}


def _is_matrix(counts: Any) -> bool:
    """Whether a value from a file is a square matrix of counts, of a size that can be shown."""
    if not isinstance(counts, list) or not 1 <= len(counts) <= _MAX_CLASSES:
        return False
    rows = [row for row in counts if isinstance(row, list) and len(row) == len(counts)]
    return len(rows) == len(counts) and all(type(count) is int and 0 <= count < 2**53 for row in rows for count in row)
