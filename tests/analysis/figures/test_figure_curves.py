"""The numbers of a figure, compared with plain loops."""

from statistics import mean, stdev

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.figures.conftest import Curve, DrawFigure
from tests.analysis.figures.invented_runs import run
from vefl_sim.analysis.figures.chart import share_beyond

SWEEP = "[sweep]\nseeds = [1, 2, 3]\nradio.prbs = [6, 12]\n[figure]\n"


def line(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    return rows[rows["line"] == name].set_index("x")


ACCURACIES = {
    (6, 1): [0.1, 0.5, 0.8, 0.9],
    (6, 2): [0.2, 0.6, 0.6, 0.8],
    (6, 3): [0.3, None, 0.7, 0.7],
    (12, 2): [0.4, 0.4, 0.4, 0.4],
}


def test_accuracy_is_the_mean_where_all_seeds_were_evaluated(rows_of: Curve) -> None:
    unfinished = run([0.9] * 4)
    unfinished.is_done = False  # type: ignore[misc]
    rows = rows_of({key: run(values) for key, values in ACCURACIES.items()} | {(12, 3): unfinished}, SWEEP)
    six = line(rows, "Z = 6")
    assert six.index.tolist() == [1, 3, 4]
    for k in six.index:
        own = [values[int(k) - 1] for (prbs, _), values in ACCURACIES.items() if prbs == 6]
        assert six.loc[k, ["mean", "std", "seeds"]].tolist() == pytest.approx([mean(own), stdev(own), 3])
    alone = line(rows, "Z = 12")
    assert alone["mean"].tolist() == [0.4] * 4
    assert alone["std"].isna().all()
    assert set(alone["seeds"]) == {1}


def test_the_failure_rate_is_the_share_of_repeats_under_the_threshold(rows_of: Curve) -> None:
    runs = {key: run(values) for key, values in ACCURACIES.items()}
    six = line(rows_of(runs, SWEEP + 'kind = "failure-rate"\nthreshold = 0.7\n'), "Z = 6")
    for k in (1, 3, 4):
        own = [values[k - 1] for (prbs, _), values in ACCURACIES.items() if prbs == 6]
        assert six.loc[k, "mean"] == pytest.approx(sum(a < 0.7 for a in own if a is not None) / 3)
    assert six["std"].isna().all()


def test_over_time_a_value_holds_until_the_next(rows_of: Curve) -> None:
    runs = {(6, 1): run([0.1, 0.5, 0.9], round_s=2.0), (6, 2): run([0.3, 0.7], round_s=3.0)}
    rows = line(rows_of(runs, SWEEP + 'x = "time"\n'), "Z = 6")
    # at 2 s, only one run has a value; 3 s: 0.1, 0.3; 4 s: 0.5, 0.3; 6 s: 0.9, 0.7
    assert rows.index.tolist() == [3, 4, 6]
    assert rows["mean"].tolist() == pytest.approx([0.2, 0.4, 0.8])


def test_ccdfs_are_averaged_on_a_common_grid(rows_of: Curve) -> None:
    bounds = {(6, 1): [1.0, 2.5, 5.0, 9.0], (6, 2): [2.0, 2.0, 6.0], (12, 1): [40.0, 50.0]}
    runs = {key: run(sojourns_s=values) for key, values in bounds.items()}
    rows = rows_of(runs, SWEEP + 'kind = "sojourn"\nmarks = [2.5, 5.0]\n')
    six = line(rows, "Z = 6")
    assert six.index.tolist() == line(rows, "Z = 12").index.tolist()
    assert {2.5, 5.0} <= set(six.index)
    for x in six.index:
        shares = [sum(b >= x for b in bounds[6, seed]) / len(bounds[6, seed]) for seed in (1, 2)]
        assert six.loc[x, ["mean", "std"]].tolist() == pytest.approx([mean(shares), stdev(shares)])


@pytest.mark.parametrize(("scale", "first"), [("linear", 0.0), ("log", 1.0)])
def test_the_cdf_of_costs(rows_of: Curve, scale: str, first: float) -> None:
    runs = {(6, 1): run(costs=[1.0, 700.0, 900.0]), (6, 2): run(costs=[650.0, 800.0])}
    rows = rows_of(runs, SWEEP + f'kind = "cost"\nx_scale = "{scale}"\nmarks = [700]\n')
    assert rows["x"].iloc[0] == pytest.approx(first, abs=3)
    assert rows.set_index("x")["mean"][700.0] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert rows["mean"].iloc[-1] == 1


@pytest.mark.parametrize(
    ("count", "kind", "shares"),
    [
        ("ordered", "pdpc", [1.0, 2 / 3]),  # of three CVs
        ("with-ineligible", "pdpc", [3 / 4, 1 / 2]),
        ("rounds", "pdpc", [2 / 3, 1 / 3]),  # of three rounds
        ("rounds-with-ineligible", "fdpc", [1 / 2, 1 / 4]),
        ("paper", "pdpc", [2 / 3, 1 / 3]),  # the scheme selects CVs
        ("paper", "random", [2 / 3, 1 / 3]),
        ("paper", "fdpc", [1 / 2, 1 / 4]),
        ("paper", "fedbuff", [1 / 2, 1 / 4]),
    ],
)
def test_p_suc_is_counted_as_requested(rows_of: Curve, count: str, kind: str, shares: list[float]) -> None:
    own = run(costs=[1.0] * 4, fractions=[1.0, 1.0, 0.95, None])  # the last is ineligible
    own.rounds["p_suc"] = pd.array([1.0, 0.9, 0.5, None], dtype="Float64")
    own.rounds["p_suc_with_ineligible"] = pd.array([1.0, 0.9, 0.5, 0.1], dtype="Float64")
    text = f'[scheme]\nkind = "{kind}"\n[sweep]\nradio.prbs = [6]\n[figure]\nkind = "p_suc"\ncount = "{count}"\n'
    rows = rows_of({(6, 1): own}, text).set_index("x")["mean"]
    assert [rows[0.9], rows[0.99]] == pytest.approx(shares)


RUNS = {
    (6, 1): run([0.1, 0.5], [10.0, 20.0], fractions=[1.0, 0.5, 1.0]),
    (6, 2): run([0.2, 0.8, None], [30.0, 40.0, 20.0], fractions=[1.0]),
    (6, 3): run(costs=[70.0], fractions=[0.1]),  # neither accuracy nor a delivered update
    (12, 1): run([0.3, 0.3], [1.0, 2.0], fractions=[None, 1.0]),
}


@pytest.mark.parametrize(
    ("kind", "six", "twelve"),
    [
        ("accuracy", [0.5, 0.8], 0.3),
        ("loss", [1.5, 1.2], 1.7),
        ("failure-rate", [1.0, 0.5], 1.0),
        ("delivered", [7 / 8, 11 / 12, 1.0], 7 / 8),
        ("p_suc", [2.5 / 3, 1.0, 0.1], 1.0),
        ("delay", [4.0, 3.0], 4.0),
        ("cost", [15.0, 30.0, 70.0], 1.5),
        ("energy", [1.5, 3.0, 7.0], 0.15),
        ("total-cost", [30.0, 90.0, 70.0], 3.0),
        ("total-energy", [3.0, 9.0, 7.0], 0.3),
    ],
)
def test_every_measure_against_a_swept_key(rows_of: Curve, kind: str, six: list[float], twelve: float) -> None:
    rows = rows_of(RUNS, SWEEP + f'kind = "{kind}"\nx = "radio.prbs"\n').set_index("x")
    assert rows.index.tolist() == [6, 12]
    assert rows["mean"].tolist() == pytest.approx([mean(six), twelve])
    assert rows["std"][6] == pytest.approx(stdev(six))
    assert rows["seeds"].tolist() == [len(six), 1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("loss", [1.9, 1.5]),
        ("delivered", [1.0, 0.75]),
        ("cost", [10.0, 20.0]),
        ("energy", [1.0, 2.0]),
        ("total-energy", [1.0, 3.0]),
    ],
)
def test_measures_by_round(rows_of: Curve, kind: str, expected: list[float]) -> None:
    rows = rows_of({(6, 1): RUNS[6, 1]}, SWEEP + f'kind = "{kind}"\nx = "round"\n')
    assert (rows["x"].tolist(), rows["mean"].tolist()) == ([1, 2], pytest.approx(expected))


