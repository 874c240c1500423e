"""The tables of a run: names and types of their columns, in the order of the files (docs/tables.md explains them)."""

from vefl_sim.core.tables import Schema
from vefl_sim.mobility.scene import SCENE_SCHEMA


def _schema(columns: str) -> Schema:
    """A schema from lines with a type and the names of columns that follow each other."""
    return {name: kind for kind, *names in map(str.split, columns.strip().splitlines()) for name in names}


SCHEMAS: dict[str, Schema] = {
    "events": _schema("""
        int64    id cause time_ns
        string   kind actor
        int32    round
        int64    cv
        string   reason
        float64  distance_m
        int64    sojourn_ns train_limit_ns
        int32    iterations max_iterations
        float64  cpu_hz
        int64    train_ns worst_slots slots earliest_ns deadline_ns
        float64  mean_snr_db bits bits_left energy_j cost weight
        int32    version staleness count
        float64  accuracy loss
    """),
    "rounds": _schema("""
        int32    round
        int64    start_ns end_ns
        int32    in_coverage eligible ordered delivered
        float64  p_suc p_suc_with_ineligible
        int32    steps
        float64  staleness weight_sum theorem2_sum planned_cost cost energy_j bits_per_joule accuracy loss
        string   plan_status
        bool     plan_dropped
        float64  plan_objective plan_bound plan_gap
        int32    overruns
    """),
    "vehicles": _schema("""
        int32    round
        int64    cv ordered_ns
        int32    version
        string   state reason
        float64  distance_m
        int64    sojourn_ns samples
        int32    iterations
        float64  cpu_hz
        int64    train_ns limit_ns delay_ns worst_slots tx_slots
        float64  compute_j transmit_j worst_j paid worst_cost delivered_fraction
    """),
    "mobility": SCENE_SCHEMA,
    "slots": _schema("""
        int64    slot cv
        int32    prbs
        float64  power_w rate_bps bits_left gap
        string   status
    """),
    "uploads": _schema("""
        int64    time_ns cv
        int32    slots
        float64  prbs power_w bits bits_left
    """),
    "outages": _schema("""
        int32    round
        int64    cv ordered_ns tx_slots lost_slots
        float64  granted_bits lost_bits lost_j
    """),
    "broadcasts": _schema("""
        int32    round
        int64    ordered_ns start_ns end_ns
        int32    cvs
        int64    bits
        float64  rate_bps energy_j
    """),
    "timings": {"round": "int32", "what": "string", "wall_s": "float64"},
}
