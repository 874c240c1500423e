"""The number of events of a run: tests both speed and behaviour (slots are run only while bits are queued)."""

import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.scripted import ScriptedCars
from vefl_sim import from_tables, simulate, with_settings
from vefl_sim.protocol.instants import NanosecondEnvironment


class Elsewhere(ScriptedCars):
    """One car that is never in coverage."""

    paths = (lambda s: (900.0, 0.0),)


def test_idle_time_costs_no_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 s have 200,000 slots, but only 1000 mobility steps and 100 rounds."""
    idle = with_settings(
        from_tables(EXPERIMENT), "mobility.kind=tests.protocol.test_events:Elsewhere", "run.rounds=100"
    )
    events, step = 0, NanosecondEnvironment.step

    def counted(env: NanosecondEnvironment) -> None:
        nonlocal events
        events += 1
        step(env)

    monkeypatch.setattr(NanosecondEnvironment, "step", counted)
    run = simulate(idle, out=None)
    assert run.rounds["in_coverage"].sum() == 0
    assert set(run.rounds["plan_status"]) == {"nobody_in_coverage"}
    steps, per_round, overhead = 1000, 3, 10
    assert events <= steps + 100 * per_round + overhead