def test_the_cdf_of_delays_is_over_delivered_updates(rows_of: Curve) -> None:
    runs = {(6, 1): run(fractions=[1.0, 0.5, 1.0, None, 1.0])}  # delays of 3, 4, 5, … s
    rows = rows_of(runs, SWEEP + 'kind = "delay"\nmarks = [3.5, 5.5]\n').set_index("x")["mean"]
    assert [rows[3.5], rows[5.5], rows.iloc[-1]] == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_a_model_that_diverged_has_no_loss(rows_of: Curve) -> None:
    diverged = run([0.5, 0.1])
    diverged.rounds["loss"] = [1.0, np.inf]
    rows = rows_of({(6, 1): diverged, (6, 2): run([0.5, 0.6])}, SWEEP + 'kind = "loss"\nx = "radio.prbs"\n')
    assert rows[["mean", "seeds"]].to_numpy().tolist() == [[pytest.approx(1.4), 1]]


def test_marks_are_values_of_the_sweep_or_within_the_curve(draw: DrawFigure) -> None:
    against_key = draw(RUNS, SWEEP + 'kind = "cost"\nx = "radio.prbs"\nmarks = [6, 9, 12.0]\n')
    assert against_key.chart.marks["x"].tolist() == [6, 12]
    timed = {(6, 1): run([0.1, 0.2, 0.3], round_s=3.0)}  # the curve has values at 3, 6 and 9 s
    marks = draw(timed, SWEEP + 'x = "time"\nmarks = [2.0, 4.0, 9.0, 10.0, 12.0]\n').chart.marks
    assert marks[["x", "mean"]].to_numpy().tolist() == [[4.0, 0.1], [9.0, 0.3], [10.0, 0.3]]


