"""Use a user-defined scheduler: the CVs with the best channels are served first, regardless of deadlines."""

import numpy as np

import vefl_sim


def best_channel_first(backlog: vefl_sim.Backlog, limit: int) -> np.ndarray:
    """Return at most `limit` rows of the backlog, in descending order of SNR."""
    return np.argsort(-backlog.snr, kind="stable")[:limit]


if __name__ == "__main__":
    base = vefl_sim.from_tables(
        {
            "run": {"name": "schedulers", "rounds": 4},
            "mobility": {"max_speed_mps": 26.82},
            "radio": {"prbs": 2, "max_tx_power_w": 0.02},
            "vefl": {"budget": 5000.0, "sojourn_weight": 0.0, "upload_share": "selected"},
            "scheme": {"selected": 16},
            "data": {"train_samples": 4000},
            "learning": {"kind": "none"},
        }
    )
    for scheduler in ("edf", "__main__:best_channel_first"):
        run = vefl_sim.simulate(vefl_sim.with_settings(base, f"mac.scheduler={scheduler}"))
        summary = run.summary
        print(f"{scheduler:28s} {summary['updates_delivered']} of {summary['updates_ordered']} delivered")
