"""Who took part: the outcomes of all decisions by data size and by distance; and accuracy by class."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vefl_sim.analysis.report.source import Source
from vefl_sim.core.errors import RunNotFound
from vefl_sim.records.models import ConfusionMatrix, read_confusion

STATES = ("delivered", "lost", "passed_over", "ineligible")
_BINS = 8


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


def confusion_of(source: Source) -> ConfusionMatrix | None:
    """The confusion matrix of the last evaluation, with a name for each class, if the run has one that can be read."""
    try:
        matrix = read_confusion(source.run.path)
    except RunNotFound:
        return None
    if matrix is None:
        return None
    classes = [str(number) for number in range(len(matrix.counts))] if matrix.classes is None else matrix.classes
    return replace(matrix, classes=[name[:60] for name in classes])
