"""The number of events of a run: tests both speed and behaviour (slots are run only while bits are queued)."""

import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.scripted import ScriptedCars
from vefl_sim import from_tables, simulate, with_settings
from vefl_sim.protocol.instants import NanosecondEnvironment


class Elsewhere(ScriptedCars):
    """One car that is never in coverage."""

    paths = (lambda s: (900.0, 0.0),)


@pytest.fixture
def event_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []

    class CountingEnvironment(NanosecondEnvironment):
        def step(self) -> None:
            counts[-1] += 1
            super().step()

    def begin(start_ns: int) -> CountingEnvironment:
        counts.append(0)
        return CountingEnvironment(start_ns)

    monkeypatch.setattr("vefl_sim.simulation.simulation.NanosecondEnvironment", begin)
    return counts


def test_idle_time_costs_no_slots(event_counts: list[int], tmp_path) -> None:
    """100 s have 200,000 slots, but only 1000 mobility steps and 100 rounds."""
    idle = with_settings(
        from_tables(EXPERIMENT), "mobility.kind=tests.protocol.test_events:Elsewhere", "run.rounds=100"
    )
    run = simulate(idle, out=tmp_path)
    assert run.rounds["in_coverage"].sum() == 0
    assert set(run.rounds["plan_status"]) == {"nobody_in_coverage"}
    steps, per_round, overhead = 1000, 3, 10
    assert event_counts[0] <= steps + 100 * per_round + overhead


def test_more_slots_need_no_more_events(event_counts: list[int], tmp_path) -> None:
    """With half the payload the golden run has 12 slots instead of 24, but the same number of bursts."""
    golden = from_tables(EXPERIMENT)
    long_run = simulate(golden, out=tmp_path)
    short_run = simulate(with_settings(golden, "model.float_bits=15"), out=tmp_path)
    slots = [run.table("slots")["slot"].nunique() for run in (long_run, short_run)]
    assert slots == [24, 12]
    assert abs(event_counts[0] - event_counts[1]) <= 4  # events of the one update that is lost
