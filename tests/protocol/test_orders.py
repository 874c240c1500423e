"""An order worked out by hand: slots of 0.5 ms, a round of 5 s from 10 s on, uploads of at most one slot."""

import numpy as np
import pytest

from tests.schemes.rounds import observed
from vefl_sim.protocol.server.orders import orders_of
from vefl_sim.schemes.scheme import Plan

OBSERVED = observed(samples=[2, 2], sojourn_s=[2.0004, 9.0])  # CV 1 leaves within the round, CV 4 does not
PLAN = Plan(cv=np.array([4, 1]), iterations=np.array([3, 3]), cpu_hz=np.array([1e9, 1e9]))


def test_the_deadline_is_the_end_of_the_sojourn_bound_or_of_the_round() -> None:
    first, second = orders_of(OBSERVED, PLAN)
    assert (first.cv, second.cv) == (1, 4)
    assert (first.deadline_slot, second.deadline_slot) == (24_000, 30_000)  # 12.0004 s lies within slot 24,000


def test_the_upload_starts_as_late_as_the_worst_case_allows() -> None:
    assert [order.earliest_slot for order in orders_of(OBSERVED, PLAN)] == [23_999, 29_999]


def test_energy_of_training_and_of_the_worst_case() -> None:
    """l·cD = 3 · 25 · 2 · 10^6 cycles; ζ/2·l·cD·η² = 0.015 J; one slot at 0.2 W is 0.0001 J."""
    for order in orders_of(OBSERVED, PLAN):
        assert order.train_ns == 150_000_000
        assert order.compute_j == pytest.approx(0.015)
        assert order.worst_j == pytest.approx(0.015 + 0.0001)
    assert OBSERVED.problem().tx_energy_j == pytest.approx([0.0001, 0.0001])
