"""Means, intervals, paired differences and how many seeds find one, against published tables, simulations and scipy."""

import math

import pandas as pd
import pytest
from scipy import stats

from vefl_sim.sweep.paired import detectable, differences, half_width, means, power, seeds_needed, seeds_sentence

T_1, T_2 = 12.7062, 4.30265  # 97.5 % points of Student's t with 1 and 2 degrees of freedom


def figures(**variants: list[float]) -> pd.DataFrame:
    """One figure `x` of some variants, with the seeds 1, 2, …"""
    rows = {(name, seed): {"x": x} for name, values in variants.items() for seed, x in enumerate(values, start=1)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["variant", "seed"])


def test_half_width_of_students_t() -> None:
    assert half_width(pd.Series([1.0, 2.0, 6.0])) == pytest.approx(T_2 * math.sqrt(7) / math.sqrt(3), rel=1e-5)
    assert half_width(pd.Series([1.0, math.nan, 3.0])) == pytest.approx(T_1, rel=1e-5)  # s = √2
    assert math.isnan(half_width(pd.Series([math.nan, 1.0])))


def test_means_keep_the_order_of_the_variants() -> None:
    table = means(figures(z=[1.0, 3.0], a=[5.0, 5.0]))
    assert table["x"].to_dict() == {"z": 2.0, "a": 5.0}
    assert table["x_half_width"].tolist() == [pytest.approx(T_1, rel=1e-5), 0.0]


def test_the_effect_of_a_seed_on_both_cancels_in_the_difference() -> None:
    [row] = differences(figures(first=[10.0, 50.0, 90.0], second=[11.0, 52.0, 93.0])).to_dict("records")
    assert (row["variant"], row["reference"], row["figure"], row["pairs"]) == ("second", "first", "x", 3)
    assert row["difference"] == pytest.approx(2.0)
    assert row["half_width"] == pytest.approx(T_2 / math.sqrt(3), rel=1e-5)  # 2.484: differences 1, 2, 3


def test_seeds_are_paired_by_number_and_only_if_both_have_a_figure() -> None:
    shuffled = figures(first=[1.0, 2.0, 3.0], second=[2.0, 3.0, 4.0]).iloc[[0, 1, 2, 5, 3, 4]]
    [row] = differences(shuffled).to_dict("records")
    assert (row["difference"], row["half_width"]) == (1.0, 0.0)
    [row] = differences(figures(first=[1.0, math.nan, 3.0], second=[2.0, 9.0, 6.0])).to_dict("records")
    assert (row["pairs"], row["difference"]) == (2, 2.0)  # 1 and 3


@pytest.mark.parametrize(
    ("second", "differs"),
    [([4.0, 5.0, 6.0], True), ([-6.0, -5.0, -4.0], True), ([-1.0, 0.0, 7.0], False), ([4], False)],
)
def test_a_difference_is_marked_when_the_interval_excludes_zero(second: list[float], differs: bool) -> None:
    assert differences(figures(first=[0.0] * len(second), second=second))["differs"].tolist() == [differs]


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10), (2.0, 5), (50.0, 2)])
def test_seeds_are_those_of_published_tables(effect: float, seeds: int) -> None:
    """The first four are those of Cohen's small, medium and large effects in the paired t test (G*Power 3)."""
    assert seeds_needed(effect, 1.0) == seeds_needed(-3 * effect, 3.0) == seeds


def test_power_is_that_of_the_non_central_t() -> None:
    for seeds in (2, 3, 10, 100):
        limit, shift = stats.t.ppf(0.975, seeds - 1), 0.4 * seeds**0.5
        exact = stats.nct.sf(limit, seeds - 1, shift) + stats.nct.cdf(-limit, seeds - 1, shift)
        assert power(0.4, seeds) == pytest.approx(exact, abs=1e-4)


def test_the_smallest_difference_that_is_found() -> None:
    for seeds in (2, 3, 5, 20):
        found = detectable(0.02, seeds)
        assert seeds_needed(1.001 * found, 0.02) == seeds
        assert (seeds_needed(0.999 * found, 0.02) or 0) > seeds


def test_the_sentence_about_seeds() -> None:
    unclear = differences(figures(a=[0.0, 0.0, 0.0], b=[-0.01, 0.0, 0.02], c=[-0.02, 0.0, 0.02]))
    assert seeds_sentence(unclear, "accuracy", 0.01) == (
        "No difference in accuracy was found. To find one of 0.01, 34 seeds are needed (paired t test, 80 % power, 5 % "
        "level)."
    )
    text = seeds_sentence(unclear, "accuracy")
    assert "With 3 seeds, one of 0.065 is found in 80 % of experiments; for half of it, 6 seeds are needed" in text
    assert "more than 10000 seeds are needed" in seeds_sentence(unclear, "accuracy", 1e-5)


@pytest.mark.parametrize("second", [[0.02, 0.021, 0.022], [1.0], [0.0, 0.0]])
def test_no_sentence_if_there_is_a_difference_or_no_pair(second: list[float]) -> None:
    assert seeds_sentence(differences(figures(a=[0.0] * len(second), b=second)), "x") == ""
