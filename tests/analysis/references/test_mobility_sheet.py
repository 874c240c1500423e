import pytest

from vefl_sim.analysis.references.mobility import default_traffic, mobility_sheet


def test_every_line_of_the_sheet_agrees():
    checks = list(mobility_sheet())
    assert len(checks) > 20
    assert [check.what for check in checks if not check.passed] == []


def test_default_traffic_at_the_default_speed():
    survey = default_traffic(20.12, seed=1, duration_s=100.0)
    assert 25 < survey.in_coverage < 45
    assert 35 < survey.unique_cvs < 80
    assert 5 < survey.speed_mps < 9
    assert survey.share_below(5.0) == pytest.approx(0.3, abs=0.1)
