"""What is recorded of the uploads between their first and last slot: pRBs and rates, in bins of 50 ms."""

from typing import Any

import numpy as np
import pandas as pd

from vefl_sim.analysis.report.source import Source

_BIN_MS = 50
_MAX_BINS = 200_000  # a page with more would be slow; bins are then merged
_NAMES = ["bin", "cv", "slots", "prbs", "mbps"]


def uploads_of(source: Source) -> dict[str, Any]:
    """Bins by CV: for each CV a list of bin number, pRBs and Mbit/s in turn, means over the slots that served it.

    `kind` is the table from which they come, "off" if none is recorded; then only means over whole uploads are known,
    from the events.
    """
    slot_ms = source.experiment.slots.slot_ns / 1e6
    if (table := source.table("uploads")) is not None:
        kind, bins = "uploads", _of_uploads(table, slot_ms)
    elif (table := source.table("slots")) is not None:
        kind, bins = str(source.experiment.trace.slots), _of_slots(table, slot_ms)
    else:
        return {"kind": "off", "bin_ms": _BIN_MS, "cvs": {}}
    width_ms = _BIN_MS
    while len(bins) > _MAX_BINS:
        width_ms *= 2
        bins = _merged(bins.assign(bin=bins["bin"] // 2))
    by_cv = {str(cv): _flat(bins[bins["cv"] == cv]) for cv in bins["cv"].unique().astype(int).tolist()}
    return {"kind": kind, "bin_ms": width_ms, "cvs": by_cv}


def _of_uploads(table: pd.DataFrame, slot_ms: float) -> pd.DataFrame:
    """The bins that the run recorded."""
    rows = _numbers(table, ["time_ns", "cv", "slots", "prbs", "bits"])
    rows = rows[rows["slots"] > 0]
    mbps = rows["bits"] / (rows["slots"] * slot_ms * 1e3)
    return rows.assign(bin=(rows["time_ns"] // (_BIN_MS * 1e6)).astype(int), mbps=mbps)[_NAMES]


def _of_slots(table: pd.DataFrame, slot_ms: float) -> pd.DataFrame:
    """Bins made from recorded slots: all of them, or a sample."""
    rows = _numbers(table, ["slot", "cv", "prbs", "rate_bps"])
    bins = (rows["slot"] * slot_ms // _BIN_MS).astype(int)
    return _merged(rows.assign(bin=bins, slots=1.0, mbps=rows["rate_bps"] / 1e6)[_NAMES])


def _merged(bins: pd.DataFrame) -> pd.DataFrame:
    """Rows of the same bin and CV as one: means, weighted by their slots."""
    weighted = bins.assign(prbs=bins["prbs"] * bins["slots"], mbps=bins["mbps"] * bins["slots"])
    sums = weighted.groupby(["bin", "cv"], as_index=False)[["slots", "prbs", "mbps"]].sum()
    return sums.assign(prbs=sums["prbs"] / sums["slots"], mbps=sums["mbps"] / sums["slots"])[_NAMES]


def _numbers(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """These columns as floats, without rows in which one is missing or not a number."""
    values = table[names].to_numpy(np.float64, na_value=np.nan)
    return pd.DataFrame(values[np.isfinite(values).all(axis=1)], columns=names)


def _flat(rows: pd.DataFrame) -> list[float]:
    """The bins of a CV in a row, the differences of their numbers instead of the numbers."""
    rows = rows.sort_values("bin")
    columns = (np.diff(rows["bin"], prepend=0).tolist(), rows["prbs"].round(2).tolist(), rows["mbps"].round(3).tolist())
    return [value for values in zip(*columns, strict=True) for value in values]
