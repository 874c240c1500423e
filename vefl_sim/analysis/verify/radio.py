"""Checks what depends on the radio: the worst-case delay of orders, and the `outages` table."""

import numpy as np
import pandas as pd

from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.radio.access import Access

_TOLERANCE = 1e-9  # relative; covers sums in a different order


def worst_delay_ns(evidence: Evidence) -> pd.Series:
    """Time from each planned order to the end of its upload, if that takes t̄_tx uplink slots."""
    rows, access, grid = evidence.planned, Access.of(evidence.experiment), evidence.experiment.slots
    trained_ns = evidence.model_ns.reindex(rows.index) + rows["train_ns"]
    if access.is_immediate:
        return trained_ns + rows["worst_slots"] * grid.slot_ns
    ordered_ns, worst_slots = (rows[name].to_numpy(np.int64) for name in ("ordered_ns", "worst_slots"))
    offered_ns = ordered_ns + trained_ns.to_numpy(np.int64)
    end_slot = access.end_slot(-(-offered_ns // grid.slot_ns), worst_slots)
    return pd.Series(end_slot * grid.slot_ns - ordered_ns, rows.index)


def fault_of_outages(evidence: Evidence) -> str | None:
    """The first order whose lost slots, bits or joules cannot be; None if there is none."""
    keys = ["round", "cv", "ordered_ns"]
    orders = evidence.ordered[[*keys, "tx_slots", "transmit_j"]]
    both = evidence.outages.merge(orders, on=keys, how="outer", suffixes=("", "_ordered"))
    right = (
        (both["tx_slots"] == both["tx_slots_ordered"])
        & both["lost_slots"].between(0, both["tx_slots"])
        & both["lost_bits"].between(0, both["granted_bits"] * (1 + _TOLERANCE))
        & both["lost_j"].between(0, both["transmit_j"] * (1 + _TOLERANCE) + _TOLERANCE)
    )
    wrong = both[~right.fillna(False).astype(bool)]
    if wrong.empty:
        return None
    return f"round {wrong['round'].iloc[0]}: CV {wrong['cv'].iloc[0]} has lost more than it has sent, or other slots"


def fault_of_broadcasts(evidence: Evidence) -> str | None:
    """The first broadcast whose times or bits cannot be; None if there is none."""
    rows = evidence.broadcasts
    seconds = (rows["end_ns"] - rows["start_ns"]) / 1e9
    right = (
        (rows["start_ns"] >= rows["ordered_ns"])
        & (rows["cvs"] > 0)
        & (rows["rate_bps"] >= evidence.experiment.downlink.rate_floor)
        & ((seconds - rows["bits"] / rows["rate_bps"]).abs() <= 2e-9)  # whole nanoseconds
        & rows["energy_j"].between(0, evidence.experiment.downlink.tx_power_w * seconds * (1 + _TOLERANCE))
    )
    wrong = rows[~right.fillna(False).astype(bool)]
    return None if wrong.empty else f"round {wrong['round'].iloc[0]}: a broadcast has other times, bits or energy"
