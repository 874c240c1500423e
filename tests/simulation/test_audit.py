"""The audit catches a planted error of every kind, and lets a lawful run pass."""

from dataclasses import replace

import numpy as np
import pytest

from tests.schemes.rounds import CONSTANTS, experiment, observed
from vefl_sim import simulate, with_settings
from vefl_sim.core.errors import AuditFailed
from vefl_sim.optimize.rat.burst_state import new_log
from vefl_sim.protocol.ledger import Account, Ledger
from vefl_sim.protocol.mac import Burst
from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, RoundReport
from vefl_sim.protocol.server.orders import orders_of
from vefl_sim.schemes.pdpc import Pdpc
from vefl_sim.schemes.scheme import Plan
from vefl_sim.simulation.audit import Audit, broken_laws

ROUND = {"samples": [40, 20, 10, 30], "sojourn_s": [10.0, 4.0, 2.0, 24.0]}


def closed_round(plan=None, agreements=None, **constants) -> RoundReport:
    """A round in which every ordered CV delivered exactly as planned."""
    observation = observed(**ROUND, agreements=agreements, **constants)
    plan = plan or Pdpc(experiment()).plan(observation)
    outcomes = []
    for order in orders_of(observation, plan):
        account = Account(order.cv, 3, 10.0, 10.0, 330.0, 330.0, 0.0, order.worst_j, 0.0)
        account.paid = account.charge
        outcomes.append(OrderOutcome(order, account, None, 1, CONSTANTS.grid.start_ns(order.deadline_slot), 1))
    return closed_with(observation, plan, outcomes)


def closed_with(observation, plan, outcomes) -> RoundReport:
    applied = [Applied(0.5)] * len(outcomes)
    decision = Decision(observation, plan, outcomes)
    return RoundReport(3, 10**10, 15 * 10**9, len(observation.cv), [decision], applied, 1, None)


def laws(report: RoundReport) -> list[str]:
    return [law for law, _ in broken_laws(report)]


def test_energy_is_counted_over_all_orders_of_a_round() -> None:
    """Without rounds a CV may have several orders in a window; each alone is within its 20 J."""
    report = closed_round()
    [decision] = report.decisions
    half = [replace(outcome, order=replace(outcome.order, worst_j=12.0)) for outcome in decision.outcomes]
    decision = replace(decision, outcomes=half, plan=replace(decision.plan, cost=None))
    assert "C4" not in laws(replace(report, decisions=[decision]))
    assert laws(replace(report, decisions=[decision, decision])).count("C4") == len(half)


def ordered(cv: list[int], iterations: list[int], cpu_hz: float = 2e9, **keys) -> Plan:
    return Plan(np.array(cv), np.array(iterations), np.full(len(cv), cpu_hz), **keys)


def test_a_lawful_round_passes() -> None:
    report = closed_round()
    assert len(report.outcomes) == 2
    assert laws(report) == list(report.overruns()) == []


@pytest.mark.parametrize(
    ("law", "plan", "constants"),
    [
        ("C1", ordered([1, 4, 9], [1, 1, 1]), {}),
        ("C2", ordered([16], [14]), {}),  # 14 · 0.75/2 = 5.25 s in a round of 5 s, though it stays for 24 s
        ("C3", ordered([9], [17]), {}),  # 17 · 0.25/2 = 2.125 s, and it may be gone after 2 s
        ("C4", ordered([1], [2]), {"cpu_capacitance": 1e-26}),  # 2 · 0.5e-26 · 1e9 · 4e18 = 40 J of 20 J
        ("C5", ordered([1, 16], [1, 1]), {"budget": 20.0}),  # two fees of 10, and some energy
        ("C5", ordered([1], [1], cost=1.0), {}),  # says that it costs 1, but the fee alone is 10
        ("C6", ordered([1], [2]), {"min_iterations": 3}),  # it could do 9
        ("C6", ordered([1], [6]), {"max_iterations": 5}),
    ],
)
def test_a_plan_that_breaks_one_law(law: str, plan: Plan, constants: dict) -> None:
    report = closed_round(plan, **constants)
    assert laws(report) == [law]
    with pytest.raises(AuditFailed, match=f"round 3 breaks {law}: "):
        Audit(CONSTANTS.link, 5e-4).round(report)


def test_fewer_iterations_than_wanted_if_time_or_money_allow_no_more() -> None:
    assert laws(closed_round(ordered([9], [15]), min_iterations=16)) == []  # hi = 15 in its 2 s
    assert laws(closed_round(ordered([1], [2], status="equal_share"), min_iterations=3)) == []


def test_a_plan_without_constraints_is_not_judged() -> None:
    audit = Audit(CONSTANTS.link, 5e-4)
    audit.round(closed_round(ordered([16], [20], bypasses_network=True)))
    assert audit.figures()["plans_audited"] == 0


