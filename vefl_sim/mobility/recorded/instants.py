"""Rows of a table, cut where the time changes."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from vefl_sim.core.parquet import Columns


def instants(batches: Iterable[Columns], time: str) -> Iterator[Columns]:
    """The columns of consecutive rows with the same time, wherever batches begin and end."""
    held: Columns = {}
    for batch in batches:
        columns = {name: np.concatenate((held[name], batch[name])) for name in batch} if held else batch
        cuts = np.flatnonzero(columns[time][1:] != columns[time][:-1]) + 1
        for start, end in pairwise((0, *cuts.tolist())):
            yield _part(columns, slice(start, end))
        held = _part(columns, slice(int(cuts[-1]) if cuts.size else 0, None))
    if held and held[time].size:
        yield held


def _part(columns: Columns, rows: slice) -> Columns:
    return {name: values[rows] for name, values in columns.items()}