values = st.lists(st.floats(0, 10), min_size=1, max_size=20)


@given(values, values)
def test_shares(own: list[float], grid: list[float]) -> None:
    ordered = np.array(sorted(grid))
    for kind, is_counted in (("p_suc", np.greater_equal), ("cost", np.less_equal)):
        shares = [sum(is_counted(v, x) for v in own) / len(own) for x in ordered]
        assert share_beyond(np.array(own), ordered, kind) == pytest.approx(shares)


BANDS = {(6, 1): [0.1, 0.5], (6, 2): [0.2, 0.6], (6, 3): [0.6, 0.8], (12, 1): [0.2, 0.7], (12, 2): [0.3, 0.9]}
T_1, T_2 = 12.7062, 4.30265  # 97.5 % points of Student's t with 1 and 2 degrees of freedom


@pytest.mark.parametrize(
    ("band", "low", "high"),
    [
        ("ci95", 0.3 - T_2 * stdev([0.1, 0.2, 0.6]) / 3**0.5, 0.3 + T_2 * stdev([0.1, 0.2, 0.6]) / 3**0.5),
        ("sd", 0.3 - stdev([0.1, 0.2, 0.6]), 0.3 + stdev([0.1, 0.2, 0.6])),
        ("minmax", 0.1, 0.6),
        ("none", np.nan, np.nan),
    ],
)
def test_bands(rows_of: Curve, band: str, low: float, high: float) -> None:
    rows = line(rows_of({key: run(own) for key, own in BANDS.items()}, f'{SWEEP}band = "{band}"\n'), "Z = 6")
    assert rows.loc[1, ["low", "high"]].tolist() == pytest.approx([low, high], rel=1e-5, nan_ok=True)
    assert rows.loc[1, "std"] == pytest.approx(stdev([0.1, 0.2, 0.6]))
    assert rows_of({(6, 1): run([0.1])}, f'{SWEEP}band = "{band}"\n')["low"].isna().all()  # one seed has no band


@pytest.mark.parametrize("x", ["", 'x = "time"\n', 'x = "radio.prbs"\nlines = "variants"\n'])
def test_the_band_of_a_paired_line(rows_of: Curve, x: str) -> None:
    """The two seeds that both have differ by 0.2 and 0.3 at the end; the line that is compared to has no band."""
    variants = '[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B"\nscheme.kind = "fdpc"\n'
    runs = {({6: "A", 12: "B"}[prbs], 6, seed): run(values) for (prbs, seed), values in BANDS.items()}
    text = f'[sweep]\nseeds = [1, 2, 3]\nradio.prbs = [6]\n[figure]\nband = "ci95"\ncompare_to = "A"\n{x}{variants}'
    last = rows_of(runs, text).groupby("line").tail(1).set_index("line")
    assert np.isnan(last.loc["A", "low"])
    half = T_1 * stdev([0.2, 0.3]) / 2**0.5
    assert last.loc["B", ["low", "high"]].tolist() == pytest.approx([0.8 - half, 0.8 + half], rel=1e-5)
