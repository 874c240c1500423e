"""How many seeds a comparison needs, against published tables, a simulation and scipy's non-central t."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vefl_sim.sweep.paired import detectable, differences, half_width, power, seeds_needed, seeds_sentence


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10), (2.0, 5), (50.0, 2)])
def test_seeds_are_those_of_published_tables(effect: float, seeds: int) -> None:
    """The first four are those of Cohen's small, medium and large effects in the paired t test (G*Power 3)."""
    assert seeds_needed(effect, 1.0) == seeds
    assert seeds_needed(-3 * effect, 3.0) == seeds


def test_power_is_that_of_the_non_central_t() -> None:
    for seeds in (2, 3, 10, 100):
        limit, shift = stats.t.ppf(0.975, seeds - 1), 0.4 * seeds**0.5
        exact = stats.nct.sf(limit, seeds - 1, shift) + stats.nct.cdf(-limit, seeds - 1, shift)
        assert power(0.4, seeds) == pytest.approx(exact, abs=1e-4)
    assert power(0.0, 5) == pytest.approx(0.05, abs=1e-3)


def test_80_percent_of_experiments_find_the_difference() -> None:
    needed = seeds_needed(0.01, 0.012)
    assert needed
    samples = np.random.default_rng(6).normal(0.01, 0.012, (2000, needed))
    found = [abs(sample.mean()) > half_width(pd.Series(sample)) for sample in samples]
    assert 0.78 < np.mean(found) < 0.86


def test_the_smallest_difference_that_is_found() -> None:
    for seeds in (2, 3, 5, 20):
        found = detectable(0.02, seeds)
        assert seeds_needed(1.001 * found, 0.02) == seeds
        assert (seeds_needed(0.999 * found, 0.02) or 0) > seeds


def table(*values: list[float]) -> pd.DataFrame:
    rows = {(f"v{number}", seed): {"x": x} for number, own in enumerate(values) for seed, x in enumerate(own)}
    return differences(pd.DataFrame.from_dict(rows, orient="index").rename_axis(["variant", "seed"]))


def test_the_sentence() -> None:
    unclear = table([0.0, 0.0, 0.0], [-0.01, 0.0, 0.02], [-0.02, 0.0, 0.02])
    assert seeds_sentence(unclear, "accuracy", 0.01) == (
        "No difference in accuracy was found. To find one of 0.01, 34 seeds are needed (paired t test, 80 % power, 5 % "
        "level)."
    )
    text = seeds_sentence(unclear, "accuracy")
    assert "With 3 seeds, one of 0.065 is found in 80 % of experiments; for half of it, 6 seeds are needed" in text
    assert text.endswith("set figure.detect.")
    assert "more than 10000 seeds are needed" in seeds_sentence(unclear, "accuracy", 1e-5)


def test_no_sentence_if_there_is_a_difference_or_no_pair() -> None:
    assert seeds_sentence(table([0.0, 0.0, 0.0], [-0.01, 0.0, 0.02], [0.02, 0.021, 0.022]), "x") == ""
    assert seeds_sentence(table([0.0], [1.0]), "x") == ""
    assert seeds_sentence(table([0.0, 0.0], [0.0, 0.0]), "x") == ""
