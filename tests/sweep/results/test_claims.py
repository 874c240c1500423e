"""The rules by which statements of the paper are judged, on made-up results: each verdict can come out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.sweep.results.stored import ROOT, measurements, paper_module, paper_sweep
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.points import Sweep

claims = paper_module("claims")
FOLDER = ROOT / "experiments" / "paper"
LIMITS = claims.Limits(0.02, 0.04, "made up")
V = claims.Verdict


def claim(rule: str = "near", measure: str = "accuracy", **fields: Any) -> Any:
    return claims.Claim("fig15", "something", rule, measure, LIMITS, **fields)


def runs(*accuracies: list[float | None]) -> dict[int, Any]:
    """One run per list of accuracies, by seed."""
    return {seed: measurements(own) for seed, own in enumerate(accuracies, start=1)}


def flat(accuracy: float, seeds: int = 2) -> dict[int, Any]:
    """Runs that end at this accuracy."""
    return runs(*[[0.1, accuracy]] * seeds)


def verdict(made: Any, *lines: Mapping[int, Any]) -> Any:
    return claims.judge(made, lines).verdict


@pytest.mark.parametrize(
    ("rule", "ours", "expected"),
    [
        ("near", (0.52,), V.REPRODUCED), ("near", (0.47,), V.TREND), ("near", (0.55,), V.NOT), ("near", (0.44,), V.NOT),
        ("at most", (0.4,), V.REPRODUCED), ("at most", (0.53,), V.TREND), ("at most", (0.6,), V.NOT),
        ("at least", (0.6,), V.REPRODUCED), ("at least", (0.47,), V.TREND), ("at least", (0.4,), V.NOT),
        ("alike", (0.6, 0.61, 0.62), V.REPRODUCED), ("alike", (0.6, 0.63), V.TREND), ("alike", (0.6, 0.7), V.NOT),
        ("no better", (0.5, 0.6), V.REPRODUCED), ("no better", (0.63, 0.6), V.TREND),
        ("no better", (0.7, 0.8, 0.6), V.NOT),
        ("falling", (0.6, 0.5, 0.4), V.REPRODUCED), ("falling", (0.6, 0.7, 0.4), V.TREND),
        ("falling", (0.4, 0.5), V.NOT), ("falling", (0.6, 0.59, 0.5), V.TREND), ("falling", (0.6, 0.59), V.NOT),
        ("above", (0.6, 0.5, 0.1), V.REPRODUCED), ("above", (0.6, 0.59), V.TREND), ("above", (0.6, 0.5, 0.7), V.NOT),
    ],
)  # fmt: skip
def test_rules(rule: str, ours: tuple[float, ...], expected: str) -> None:
    paper = [0.5] * len(ours) if rule in ("near", "at most", "at least") else []
    made = claim(rule, "final accuracy", paper=paper)
    assert verdict(made, *map(flat, ours)) == expected


@pytest.mark.parametrize(("rule", "other"), [("above", 0.9), ("best above", 0.1)])
def test_a_lead_must_be_half_of_the_papers(rule: str, other: float) -> None:
    made = claim(rule, "final accuracy", paper=[0.2], leaders=2)
    assert verdict(made, flat(other), flat(0.7), flat(0.6), flat(0.5)) == V.REPRODUCED
    assert verdict(made, flat(other), flat(0.69), flat(0.6), flat(0.5)) == V.TREND
    assert verdict(made, flat(min(other, 0.59)), flat(0.59), flat(0.6), flat(0.5)) == V.NOT


def test_only_seeds_of_all_lines_count_and_some_measures_need_five() -> None:
    made = claim("at most", "failing seeds", at=[2])
    assert verdict(made, flat(0.5, seeds=4)) == V.NOT_RUN
    assert verdict(made, flat(0.8, seeds=5)) == V.REPRODUCED
    assert verdict(made, flat(0.5, seeds=5)) == V.NOT
    one = claims.judge(claim("alike", "final accuracy"), [flat(0.5, seeds=3), flat(0.5, seeds=1)])
    assert (one.verdict, one.seeds) == (V.NOT_RUN, 1)


def value(measure: str, line: Mapping[int, Any], at: float = 0.0) -> float:
    return float(claims.MEASURES[measure]([*line.values()], at))


def test_measures_of_accuracy() -> None:
    line = runs([0.2, None, 0.8, 0.6], [0.4, None, 0.6, 0.8])
    assert value("accuracy", line, 1) == pytest.approx(0.3)
    assert value("accuracy", line, 2.9) == pytest.approx(0.7)  # the nearest evaluated round
    assert value("final accuracy", line) == pytest.approx(0.7)
    assert value("late accuracy", line, 3) == pytest.approx(0.7)
    assert value("best accuracy", line) == pytest.approx(0.7)  # of the mean curve
    assert value("best round", line) == 3
    assert value("highest accuracy of a seed", line) == 0.8
    assert value("deviation", line, 3) == pytest.approx(np.std([0.6, 0.8], ddof=1))
    assert value("swing", line, 3) == pytest.approx(0.1)
    assert value("failures after", line, 2) == 0.5
    assert value("failing seeds", line, 4) == 0.5


def test_measures_of_the_network() -> None:
    line = runs([None] * 4, [None] * 4)
    for run in line.values():
        run.rounds["cost"] = [100.0, 699.9, 700.0, 900.0]
        run.rounds["p_suc"] = pd.array([1.0, 0.95, None, 0.5], dtype="Float64")
        run.rounds["p_suc_with_ineligible"] = pd.array([0.9, 0.8, 0.0, 0.4], dtype="Float64")
        run.selects = False
    assert value("cost below", line, 700) == 0.5
    assert value("total cost", line) == pytest.approx(2399.9)
    assert value("sojourn below", line, 5.0) == pytest.approx(2 / 8)  # 0 and 2.5 of eight
    assert value("p_suc at least", line, 0.9) == 0.25
    for run in line.values():
        run.selects = True
    assert value("p_suc at least", line, 0.9) == pytest.approx(2 / 3)


def sweeps() -> dict[str, Sweep]:
    return {name: paper_sweep(name) for name in {one.figure for one in all_claims()}}


def all_claims() -> list[Any]:
    found: list[Any] = claims.read_claims(FOLDER / "claims.toml")
    return found


def test_every_claim_of_the_paper_names_lines_that_exist() -> None:
    by_name, runs_by_seed = sweeps(), runs(*[[0.5] * 400] * 5)
    for run in runs_by_seed.values():
        run.rounds["p_suc_with_ineligible"] = run.rounds["p_suc"]
    rows = [*claims.judged(all_claims(), by_name, lambda point: runs_by_seed[point.seed])]
    assert {one.verdict for _, judgements in rows for one in judgements[:1]} <= {V.REPRODUCED, V.TREND, V.NOT}
    assert claims.table(rows).count("\n") == len(rows) + 1


def test_both_readings_are_counted() -> None:
    """FDPC has two readings, PDPC one, and AFA-CD without constraints is run in the first only."""
    made = [claim(of=["FDPC"], at=[2], paper=[0.5]), claim(of=["PDPC"], at=[2], paper=[0.5])]
    made += [claim(of=["AFA-CD, unconstrained"], at=[2], paper=[0.5], readings=["as in the paper"])]
    made += [claim(of=["PDPC"], at=[2], paper=[0.9], fitted=True)]
    good, bad = flat(0.5, seeds=5), flat(0.1, seeds=5)
    rows = [*claims.judged(made, sweeps(), lambda p: (bad if "fair" in p.label else good)[p.seed])]
    verdicts = [[one.verdict for one in judgements] for _, judgements in rows]
    assert verdicts == [[V.REPRODUCED, V.NOT], [V.REPRODUCED, V.SAME], [V.REPRODUCED, V.NO_LINE], [V.NOT, V.SAME]]
    assert claims.summary(rows) == (
        "Of 4 statements of the paper's evaluation, 1 were used to choose our world or the reading. Of the other 3, "
        'read "as in the paper": 3 reproduced; read "fair": 1 reproduced, 1 not reproduced.'
    )


def test_a_line_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadInput, match=r'"something" names a line that fig15 does not have'):
        [*claims.judged([claim(of=["FDCP"], at=[2], paper=[0.5])], sweeps(), lambda point: None)]


def test_without_results_or_with_stale_ones_nothing_is_judged() -> None:
    stale = flat(0.5, seeds=5)
    for run in stale.values():
        run.stale = True
    for find in (lambda point: None, lambda point: stale[point.seed]):
        (row,) = claims.judged([claim(of=["PDPC"], at=[2], paper=[0.5])], sweeps(), find)
        assert row[1][0].verdict == V.NOT_RUN


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("", "not TOML =", r"claims.toml cannot be read .*: restore it\.$"),
        ("paper = [0.13, 0.28]", "paper = [0.13]", "needs a number of the paper for each line and round"),
        ('rule = "near"', 'rule = "far"', "names far, which is no rule or measure"),
    ],
)
def test_a_damaged_file_gets_one_sentence(tmp_path, before: str, after: str, message: str) -> None:
    text = (FOLDER / "claims.toml").read_text()
    (tmp_path / "claims.toml").write_text(text.replace(before, after, 1) if before else after)
    with pytest.raises(BadInput, match=message):
        claims.read_claims(tmp_path / "claims.toml")


def test_the_pages_have_a_place_for_the_verdicts() -> None:
    for page in ("docs/reproduction.md", "README.md"):
        text = (ROOT / page).read_text()
        assert text.count("<!-- results of claims -->") == 1
        assert text.count("<!-- results of ") == text.count("<!-- end of results -->")
    for made in all_claims():
        assert made.says in (ROOT / "docs" / "reproduction.md").read_text()
