import numpy as np
import pytest

from vefl_sim.mobility.grid.traffic import Arrivals


def test_poisson():
    arrivals = Arrivals(2.0, np.arange(10, 14), np.random.default_rng(1))
    counts = []
    for second in range(1, 5001):
        before = len(arrivals.waiting)
        arrivals.queue_arrivals(float(second))
        counts.append(len(arrivals.waiting) - before)
    assert np.mean(counts) == pytest.approx(2.0, rel=0.03)  # 3 % is 1.5 standard errors
    assert np.var(counts) == pytest.approx(2.0, rel=0.1)
    assert np.bincount(arrivals.waiting)[10:] == pytest.approx(len(arrivals.waiting) / 4, rel=0.1)


def test_arrivals_do_not_depend_on_how_often_one_looks():
    often, rarely = (Arrivals(1.0, np.arange(5), np.random.default_rng(1)) for _ in range(2))
    for tick in range(1, 1001):
        often.queue_arrivals(tick / 10)
    rarely.queue_arrivals(100.0)
    assert often.waiting == rarely.waiting
    assert often.waiting


def test_one_vehicle_per_open_entry_in_order_of_arrival():
    arrivals = Arrivals(1.0, np.arange(5), np.random.default_rng(1))
    arrivals.waiting = [3, 1, 3, 2, 1]
    assert arrivals.admit([1, 3]) == [3, 1]
    assert arrivals.waiting == [3, 2, 1]
    assert arrivals.admit([]) == []
    assert arrivals.admit([1, 2, 3]) == [3, 2, 1]
    assert arrivals.waiting == []
