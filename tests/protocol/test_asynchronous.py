"""Three CVs without rounds, two windows of a second, worked out by hand on the mean channel of test_golden.

All CPUs run at 1 GHz, an iteration takes 0.1 s and 0.01 J; l_max = 4, so 0.4 s and 0.04 J. The server aggregates
every second update. An order costs at most 10·(0.04 J + e_tx) + 10, about 10.4. mac.start = "ready".

Window 1, budget 60. CV 1 (100 m) and CV 2 (190 m) request an order at 0 s, V = 2, a share of 30 each.
    0.4 s: both have trained version 0. One pRB each: 2959.9 and 2629.6 bit per slot, 12 and 13 slots.
    0.4060 s: CV 1 has delivered, requests again and gets version 0 once more: there is only one update so far.
    0.4065 s: CV 2 has delivered, the server steps to version 1, CV 2 gets that. Now two versions are in training.
    0.6 s: CV 3 enters coverage. At the border its sojourn bound is 0, so it has no time to train; it requests again
        after 0.25 s.
    0.8060 s: CV 1 sends again, for a slot alone, on both pRBs with half the power on each: SNR 1.0712e5, 16.709
        bit/s/Hz, 5585.6 bit. The other 27,414.4 take 10 slots on one pRB: received at 0.8115 s. Its orders have
        used 20.8 of its 30, and the rest is below its fee of 10: it waits for the next window.
    0.8065 s: CV 2 starts; 10 slots beside CV 1 carry 26,296 bit, then it has both pRBs: 14.733 bit/s/Hz, 4925 bit per
        slot. 6,704 bit are left: two slots, received at 0.8125 s. The server steps to version 2; the update of CV 1
        was trained from version 0, so its staleness is 1. CV 2 waits, too.
    0.85 s: CV 3, 492.5 m away, requests again. Its bound is 7.5 m / 20 m/s = 0.375 s, 750 slots. V = 3, z̃ = 2/3; the
        channel is that of 0.8 s, 494 m: 98.154 dB, SNR 6750, 12.721 bit/s/Hz, 2126.2 bit per slot, t̄_tx = 24.
        T = 363 ms: three iterations. The others have used 41.6 of 60; the rest is more than it needs.
Window 2, from 1 s, budget 60. V = 3, a share of 20 each: one order.
    1.0 s: CV 1 and CV 2 request an order, and get version 2.
    1.15 s: CV 3 has trained. Its channel is that of 1.1 s, 485 m: 97.979 dB, SNR 7028; on both pRBs 11.779 bit/s/Hz,
        3937.7 bit per slot: 9 slots, received at 1.1545 s. This order belongs to window 1. CV 3 requests again, gets
        version 2.
    1.4060 s: CV 1 has delivered; with this update and that of CV 3 the server steps to version 3.
    1.4065 s: CV 2 has delivered.
    1.5545 s: CV 3 has trained. At 1.5 s it is 473 m away: 97.740 dB, SNR 7425; 11.859 bit/s/Hz, 3964.2 bit per slot,
        9 slots. At 1.559 s the server steps to version 4 with two updates that were trained from version 2, so their
        staleness is 1.
    After that the share of every CV is below its fee.
"""

import os
from pathlib import Path

import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, simulate
from vefl_sim.analysis.events import event_lines

GOLDEN = Path(__file__).parent / "golden" / "one_comes_in.txt"
THREE = EXPERIMENT | {
    "run": {"name": "one-comes-in", "rounds": 2},
    "mobility": {"kind": "tests.scripted:OneComesIn", "max_speed_mps": 20.0},
    "mac": {"start": "ready"},
    "sla": EXPERIMENT["sla"] | {"cpu_max_hz": [1e9, 1e9]},
    "vefl": {"round_s": 1.0, "budget": 60.0, "max_local_iterations": 4},
    "server": {"retry_s": 0.25},
    "scheme": {"kind": "afa-cd"},
    "aggregation": {"buffer": 2},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(from_tables(THREE), out=tmp_path_factory.mktemp("golden"))


def test_tables_have_a_row_per_window(run: Run) -> None:
    rounds, vehicles = run.rounds, run.vehicles
    assert rounds["in_coverage"].tolist() == [2, 3]
    assert rounds["ordered"].tolist() == rounds["delivered"].tolist() == [5, 3]
    assert rounds["steps"].tolist() == [2, 2]
    assert rounds["staleness"].tolist() == [0.25, 0.5]
    assert vehicles["cv"].tolist() == [1, 2, 1, 2, 3, 1, 2, 3]
    assert vehicles["version"].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert vehicles["iterations"].tolist() == [4, 4, 4, 4, 3, 4, 4, 4]
    assert vehicles["tx_slots"].tolist() == [12, 13, 11, 12, 9, 12, 13, 9]
    assert vehicles["worst_slots"].tolist()[:5] == [12, 13, 12, 13, 24]
    assert rounds["cost"].tolist() == pytest.approx(vehicles.groupby("round")["paid"].sum().tolist())


def test_the_whole_trace(run: Run) -> None:
    lines = "\n".join(event_lines(run.events)) + "\n"
    if os.environ.get("VEFL_SIM_UPDATE"):
        GOLDEN.write_text(lines)
    assert lines == GOLDEN.read_text()
