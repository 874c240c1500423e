import numpy as np
import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.schemes.rounds import observed
from vefl_sim import Observation, Plan, RunFailed, from_tables, simulate, with_settings
from vefl_sim.protocol.server.orders import checked_plan, checked_weights, orders_of, training_ns

OBSERVED = observed(samples=[2, 2], sojourn_s=[2.0004, 9.0])  # CV 1 leaves within the round, CV 4 does not
PLAN = Plan(cv=np.array([4, 1]), iterations=np.array([3, 3]), cpu_hz=np.array([1e9, 1e9]))


class Overambitious:
    """Orders far more iterations than fit into a round, from all CVs."""

    def __init__(self, experiment) -> None:
        pass

    def plan(self, observation: Observation) -> Plan:
        count = len(observation.cv)
        return Plan(observation.cv, np.full(count, 50), np.full(count, 1e9))

    def aggregate(self, observation: Observation, plan: Plan, delivered: np.ndarray) -> np.ndarray:
        return np.full(len(delivered), 1.0)


def test_training_that_outlasts_the_round_has_its_own_reason() -> None:
    experiment = with_settings(from_tables(EXPERIMENT), "scheme.kind=tests.protocol.test_server:Overambitious")
    run = simulate(experiment, out=None)
    lost = {"round_ended": 0, "coverage_left": 1, "trip_ended": 0, "training_unfinished": 4, "expired": 0}
    assert run.summary["updates_lost"] == lost
    lost = run.events.query("reason == 'training_unfinished'")
    assert (lost["bits_left"] == 33_000).all()
    # 50 iterations would take 5 s at 1 GHz and 5 · 1e9 · 1e-28 · 1e18 = 0.5 J; a fifth of it is done after 1 s
    assert np.allclose(run.vehicles.query("reason == 'training_unfinished'")["compute_j"].astype(float), 0.1)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("everybody", "vefl_sim.Plan"),
        (Plan([77], [1], [1e9]), "not in coverage"),
        (Plan([1, 1], [1, 1], [1e9, 1e9]), "twice"),
        (Plan([1], [0], [1e9]), "not 1, 2, 3"),
        (Plan([1], [1.5], [1e9]), "not 1, 2, 3"),
        (Plan([1], [1], [0.0]), "cpu_max_hz"),
        (Plan([1], [1], [1e12]), "cpu_max_hz"),
        (Plan([1], [1, 2], [1e9]), "for each CV"),
    ],
)
def test_an_impossible_plan_is_refused(plan: object, words: str) -> None:
    with pytest.raises(RunFailed, match=words):
        checked_plan(OBSERVED, plan)


@pytest.mark.parametrize("weights", [[1.0, np.nan], [1.0, np.inf], [1.0], [[1.0], [1.0, 2.0]], ["1", "1"], None])
def test_wrong_weights_are_refused(weights: object) -> None:
    with pytest.raises(RunFailed, match="one finite weight for each delivered update"):
        checked_weights(weights, 2)


def test_early_close_starts_the_next_round_when_all_orders_have_ended() -> None:
    experiment = with_settings(from_tables(EXPERIMENT), "server.early_close=true", "mac.start=ready")
    run = simulate(experiment, out=None)
    starts = run.rounds["start_ns"].tolist()
    assert starts == [0, 997_500_000]  # CV 3 has left, CVs 1 and 2 have delivered


def test_ready_serves_a_cv_before_its_tau() -> None:
    hasty = with_settings(from_tables(EXPERIMENT), "vefl.max_local_iterations=1", "sla.cpu_min_hz=[5e8, 5e8]")
    tau, ready = (simulate(with_settings(hasty, f"mac.start={start}"), out=None) for start in ("tau", "ready"))
    first = [run.events.query("kind == 'upload_started'")["time_ns"].min() for run in (ready, tau)]
    assert first == [200_000_000, 991_500_000]  # 1e8 cycles at 0.5 GHz; τ of CVs 1 and 2; CV 3 has left by then


def test_a_plan_that_fills_its_time_is_not_a_nanosecond_too_long() -> None:
    assert training_ns(1e9, 1e9 / 0.9915, 991_500_000) <= 991_500_000
    assert training_ns(5e8, 1e9, 991_500_000) == 500_000_000
    assert training_ns(5e9, 1e9, 991_500_000) == 5_000_000_000  # a plan that ignores the limit is not shortened


# An order worked out by hand: slots of 0.5 ms, a round of 5 s from 10 s on, uploads of at most one slot.


def test_the_deadline_is_the_end_of_the_sojourn_bound_or_of_the_round() -> None:
    first, second = orders_of(OBSERVED, PLAN)
    assert (first.cv, second.cv) == (1, 4)
    assert (first.deadline_slot, second.deadline_slot) == (24_000, 30_000)  # 12.0004 s lies within slot 24,000
    assert (first.earliest_slot, second.earliest_slot) == (23_999, 29_999)  # as late as the worst case allows


def test_energy_of_training_and_of_the_worst_case() -> None:
    """l·cD = 3 · 25 · 2 · 10^6 cycles; ζ/2·l·cD·η² = 0.015 J; one slot at 0.2 W is 0.0001 J."""
    for order in orders_of(OBSERVED, PLAN):
        assert order.train_ns == 150_000_000
        assert order.compute_j == pytest.approx(0.015)
        assert order.worst_j == pytest.approx(0.015 + 0.0001)
    assert OBSERVED.problem().tx_energy_j == pytest.approx([0.0001, 0.0001])
