"""The tables of a run, with the names and types of their columns."""

from vefl_sim.core.tables import Schema
from vefl_sim.mobility.scene import SCENE_SCHEMA

SCHEMAS: dict[str, Schema] = {
    "events": {
        "id": "int64",
        "cause": "int64",
        "time_ns": "int64",
        "kind": "string",
        "actor": "string",
        "round": "int32",
        "cv": "int64",
        "reason": "string",
        "distance_m": "float64",
        "sojourn_ns": "int64",  # bound at the start of the round
        "train_limit_ns": "int64",  # T_v
        "iterations": "int32",
        "max_iterations": "int32",  # hi_v
        "cpu_hz": "float64",
        "train_ns": "int64",  # t_cmp
        "worst_slots": "int64",  # t̄_tx
        "slots": "int64",  # slots used so far
        "earliest_ns": "int64",  # start of slot τ_v
        "deadline_ns": "int64",
        "mean_snr_db": "float64",
        "bits": "float64",
        "bits_left": "float64",
        "energy_j": "float64",
        "cost": "float64",
        "weight": "float64",
        "version": "int32",  # model version, in schemes without rounds
        "staleness": "int32",  # server steps since that version
        "count": "int32",
        "accuracy": "float64",
        "loss": "float64",
    },
    "rounds": {
        "round": "int32",
        "start_ns": "int64",
        "end_ns": "int64",
        "in_coverage": "int32",
        "eligible": "int32",
        "ordered": "int32",
        "delivered": "int32",
        "p_suc": "float64",  # mean over ordered CVs
        "p_suc_with_ineligible": "float64",  # ineligible CVs count as 0
        "steps": "int32",  # server steps; 0 or 1 in schemes with rounds
        "staleness": "float64",  # mean over applied updates: server steps since the model they started from
        "weight_sum": "float64",
        "theorem2_sum": "float64",  # Σ p_v/(q_v·p_suc) over the CVs with p_v > 0
        "planned_cost": "float64",
        "cost": "float64",
        "energy_j": "float64",
        "bits_per_joule": "float64",  # drained bits over transmit energy
        "accuracy": "float64",
        "loss": "float64",
        "plan_status": "string",
        "plan_dropped": "bool",  # FDPC: the budget did not suffice for all CVs
        "plan_objective": "float64",
        "plan_bound": "float64",
        "plan_gap": "float64",
        "overruns": "int32",  # number of exceeded worst cases, over all ordered CVs
    },
    "vehicles": {
        "round": "int32",
        "cv": "int64",
        "ordered_ns": "int64",
        "version": "int32",  # model version that it trained from, in schemes without rounds
        "state": "string",  # delivered, lost, passed_over, ineligible
        "reason": "string",  # cause of a loss, or the binding constraint
        "distance_m": "float64",
        "sojourn_ns": "int64",
        "samples": "int64",
        "iterations": "int32",
        "cpu_hz": "float64",
        "train_ns": "int64",
        "limit_ns": "int64",  # min(t_th, t_soj), in whole slots
        "delay_ns": "int64",  # from the order until the update was received or lost
        "worst_slots": "int64",
        "tx_slots": "int64",
        "compute_j": "float64",
        "transmit_j": "float64",
        "worst_j": "float64",  # compute and transmit, as planned
        "paid": "float64",
        "worst_cost": "float64",
        "delivered_fraction": "float64",  # p_suc of ProbSuc
    },
    "mobility": SCENE_SCHEMA,
    "slots": {
        "slot": "int64",
        "cv": "int64",
        "prbs": "int32",
        "power_w": "float64",
        "rate_bps": "float64",
        "bits_left": "float64",  # at the start of the slot
        "gap": "float64",  # (bound − objective) / Σ a·r of the slot
        "status": "string",
    },
    "uploads": {
        "time_ns": "int64",  # start of a bin of 50 ms
        "cv": "int64",
        "slots": "int32",  # in which the CV had a pRB
        "prbs": "float64",  # mean over these slots
        "power_w": "float64",  # mean over these slots
        "bits": "float64",  # received in the bin
        "bits_left": "float64",  # at its end
    },
    "outages": {  # if radio.csi_delay_slots > 0
        "round": "int32",
        "cv": "int64",
        "ordered_ns": "int64",
        "tx_slots": "int64",
        "lost_slots": "int64",  # slots of these whose grant was above the capacity
        "granted_bits": "float64",
        "lost_bits": "float64",  # of these grants
        "lost_j": "float64",  # energy of these slots
    },
    "broadcasts": {  # if downlink.kind = "broadcast"
        "round": "int32",
        "ordered_ns": "int64",
        "start_ns": "int64",
        "end_ns": "int64",  # when all CVs of the plan have the model
        "cvs": "int32",
        "bits": "int64",
        "rate_bps": "float64",
        "energy_j": "float64",  # of the gNB
    },
    "timings": {"round": "int32", "what": "string", "wall_s": "float64"},
}
