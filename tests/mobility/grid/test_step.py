"""The compiled step of all vehicles against its plain twin."""

import numpy as np
import pytest

from tests.mobility.grid.plain_step import PlainStep, vehicles_of
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RoadsTable, RunTable, TrafficTable
from vefl_sim.mobility.grid.step import step
from vefl_sim.mobility.grid.traffic import IdmTraffic

COLUMNS = ("position_m", "speed_mps", "limit_m", "cleared", "asked_step")
CASES = [
    # seed, speed, step, vehicles, signals, spread, through
    (1, 20.12, 0.1, 35.0, "fixed", 0.0, 0.0),
    (2, 20.12, 0.1, 120.0, "fixed", 0.3, 0.5),
    (3, 26.82, 0.5, 60.0, "none", 0.0, 0.0),
    (4, 11.18, 0.25, 120.0, "none", 0.5, 1.0),
    (5, 8.0, 1.0, 80.0, "fixed", 0.9, 0.2),
]


@pytest.mark.parametrize(("seed", "speed", "dt", "vehicles", "signals", "spread", "through"), CASES)
def test_a_step_is_that_of_its_plain_twin(seed, speed, dt, vehicles, signals, spread, through):
    experiment = Experiment(
        run=RunTable(name="x"),
        roads=RoadsTable(signals=signals, green_s=8.0),
        mobility=MobilityTable(max_speed_mps=speed, step_s=dt, driver_spread=spread),
        traffic=TrafficTable(mean_in_coverage=vehicles, through_share=through),
    )
    traffic = IdmTraffic(experiment, Streams(seed))
    streets, moved = traffic.streets, 0.0
    for number in range(60):
        traffic.advance()
        if number % 6:
            continue
        fleet = streets.fleet._replace(**{name: getattr(streets.fleet, name).copy() for name in COLUMNS})
        inputs = fleet, streets._ways, streets.signals, streets.rules, streets._now
        plain = vehicles_of(fleet)
        PlainStep(plain, *inputs[1:]).run()
        start = fleet.position_m.copy()
        over = step(*inputs)
        assert over == (fleet.position_m >= 128.0).any()
        for name in COLUMNS:
            expected = np.array([vehicle[name] for vehicle in plain])
            np.testing.assert_allclose(getattr(fleet, name), expected, atol=1e-9, rtol=0, err_msg=name)
        moved += (fleet.position_m - start).sum()
    assert moved > 10
