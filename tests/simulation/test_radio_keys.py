"""The keys of a realistic radio: conservation of bits, what each key does, and bad input."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocol.test_burst import BUSY, KEYS, NO_ROUNDS
from tests.protocol.test_invariants import random_run
from vefl_sim import Experiment, Run, Simulation, from_tables, simulate, why, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.radio.channel import uma
from vefl_sim.simulation.scenario import make_channel

SLOT_NS = 500_000


def conserved(run: Run) -> None:
    """Of each order: offered = delivered + still queued at its end; granted = arrived + lost in outages + cut off."""
    booked = 0
    for _, events in run.events[run.events["cv"].notna()].groupby("cv"):
        for ordered, upload, end in orders_with_upload(events.to_dict("records")):
            assert end["bits"] + end["bits_left"] == pytest.approx(upload["bits"], rel=1e-12)
            assert end["bits_left"] == 0 or end["kind"] == "update_lost"
            granted, lost = granted_and_lost(run, ordered, upload, end)
            cut_off = granted.sum() - end["bits"] - lost
            # an order that is lost may end in the middle of its last slot
            possible = [0.0, *(granted[-1:] if end["kind"] == "update_lost" else [])]
            assert min(abs(cut_off - bits) for bits in possible) <= 1e-9 * upload["bits"]
            booked += len(granted)
    assert booked == len(run.table("slots"))  # no slot without an order


def orders_with_upload(events: list[dict]) -> Iterator[tuple[dict, dict, dict]]:
    """The order, the offer and the end of each upload of a CV, which has one order at a time."""
    kinds = {"training_ordered", "upload_offered", "upload_received", "update_lost"}
    steps = [event for event in events if event["kind"] in kinds]
    for before, upload, after in zip(steps, steps[1:], steps[2:], strict=False):
        if upload["kind"] == "upload_offered":
            yield before, upload, after


def granted_and_lost(run: Run, ordered: dict, upload: dict, end: dict) -> tuple[np.ndarray, float]:
    """Bits granted in each slot of an upload, and the bits of the grants that were lost, by the table of outages."""
    slots = run.table("slots").query("cv == @upload['cv']")
    start_ns = slots["slot"] * SLOT_NS
    sent = slots[(start_ns >= upload["time_ns"]) & (start_ns < end["time_ns"])]
    granted = (sent["rate_bps"] * SLOT_NS * 1e-9).to_numpy(float)
    if not run.experiment.radio.csi_delay_slots:
        return granted, 0.0
    [row] = run.table("outages").query("cv == @upload['cv'] and ordered_ns == @ordered['time_ns']").to_dict("records")
    assert row["granted_bits"] == pytest.approx(end["bits"] + row["lost_bits"], rel=1e-12)
    return granted, row["lost_bits"]


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from(["tau", "ready"]),
    st.lists(st.sampled_from([*KEYS]), min_size=1, max_size=4, unique=True),
    st.booleans(),
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_bits_are_conserved(seed: int, prbs: int, start: str, names: list[str], rounds: bool) -> None:
    keys = [key for name in names for key in KEYS[name]]
    policy = [*keys, *([] if rounds else ["scheme.kind=afa-cd", "aggregation.buffer=2"])]
    with tempfile.TemporaryDirectory() as directory:
        run = random_run(seed, prbs, start, policy, directory)
        conserved(run)
        assert all(finding.passed for finding in verify(run))
        slots, vehicles = run.table("slots"), run.vehicles
        assert (slots.groupby("slot")["prbs"].sum() <= prbs).all()
        assert vehicles["transmit_j"].sum() == pytest.approx(slots["power_w"].sum() * 5e-4)


def test_bits_are_conserved_under_outage(tmp_path: Path) -> None:
    run = random_run(3, 2, "ready", KEYS["old knowledge"] + KEYS["grants and reports"], str(tmp_path))
    assert run.summary["grants_lost"] > 10
    conserved(run)


def test_only_uplink_slots_are_used() -> None:
    slots = simulate(with_settings(BUSY, *KEYS["TDD"], "run.rounds=1"), out=None).table("slots")
    assert set(slots["slot"] % 5) == {3, 4}
    special, full = (slots[slots["slot"] % 5 == place] for place in (3, 4))
    assert special["power_w"].max() <= 0.01 * 5 / 13 * (1 + 1e-9) < full["power_w"].max()


def test_open_loop_power_is_that_of_the_path_loss() -> None:
    """Power over pRBs is the same in all slots between two scenes unless P_max limits it."""
    run = simulate(with_settings(BUSY, *KEYS["open loop"], "radio.p0_dbm=-92"), out=None)
    slots = run.table("slots")
    per_prb = (slots["power_w"] / slots["prbs"]).astype(float)
    steps = per_prb[slots["power_w"] < 0.0099].groupby([slots["cv"], slots["slot"] // 200])
    assert len(steps) > 10
    assert (steps.max() <= steps.min() * (1 + 1e-9)).all()
    assert set(slots["status"]) <= {"optimal", "infeasible_floors"}


def test_training_begins_when_the_model_is_there(tmp_path: Path) -> None:
    run = simulate(with_settings(BUSY, "downlink.kind=broadcast", "downlink.rate_floor=2e6"), out=tmp_path)
    broadcasts, events = run.table("broadcasts"), run.events
    assert (broadcasts["rate_bps"] >= 2e6).all()
    seconds = (broadcasts["end_ns"] - broadcasts["start_ns"]) / 1e9
    assert seconds.to_numpy(float) == pytest.approx((broadcasts["bits"] / broadcasts["rate_bps"]).to_numpy(float))
    assert broadcasts["energy_j"].to_numpy(float) == pytest.approx(40.0 * seconds.to_numpy(float))
    assert run.summary["gnb_energy_j"] == pytest.approx(broadcasts["energy_j"].sum())
    assert run.summary["energy_j"] == pytest.approx((run.vehicles["compute_j"] + run.vehicles["transmit_j"]).sum())
    received = events.query("kind == 'model_received'").set_index(["round", "cv"])["time_ns"]
    finished = events.query("kind == 'training_finished'").set_index(["round", "cv"])["time_ns"]
    trained = run.vehicles.set_index(["round", "cv"])["train_ns"].reindex(finished.index)
    assert (finished - received.reindex(finished.index) == trained).all()
    assert set(received) == set(broadcasts["end_ns"])
    round_, cv = received.index[0]
    assert "The gNB had broadcast the model" in " ".join(why(run, cv=cv, round=round_))


def test_a_broadcast_waits_for_the_one_before() -> None:
    settings = [*NO_ROUNDS, "vefl.sojourn_weight=0.5", "downlink.kind=broadcast", "downlink.tx_power_w=1e-3"]
    broadcasts = simulate(with_settings(BUSY, *settings), out=None).table("broadcasts")
    assert len(broadcasts) > 5
    assert (broadcasts["start_ns"].iloc[1:].to_numpy() >= broadcasts["end_ns"].iloc[:-1].to_numpy()).all()
    assert (broadcasts["start_ns"] > broadcasts["ordered_ns"]).any()


PASSING = from_tables(
    {
        "run": {"name": "passing", "rounds": 15},
        "mobility": {"max_speed_mps": 26.82},
        "radio": {"max_tx_power_w": 0.02},
        "traffic": {"through_share": 1.0, "mean_in_coverage": 12.0},
        "vefl": {"upload_share": "selected"},
        "data": {"train_samples": 2000, "test_samples": 100},
        "learning": {"kind": "none"},
    }
)


def lost(run: Simulation) -> int:
    return sum(run.summary["updates_lost"].values())


def test_no_order_is_lost_if_the_channel_stays_as_planned() -> None:
    """Plans assume a worst case of fading and sharing, but the path loss of the start of the round."""
    moving, held = (
        simulate(with_settings(PASSING, f"radio.large_scale={when}"), out=None) for when in ("step", "round")
    )
    assert lost(moving) > 0
    assert lost(held) == 0
    first = ["round", "cv", "mean_snr_db"]
    plans = [run.events.query("kind == 'training_ordered' and round == 1")[first] for run in (moving, held)]
    assert plans[0].equals(plans[1])


def test_without_rounds_the_channel_is_held_in_a_window() -> None:
    """A CV is planned with the same SNR whenever it asks in a window; it may ask again in the next."""
    keys = ["scheme.kind=afa-cd", "run.rounds=6", "vefl.upload_share=all"]
    run = simulate(with_settings(PASSING, "radio.large_scale=round", *keys), out=None)
    window_ns = 5_000_000_000
    orders = run.events.query("kind in ('training_ordered', 'cv_ineligible')").dropna(subset="mean_snr_db")
    entered = run.events.query("kind == 'coverage_entered'").set_index("cv")["time_ns"].to_dict()
    settled = orders[[row.time_ns > entered[row.cv] + 200_000_000 for row in orders.itertuples()]]
    by_window = settled.groupby([settled["time_ns"] // window_ns, "cv"])["mean_snr_db"]
    assert (by_window.size() > 1).sum() > 5
    assert (by_window.nunique() == 1).all()


def forgetful(experiment: Experiment, streams: Streams) -> object:
    """A channel that wants to know when rounds start, but cannot be saved."""
    channel = uma(experiment, streams)
    names = ("move", "begin_round", "mean_snr_per_watt", "worst_case_rate_bps", "fading_gains")
    return SimpleNamespace(**{name: getattr(channel, name) for name in names})


def test_a_channel_that_follows_rounds_must_have_a_state() -> None:
    experiment = with_settings(PASSING, "radio.channel=tests.simulation.test_radio_keys:forgetful")
    with pytest.raises(ExperimentError, match="has begin_round, so it needs state and restore"):
        make_channel(experiment, Streams(1))
