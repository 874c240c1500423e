"""Rows of tables, from a round report written by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocol.test_burst import BUSY
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Plan, Run, from_tables, simulate, with_settings
from vefl_sim.core.clock import SlotGrid
from vefl_sim.experiment.radio_tables import RadioTable
from vefl_sim.learning.learner import Evaluation
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport, TrainOrder
from vefl_sim.protocol.server.edge import Timetable
from vefl_sim.radio.link import Link
from vefl_sim.records.recorder import round_row, vehicle_rows
from vefl_sim.schemes.observation import CoverageSnapshot, RoundConstants, observe
from vefl_sim.schemes.sla import Agreement

AGREEMENT = Agreement(20.0, 25.0, 10.0, 10.0, 1e3, 2e9)
LINK = Link.of(RadioTable(antennas=1))
CONSTANTS = RoundConstants(
    SlotGrid(500_000), LINK,
    5 * 10**9, 1000.0, 330, 100, 2e-28, 1, 80, 2, 0.25,
    share_among_selected=False,
)  # fmt: skip
SNAPSHOT = CoverageSnapshot(
    round=3, time_ns=10**10, cv=np.array([1, 4, 9]), distance_m=np.array([100.0, 200.0, 300.0]),
    sojourn_s=np.array([10.0, 6.0, 4.0]), snr_per_watt=np.full(3, 1e4), worst_rate_bps=np.full(3, LINK.rate_bps(2e3)),
    samples=np.array([10, 30, 40]), agreements=[AGREEMENT] * 3, success=np.ones(3),
)  # fmt: skip


def outcome(cv: int, drained: float, lost: str | None) -> OrderOutcome:
    order = TrainOrder(cv, 3, 5, 1e9, 10, 0.5, 330, 0, 10, worst_j=0.7)
    account = Account(cv, 3, 10.0, 10.0, 330.0, drained, 330.0 - drained, 0.5, 0.25, 17.5)
    return OrderOutcome(order, account, lost, tx_slots=4, end_ns=12 * 10**9, event=1)  # type: ignore[arg-type]


@pytest.fixture
def report() -> RoundReport:
    plan = Plan(np.array([1, 4]), np.array([5, 5]), np.array([1e9, 1e9]), 40.0, 2.0, 0.1, "gap", {9: "time"})
    outcomes = [outcome(1, 330.0, None), outcome(4, 165.0, "round_ended")]
    decision = Decision(observe(SNAPSHOT, CONSTANTS), plan, outcomes)
    return RoundReport(3, 10**10, 15 * 10**9, 3, [decision], [Applied(0.5)], 1, Evaluation(0.8, 0.6))


def test_the_row_of_a_round(report: RoundReport) -> None:
    row = round_row(report)
    assert (row["in_coverage"], row["eligible"], row["ordered"], row["delivered"]) == (3, 2, 2, 1)
    assert row["p_suc"] == pytest.approx(0.75)
    assert row["p_suc_with_ineligible"] == pytest.approx(0.5)  # (1 + 0.5 + 0) / 3
    assert row["bits_per_joule"] == pytest.approx((330 + 165) / 0.5)
    assert (row["cost"], row["planned_cost"], row["energy_j"]) == (35.0, 34.0, 1.5)
    assert (row["weight_sum"], row["accuracy"], row["plan_status"]) == (0.5, 0.8, "gap")


def test_the_row_of_a_round_without_orders(report: RoundReport) -> None:
    empty = replace(report.decisions[0], plan=replace(report.plan, ineligible={}), outcomes=[])
    row = round_row(replace(report, decisions=[empty], applied=[], steps=0, evaluation=None))
    assert row["p_suc"] is row["p_suc_with_ineligible"] is row["bits_per_joule"] is row["accuracy"] is None


def test_the_rows_of_the_vehicles(report: RoundReport) -> None:
    rows = [*vehicle_rows(report)]
    assert [row["state"] for row in rows] == ["delivered", "lost", "ineligible"]
    assert [row.get("reason") for row in rows] == [None, "round_ended", "time"]
    assert rows[1]["delivered_fraction"] == pytest.approx(0.5)


def test_theta_mixes_data_and_sojourn() -> None:
    """λ̄ = 0.25: shares of the data (1/8, 3/8, 4/8) and of the bounds (10, 6, 4)/20."""
    expected = 0.75 * np.array([1, 3, 4]) / 8 + 0.25 * np.array([10, 6, 4]) / 20
    assert observe(SNAPSHOT, CONSTANTS).problem().weight == pytest.approx(expected)


def test_worst_case_and_window_by_hand() -> None:
    """SNR 0.2 · 1e4 = 2000, so 1.8 MHz · 13/14 · log₂ 2001 = 18.33 Mbit/s: 9166 bit per slot; 3 CVs, 10 pRBs."""
    observation = observe(replace(SNAPSHOT), replace(CONSTANTS, payload_bits=100_000))
    assert observation.worst_slots.tolist() == [11, 11, 11]
    assert observation.window_slots.tolist() == [10_000, 10_000, 8_000]
    assert observation.train_limit_ns.tolist() == [9989 * 500_000, 9989 * 500_000, 7989 * 500_000]
    crowd = observe(SNAPSHOT, replace(CONSTANTS, payload_bits=100_000, link=replace(LINK, prbs=1)))
    assert crowd.worst_slots.tolist() == [33, 33, 33]  # a third of a pRB each
    few = observe(
        SNAPSHOT,
        replace(CONSTANTS, payload_bits=100_000, link=replace(LINK, prbs=1), share_among_selected=True),
    )
    assert few.worst_slots.tolist() == [22, 22, 22]  # only two can be selected


@pytest.mark.parametrize(
    ("rounds", "round", "start_s", "more"),
    [(3, 3, 99, True), (3, 4, 0, False), (None, 9, 5, True), (None, 9, 6, False)],
)
def test_the_timetable_ends_by_rounds_or_by_time(rounds: int | None, round: int, start_s: int, more: bool) -> None:
    timetable = Timetable(SlotGrid(500_000), 5 * 10**9, rounds, 10 * 10**9, True, 1)
    assert timetable.has(round, start_s * 10**9) is more


def test_keys_that_change_what_is_recorded_and_applied(golden: Run, tmp_path) -> None:
    plain, keys = golden, ["trace.mobility_every_s=0.5", "aggregation.normalize=true"]
    other = simulate(with_settings(from_tables(EXPERIMENT), *keys), out=tmp_path)
    assert plain.table("mobility")["time_ns"].unique().tolist() == [0, 10**9, 2 * 10**9]
    assert other.table("mobility")["time_ns"].unique().tolist() == [0, 5 * 10**8, 10**9, 15 * 10**8, 2 * 10**9]
    assert plain.rounds["weight_sum"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert other.rounds["weight_sum"].tolist() == pytest.approx([1.0, 1.0])
    assert plain.vehicles.query("round == 2 and cv == 2")["sojourn_ns"].item() == 20 * 10**9


def test_the_radial_sojourn_bound_is_the_distance_to_the_circle(tmp_path) -> None:
    axis, radial = (
        simulate(with_settings(BUSY, "trace.slots=off", "run.rounds=1", f"mobility.sojourn={way}"), out=tmp_path)
        for way in ("axis", "radial")
    )
    seen = axis.vehicles.merge(radial.vehicles, on=["round", "cv"], suffixes=("", "_radial"))
    expected_ns = (BUSY.radio.coverage_radius_m - seen["distance_m"]) / BUSY.mobility.max_speed_mps * 1e9
    assert seen["sojourn_ns_radial"].to_numpy(float) == pytest.approx(expected_ns.to_numpy(float), rel=1e-6)
    assert (seen["sojourn_ns"] >= seen["sojourn_ns_radial"]).all()
    assert (seen["sojourn_ns"] > 1.1 * seen["sojourn_ns_radial"]).any()
