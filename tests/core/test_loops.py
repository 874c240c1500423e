"""The plain loops give the bits of a sequential sum, NumPy's extremes, and pRBs sorted by gain."""

from itertools import accumulate

import numpy as np
import pytest

from vefl_sim.core.kernel import dot, largest, least, total
from vefl_sim.optimize.rat.water import by_gain


@pytest.mark.parametrize("size", [1, 2, 12, 100])
def test_loops_agree_with_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.normal(size=(2, size)) * 10.0 ** rng.integers(-9, 9, (2, size))
    assert total(one) == [*accumulate(one.tolist(), initial=0.0)][-1]
    assert dot(one, other) == total(one * other)
    assert (least(one), largest(one)) == (one.min(), one.max())
    assert (least(one[:0]), largest(one[:0])) == (np.inf, -np.inf)


def test_equal_gains_keep_their_order() -> None:
    gain = np.random.default_rng(1).integers(0, 5, 40).astype(np.float64)
    prbs = np.arange(3, 40, 2)
    expected = prbs[np.argsort(-gain[prbs], kind="stable")]
    by_gain(gain, prbs)
    assert prbs.tolist() == expected.tolist()
