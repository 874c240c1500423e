import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.optimize.rat.edf import Backlog, edf


def backlog(deadlines: list[int], bits: list[float]) -> Backlog:
    return Backlog(0, np.arange(len(bits)), np.array(deadlines), np.array(bits), np.ones(len(bits)))


def test_earliest_deadline_first() -> None:
    assert edf(backlog([30, 10, 20], [1.0, 1.0, 1.0]), 2).tolist() == [1, 2]


def test_ties_go_to_the_larger_backlog_then_to_the_lower_number() -> None:
    assert edf(backlog([10, 10, 10], [5.0, 9.0, 5.0]), 3).tolist() == [1, 0, 2]


def test_a_cv_past_its_own_deadline_comes_first() -> None:
    waiting = Backlog(50, np.arange(2), np.array([60, 40]), np.array([9.0, 1.0]), np.ones(2))
    assert edf(waiting, 1).tolist() == [1]


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(1, 3)), min_size=1, max_size=12), st.integers(1, 12))
def test_edf_equals_plain_sorting(rows: list[tuple[int, float]], limit: int) -> None:
    waiting = backlog([deadline for deadline, _ in rows], [bits for _, bits in rows])
    literal = sorted(range(len(rows)), key=lambda row: (rows[row][0], -rows[row][1], row))[:limit]
    assert edf(waiting, limit).tolist() == literal
