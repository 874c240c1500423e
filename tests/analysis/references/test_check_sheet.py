from vefl_sim.analysis.references.radio import radio_sheet
from vefl_sim.analysis.references.sheet import Check


def test_every_line_of_the_sheet_agrees() -> None:
    checks = list(radio_sheet())
    assert len(checks) > 30
    assert [check.what for check in checks if not check.passed] == []


def test_a_difference_is_detected() -> None:
    assert not Check("x", "y", reference=1.0, ours=1.1, tolerance=0.05, unit="dB").passed
