"""Traffic that is driven once is the same as traffic that is driven anew, whatever is kept of it."""

import pytest

from vefl_sim import from_tables
from vefl_sim.core.rng import Streams
from vefl_sim.mobility import kept
from vefl_sim.mobility.grid.traffic import IdmTraffic
from vefl_sim.mobility.kept import KeptTraffic

EXPERIMENT = from_tables(
    {"run": {"name": "kept", "rounds": 1}, "roads": {"blocks": 4, "block_m": 60.0},
     "radio": {"coverage_radius_m": 100.0}, "mobility": {"step_s": 0.5},
     "traffic": {"arrivals_per_s": 1.0, "warm_start": False}}
)  # fmt: skip
STEPS = 150


def traffic() -> IdmTraffic:
    return IdmTraffic(EXPERIMENT, Streams(1))


@pytest.mark.parametrize("most_bytes", [1 << 28, 60_000, 0])
def test_every_drive_has_the_scenes_of_the_source(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    """Also two at once, before, at and after the end of what is kept."""
    monkeypatch.setattr(kept, "MAX_BYTES", most_bytes)
    source, shared = traffic(), KeptTraffic(traffic())
    first, second = shared(), shared()
    assert first.scene().same_as(source.scene())
    for step in range(STEPS):
        scene = source.advance()
        assert first.advance().same_as(scene)
        if step % 2:  # now behind, now level with the other one
            second.advance()
            assert second.advance().same_as(scene)
    assert scene.vehicle.size > 10
    assert shared().scene().time_ns == 0


def test_the_source_is_driven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source, calls = traffic(), []
    advance = source.advance
    monkeypatch.setattr(source, "advance", lambda: calls.append(1) or advance())
    shared = KeptTraffic(source)
    for drive in (shared(), shared(), shared()):
        for _ in range(20):
            drive.advance()
    assert len(calls) == 20
