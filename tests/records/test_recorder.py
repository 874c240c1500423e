"""Rows of tables: from a round report and bursts written by hand, and from runs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.protocol.test_burst import BUSY
from tests.protocol.test_golden import EXPERIMENT
from tests.schemes.rounds import CONSTANTS, LINK, observed
from vefl_sim import Plan, Simulation, from_tables, simulate, with_settings
from vefl_sim.learning.learner import Evaluation
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport, TrainOrder
from vefl_sim.records.recorder import UploadBins, round_row, vehicle_rows
from vefl_sim.schemes.observation import Observation

WORST = {"worst_rate_bps": np.full(3, LINK.rate_bps(2e3))}


def seen(**constants) -> Observation:
    """An observation of the CVs 1, 4 and 9, whose worst case is an SNR of 2000."""
    return observed([10, 30, 40], [10.0, 6.0, 4.0], snapshot=WORST, **constants)


def outcome(cv: int, drained: float, lost: str | None) -> OrderOutcome:
    order = TrainOrder(cv, 3, 5, 1e9, 10, 0.5, 330, 0, 10, worst_j=0.7)
    account = Account(cv, 3, 10.0, 10.0, 330.0, drained, 330.0 - drained, 0.5, 0.25, 17.5)
    return OrderOutcome(order, account, lost, tx_slots=4, end_ns=12 * 10**9, event=1)  # type: ignore[arg-type]


@pytest.fixture
def report() -> RoundReport:
    plan = Plan(np.array([1, 4]), np.array([5, 5]), np.array([1e9, 1e9]), 40.0, 2.0, 0.1, "gap", {9: "time"})
    outcomes = [outcome(1, 330.0, None), outcome(4, 165.0, "round_ended")]
    decision = Decision(seen(), plan, outcomes)
    return RoundReport(3, 10**10, 15 * 10**9, 3, [decision], [Applied(0.5)], 1, Evaluation(0.8, 0.6))


def test_the_row_of_a_round(report: RoundReport) -> None:
    row = round_row(report)
    assert (row["in_coverage"], row["eligible"], row["ordered"], row["delivered"]) == (3, 2, 2, 1)
    assert row["p_suc"] == pytest.approx(0.75)
    assert row["p_suc_with_ineligible"] == pytest.approx(0.5)  # (1 + 0.5 + 0) / 3
    assert row["bits_per_joule"] == pytest.approx((330 + 165) / 0.5)
    assert (row["cost"], row["planned_cost"], row["energy_j"]) == (35.0, 34.0, 1.5)
    assert (row["weight_sum"], row["accuracy"], row["plan_status"]) == (0.5, 0.8, "gap")


def test_the_rows_of_the_vehicles(report: RoundReport) -> None:
    rows = [*vehicle_rows(report)]
    assert [row["state"] for row in rows] == ["delivered", "lost", "ineligible"]
    assert [row.get("reason") for row in rows] == [None, "round_ended", "time"]
    assert rows[1]["delivered_fraction"] == pytest.approx(0.5)


def test_worst_case_and_window_by_hand() -> None:
    """SNR 0.2 · 1e4 = 2000, so 1.8 MHz · 13/14 · log₂ 2001 = 18.33 Mbit/s: 9166 bit per slot; 3 CVs, 10 pRBs."""
    observation = seen(payload_bits=100_000)
    assert observation.worst_slots.tolist() == [11, 11, 11]
    assert observation.window_slots.tolist() == [10_000, 10_000, 8_000]
    assert observation.train_limit_ns.tolist() == [9989 * 500_000, 9989 * 500_000, 7989 * 500_000]
    crowd = seen(payload_bits=100_000, link=replace(LINK, prbs=1))
    assert crowd.worst_slots.tolist() == [33, 33, 33]  # a third of a pRB each
    few = seen(payload_bits=100_000, link=replace(LINK, prbs=1), share_among_selected=True)
    assert few.worst_slots.tolist() == [22, 22, 22]  # only two can be selected


def test_three_cars_by_hand() -> None:
    """As in tests/protocol/test_golden.py: 12 slots with one pRB at full power; CV 2 has 1,445 bit left in the end."""
    golden = with_settings(from_tables(EXPERIMENT), "trace.slots=uploads")
    run = simulate(golden, out=None)
    rows = run.table("uploads")
    assert rows["time_ns"].tolist() == [950_000_000] * 2 + [1_950_000_000] * 2
    assert rows["cv"].tolist() == [1, 2, 1, 2]
    assert rows["slots"].tolist() == [12] * 4
    assert rows["prbs"].tolist() == [1.0] * 4
    assert rows["power_w"].tolist() == pytest.approx([0.2] * 4)
    assert rows["bits"].tolist() == pytest.approx([33_000, 33_000, 33_000, 31_555], abs=1)
    assert rows["bits_left"].tolist() == pytest.approx([0, 0, 0, 1_445], abs=1)
    assert run.table("mobility")["time_ns"].unique().tolist() == [0, 10**9, 2 * 10**9]
    assert run.rounds["weight_sum"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert run.vehicles.query("round == 2 and cv == 2")["sojourn_ns"].item() == 20 * 10**9
    other = simulate(with_settings(golden, "trace.mobility_every_s=0.5", "aggregation.normalize=true"), out=None)
    assert other.table("mobility")["time_ns"].unique().tolist() == [0, 5 * 10**8, 10**9, 15 * 10**8, 2 * 10**9]
    assert other.rounds["weight_sum"].tolist() == pytest.approx([1.0, 1.0])


@pytest.fixture(scope="module")
def full() -> Simulation:
    """A busy run with a row for every CV and slot."""
    return simulate(with_settings(BUSY, "trace.slots=full", "run.rounds=1"), out=None)


def test_sampled_slots_are_every_hundredth_of_all(full: Simulation) -> None:
    sampled = simulate(with_settings(BUSY, "trace.slots=sampled", "run.rounds=1"), out=None)
    slots = full.table("slots")
    expected = slots[slots["slot"] % 100 == 0].reset_index(drop=True)
    assert 0 < len(expected) < len(slots) / 50
    pd.testing.assert_frame_equal(sampled.table("slots"), expected)


def test_the_radial_sojourn_bound_is_the_distance_to_the_circle() -> None:
    axis, radial = (
        simulate(with_settings(BUSY, "trace.slots=off", "run.rounds=1", f"mobility.sojourn={way}"), out=None)
        for way in ("axis", "radial")
    )
    seen = axis.vehicles.merge(radial.vehicles, on=["round", "cv"], suffixes=("", "_radial"))
    expected_ns = (BUSY.radio.coverage_radius_m - seen["distance_m"]) / BUSY.mobility.max_speed_mps * 1e9
    assert seen["sojourn_ns_radial"].to_numpy(float) == pytest.approx(expected_ns.to_numpy(float), rel=1e-6)
    assert (seen["sojourn_ns"] >= seen["sojourn_ns_radial"]).all()
    assert (seen["sojourn_ns"] > 1.1 * seen["sojourn_ns_radial"]).any()


def test_the_bins_are_the_means_and_sums_of_the_slots(full: Simulation) -> None:
    binned = simulate(with_settings(BUSY, "trace.slots=uploads", "run.rounds=1"), out=None)
    slots, bins = full.table("slots"), binned.table("uploads")
    assert full.events.equals(binned.events)
    slots_per_bin, slot_s = 50_000_000 // BUSY.slots.slot_ns, BUSY.slots.slot_s
    by_bin = slots.assign(time_ns=slots["slot"] // slots_per_bin * 50_000_000).groupby(["time_ns", "cv"])
    served = bins[bins["slots"] > 0].set_index(["time_ns", "cv"])
    assert served.index.tolist() == list(by_bin.groups)
    assert served["slots"].tolist() == by_bin.size().tolist()
    assert served["prbs"].tolist() == pytest.approx(by_bin["prbs"].mean().tolist())
    assert served["power_w"].tolist() == pytest.approx(by_bin["power_w"].mean().tolist())
    carried = by_bin["rate_bps"].sum() * slot_s
    assert (served["bits"] <= carried + 1e-3).all()  # a CV that leaves within a slot delivers nothing in it
    assert np.isclose(served["bits"].to_numpy(float), carried.to_numpy(float), rtol=1e-6).mean() > 0.9


def burst(first_slot: int, left: np.ndarray, prbs: np.ndarray, power_w: np.ndarray, cvs: list[int]) -> Burst:
    """A burst with these rows of slots."""
    log = SimpleNamespace(prbs=prbs, power_w=power_w, bits_left=left)
    uploads = [SimpleNamespace(cv=cv) for cv in cvs]
    return Burst(first_slot, len(left), log, uploads, None, None)  # type: ignore[arg-type]


def test_two_uploads_of_a_cv_in_one_bin_are_one_row() -> None:
    found: list[dict] = []
    bins = UploadBins(CONSTANTS.grid, found.append)
    one, power_w = np.ones((2, 1), np.int64), np.full((2, 1), 0.1)
    bins.add(burst(10, np.array([[300.0], [100.0]]), one, power_w, [8]))
    bins.receive(8, 100.0)  # the first upload is complete: 300 bit
    bins.add(burst(50, np.array([[500.0], [450.0]]), one, 2 * power_w, [8]))
    bins.close()  # the CV left within the last slot, so only 50 bit of the second have arrived
    [row] = found
    assert (row["slots"], row["prbs"], row["bits"], row["bits_left"]) == (4, 1.0, 350.0, 450.0)
    assert row["power_w"] == pytest.approx(0.15)
