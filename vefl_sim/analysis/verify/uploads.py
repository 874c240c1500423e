"""Checks the `uploads` table: its rows against the limits of the cell, its sums against the events and the vehicles."""

import numpy as np
import pandas as pd

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.records.upload_bins import BIN_NS

_TOLERANCE = 1e-9  # relative; covers sums in a different order


def fault_of_uploads(evidence: Evidence) -> str | None:
    """The first fault of the table as a sentence; None if it has none.

    The sums are those of a finished run: of an unfinished one, the checkpoint itself holds the current bin.
    """
    fault = _row_fault(evidence) or _bin_fault(evidence)
    return fault or (_sum_fault(evidence) if evidence.is_done else None)


def _row_fault(evidence: Evidence) -> str | None:
    rows, radio = evidence.uploads, evidence.experiment.radio
    most = BIN_NS // evidence.experiment.slots.slot_ns
    served = rows["slots"] > 0
    right = (
        rows["slots"].between(0, most)
        & (rows["prbs"].between(1, radio.prbs) | (~served & (rows["prbs"] == 0)))
        & rows["power_w"].between(0, radio.max_tx_power_w * (1 + _TOLERANCE))
        & rows["bits"].between(0, np.inf, inclusive="left")
        & rows["bits_left"].between(0, np.inf, inclusive="left")
        & (rows["time_ns"] >= 0)
        & (rows["time_ns"] % BIN_NS == 0)
        & rows["cv"].notna()
    )
    wrong = rows[~right.fillna(False).astype(bool)]
    if not wrong.empty:
        return f"CV {wrong['cv'].iloc[0]} at {wrong['time_ns'].iloc[0] / 1e9:g} s: a value is out of its range"
    pairs = pd.MultiIndex.from_frame(rows[["time_ns", "cv"]].astype(np.int64))
    return None if pairs.is_monotonic_increasing and pairs.is_unique else "the rows are not in the order of time and CV"


def _bin_fault(evidence: Evidence) -> str | None:
    """C7: within a bin, no more pRBs are allocated than its slots have."""
    rows, grid = evidence.uploads, evidence.experiment.slots
    used = (rows["slots"] * rows["prbs"]).groupby(rows["time_ns"]).sum()
    over = used[used > evidence.experiment.radio.prbs * (BIN_NS // grid.slot_ns) * (1 + _TOLERANCE)]
    return None if over.empty else f"at {over.index[0] / 1e9:g} s: more pRBs are allocated than there are"


def _sum_fault(evidence: Evidence) -> str | None:
    """By CV, compare bits with the events and joules with the vehicles; those of open orders come on top."""
    rows, events = evidence.uploads, evidence.events.set_index("id")
    ends = events[events["kind"].isin(["upload_received", "update_lost"])]
    ends = ends[events["kind"].reindex(ends["cause"]).isin(["upload_offered", "upload_started"]).to_numpy()]
    offered = events[events["kind"] == "upload_offered"]
    cvs = pd.Index(sorted({*offered["cv"], *rows["cv"]}))
    is_open = (_count(offered, cvs) > _count(ends, cvs)).to_numpy()
    joules = rows["slots"] * rows["power_w"] * evidence.experiment.slots.slot_s
    sums = {
        "bits": (_sum(rows["bits"], rows, cvs), _sum(ends["bits"], ends, cvs)),
        "joules": (_sum(joules, rows, cvs), _sum(evidence.ordered["transmit_j"], evidence.ordered, cvs)),
    }
    for what, (sent, booked) in sums.items():
        tolerance = _TOLERANCE * np.maximum(np.maximum(sent, booked), 1.0)
        wrong = cvs[(booked > sent + tolerance) | ((sent > booked + tolerance) & ~is_open)]
        if len(wrong):
            return f"CV {wrong[0]} has sent other {what} than its orders say"
    return None


def _sum(values: pd.Series, rows: pd.DataFrame, cvs: pd.Index) -> np.ndarray:
    return values.groupby(rows["cv"]).sum().reindex(cvs, fill_value=0).to_numpy(float)


def _count(rows: pd.DataFrame, cvs: pd.Index) -> pd.Series:
    return rows["cv"].value_counts().reindex(cvs, fill_value=0)