def test_overruns_are_counted_by_kind() -> None:
    report = closed_round()
    first, second = report.outcomes
    late = replace(first, tx_slots=2, end_ns=first.end_ns + 1)
    dear = replace(second, account=replace(second.account, compute_j=21.0, paid=990.0))
    worse = replace(report, decisions=[replace(report.decisions[0], outcomes=[late, dear])])
    assert sorted(worse.overruns()) == [
        "deadline", "round_cost", "upload_slots", "vehicle_cost", "vehicle_energy",
    ]  # fmt: skip
    audit = Audit(CONSTANTS.link, 5e-4)
    audit.round(worse)
    assert audit.figures()["overruns"]["deadline"] == 1


def burst(prbs, power_w, rate_bps=None, bits_left=None) -> Burst:
    """Two slots of two CVs; the first slot is lawful."""
    log = new_log(2, 2, 10)
    log.prbs[:] = [[5, 5], prbs]
    log.power_w[:] = [[0.1, 0.1], power_w]
    log.rate_bps[:] = [[1e6, 1e6], rate_bps or [1e6, 1e6]]
    log.bits_left[:] = [[500.0, 500.0], bits_left or [400.0, 0.0]]
    return Burst(70, 2, log, [], np.zeros(2), np.zeros((2, 2, 10)))


@pytest.mark.parametrize(
    ("law", "slot"),
    [
        ("C7", {"prbs": [6, 5], "power_w": [0.1, 0.1]}),
        ("C10", {"prbs": [-1, 5], "power_w": [0.0, 0.1]}),
        ("C11", {"prbs": [0, 10], "power_w": [0.1, 0.1]}),
        ("C11", {"prbs": [5, 5], "power_w": [-0.1, 0.1]}),
        ("C12", {"prbs": [5, 5], "power_w": [0.2001, 0.1]}),
        ("C12", {"prbs": [5, 5], "power_w": [float("nan"), 0.1]}),
        ("a rate", {"prbs": [5, 5], "power_w": [0.1, 0.1], "rate_bps": [-1.0, 0.0]}),
        ("a rate", {"prbs": [5, 5], "power_w": [0.1, 0.1], "rate_bps": [float("inf"), 0.0]}),
        ("a queue", {"prbs": [5, 5], "power_w": [0.1, 0.1], "bits_left": [-1.0, 0.0]}),
    ],
)
def test_a_slot_that_breaks_a_law(law: str, slot: dict) -> None:
    with pytest.raises(AuditFailed, match=f"slot 71 breaks {law}"):
        Audit(CONSTANTS.link, 5e-4, slots=1).burst(burst(**slot))


def test_bits_that_no_slot_has_carried() -> None:
    audit, ledger = Audit(CONSTANTS.link, 5e-4, slots=1), Ledger()
    audit.burst(burst([5, 5], [0.1, 0.1]))  # 4 × 1 Mbit/s for half a millisecond
    account = ledger.open(1, 1, 10.0, 10.0)
    ledger.offer(account, 3000.0)
    ledger.drain(account, 2000.0)
    audit.close(ledger)
    ledger.drain(account, 1.0)
    with pytest.raises(AuditFailed, match="but the slots carried"):
        audit.close(ledger)


SMALL = {
    "run": {"name": "audited", "rounds": 2},
    "traffic": {"mean_in_coverage": 15.0},
    "data": {"train_samples": 1000, "test_samples": 10, "image_px": 16},
    "learning": {"kind": "none"},
}


class Spender(Pdpc):
    """Plans with more money than the server has."""

    def __init__(self, keys) -> None:
        super().__init__(with_settings(keys, "vefl.budget=1e6", "scheme.selected=100"))

    def plan(self, observation):
        rich = replace(observation.constants, budget=1e6, max_selected=100)
        return super().plan(replace(observation, constants=rich))


def test_plans_are_audited_with_the_limits_of_the_run() -> None:
    keys = SMALL | {"scheme": {"kind": f"{__name__}:Spender", "selected": 3}, "vefl": {"budget": 60.0}}
    assert simulate(experiment(**keys), out=None).summary["plan_breaches"] == {"C1": 2, "C5": 2}


@pytest.mark.parametrize("kind", ["pdpc", "fedavg"])
def test_without_constraints_everything_is_delivered(kind: str) -> None:
    keys = SMALL | {"scheme": {"kind": kind, "constrained": False, "selected": 4}}
    run = simulate(experiment(**keys), out=None)
    ordered = run.vehicles[run.vehicles["state"] == "delivered"]
    assert len(ordered) == run.summary["updates_delivered"] == run.summary["updates_ordered"]
    assert set(run.rounds["ordered"]) == {4} if kind in ("pdpc", "random") else (run.rounds["ordered"] > 8).all()
    assert set(ordered["iterations"]) == {80}
    assert (ordered["transmit_j"] == 0).all()
    assert (ordered["paid"] > 0).all()
    assert set(run.events["kind"]) >= {"training_ordered", "upload_received", "update_aggregated"}
