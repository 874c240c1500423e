"""Reports reach the listener of the innermost block, and nobody outside of one."""

from vefl_sim.core.progress import counted, heard_by, report


def test_reports_go_to_the_innermost_listener() -> None:
    outer, inner = [], []
    report("nobody hears this")
    with heard_by(lambda *words: outer.append(words)):
        report("the traffic settles", 40.4, 100.0)
        with heard_by(lambda *words: inner.append(words)):
            report("the picture")
        with heard_by(None):
            report("nor this")
        assert list(counted(range(2500), "points", 2500)) == list(range(2500))
    report("nor that")
    assert outer == [("the traffic settles", "40 of 100 s"), ("points", "1000 of 2500"), ("points", "2000 of 2500")]
    assert inner == [("the picture", "")]
