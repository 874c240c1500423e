"""How many events a run costs: a speed test that is also a test of behaviour (slots only while bits are queued)."""

import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.scripted import ScriptedCars
from vefl_sim import from_tables, simulate, with_settings
from vefl_sim.protocol.events import NanosecondEnvironment


class Elsewhere(ScriptedCars):
    """One car that is never in coverage."""

    paths = (lambda s: (900.0, 0.0),)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []

    class CountingEnvironment(NanosecondEnvironment):
        def step(self) -> None:
            counts[-1] += 1
            super().step()

    def begin(start_ns: int) -> CountingEnvironment:
        counts.append(0)
        return CountingEnvironment(start_ns)

    monkeypatch.setattr("vefl_sim.simulation.session.NanosecondEnvironment", begin)
    return counts


def test_idle_time_costs_no_slots(counted: list[int], tmp_path) -> None:
    """100 s are 200,000 slots, but only 1000 mobility steps and 100 rounds."""
    idle = with_settings(
        from_tables(EXPERIMENT), "mobility.kind=tests.protocol.test_events:Elsewhere", "run.rounds=100"
    )
    run = simulate(idle, out=tmp_path)
    assert run.rounds["in_coverage"].sum() == 0
    assert set(run.rounds["plan_status"]) == {"nobody_in_coverage"}
    steps, per_round, overhead = 1000, 3, 10
    assert counted[0] <= steps + 100 * per_round + overhead


def test_more_slots_are_no_more_events(counted: list[int], tmp_path) -> None:
    """The golden run with half the payload saves 12 of its 24 slots, but slots come in bursts."""
    golden = from_tables(EXPERIMENT)
    long_run = simulate(golden, out=tmp_path)
    short_run = simulate(with_settings(golden, "model.float_bits=15"), out=tmp_path)
    slots = [run.table("slots")["slot"].nunique() for run in (long_run, short_run)]
    assert slots == [24, 12]
    assert abs(counted[0] - counted[1]) <= 4  # what the one lost update costs
