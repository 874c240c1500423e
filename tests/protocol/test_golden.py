"""Three CVs, two rounds, worked out by hand on the mean channel.

Radio: line of sight, no shadowing, no fading, one antenna, Z = 2 pRBs of 360 kHz, κ = 0.5 ms, P_max = 0.2 W. Noise is
−174 + 5 dBm/Hz over 360 kHz: 4.532e-15 W. Path loss at 3.5 GHz from an antenna 23.5 m above the CVs:
    100 m: 28 + 22·lg 102.72 + 20·lg 3.5 = 83.137 dB, SNR 2.143e5, 17.709 bit/s/Hz · 360 kHz · 13/14 = 5.920 Mbit/s,
           2959.9 bit per slot and pRB;
    190 m: 89.086 dB, SNR 5.446e4, 15.733 bit/s/Hz, 2629.6 bit per slot;
    480 m: 97.882 dB, SNR 7186, 12.811 bit/s/Hz, 2141.3 bit per slot.
An update has 1000 parameters of 33 bit: 33,000 bit. An iteration takes 20 samples · 100 pixels · 32 bit · 1562.5 cycles
per bit = 1e8 cycles; every CV does l_max = 10 of them, at the lowest frequency
that fits into T.

Round 1, 0 to 1 s (2000 slots), V = 3, z̃ = 2/3:
    CV 1, 100 m: t̄_tx = ⌈33000 / (2959.9 · 2/3)⌉ = 17 slots, T = 1983 slots = 0.9915 s, η = 1e9/0.9915 = 1.00857 GHz,
        e_cmp = 1e9 cycles · 1e-28 · η² = 0.101722 J. Served from slot 1983 on, 33000 / 2959.9 = 11.1: 12 slots,
        received at slot 1995 = 0.9975 s. e_tx = 12 · 0.5 ms · 0.2 W = 1.2 mJ, paid 10·0.102922 + 10 = 11.0292.
    CV 2, 100 m: the same, on the other of the two pRBs.
    CV 3, 480 m: t̄_tx = ⌈33000 / (2141.3 · 2/3)⌉ = 24, T = 0.988 s. The server assumes 20 m/s at most, so the bound
        is 20 m / 20 m/s = 1 s, but it drives at 30 m/s and leaves at 0.66667 s, while training: it has used
        0.66667/0.988 of its energy.
Round 2, 1 to 2 s, V = 2, z̃ = 1:
    CV 1, 100 m: t̄_tx = ⌈11.1⌉ = 12, T = 1988 slots = 0.994 s, served from slot 3988 on, received at slot 4000: at
        the very end of the round, which still counts.
    CV 2, 100 m when ordered, but driving off at 100 m/s. Positions are sampled every 0.1 s, so at 1.994 s it has the
        channel of 1.9 s, 190 m out: 12 slots carry 31,555 bit, and the round ends with 1,445 bit left.
"""

import os
from pathlib import Path

import pytest

from vefl_sim import Run
from vefl_sim.analysis.events import event_lines

GOLDEN = Path(__file__).parent / "golden" / "three_cars.txt"

EXPERIMENT = {
    "run": {"name": "three-cars", "rounds": 2},
    "mobility": {"kind": "tests.scripted:ThreeCars", "max_speed_mps": 20.0},
    "radio": {
        "prbs": 2, "prb_bandwidth_hz": 360e3, "antennas": 1,
        "fading": "none", "shadowing": "none", "los": "always",
    },
    "rat": {"method": "equal"},
    "sla": {"cycles_per_bit": [1562.5, 1562.5], "price_per_joule": [10.0, 10.0], "base_fee": [10.0, 10.0]},
    "vefl": {"round_s": 1.0, "max_local_iterations": 10},
    "scheme": {"selected": 3},
    "data": {"kind": "tests.scripted:sixty_samples", "min_samples": 20},
    "model": {"factory": "tests.scripted:thousand_weights"},
    "learning": {"kind": "none"},
    "trace": {"slots": "full"},
}  # fmt: skip


@pytest.fixture
def run(golden: Run) -> Run:
    return golden


def outcome(run: Run, round: int, cv: int) -> dict:
    rows = run.vehicles.query(f"round == {round} and cv == {cv}")
    return rows.iloc[0].to_dict()


def test_round_one_delivers_the_two_that_stay(run: Run) -> None:
    for cv in (1, 2):
        row = outcome(run, 1, cv)
        assert row["state"] == "delivered"
        assert (row["iterations"], row["worst_slots"], row["tx_slots"]) == (10, 17, 12)
        assert row["train_ns"] == 991_500_000
        assert row["cpu_hz"] == pytest.approx(1e9 / 0.9915)
        assert row["compute_j"] == pytest.approx(0.101722, abs=1e-6)
        assert row["transmit_j"] == pytest.approx(0.0012)
        assert row["paid"] == pytest.approx(11.0292, abs=1e-4)
    received = run.events.query("kind == 'upload_received' and round == 1")
    assert received["time_ns"].tolist() == [997_500_000] * 2


def test_the_one_that_leaves_is_lost_to_coverage(run: Run) -> None:
    row = outcome(run, 1, 3)
    assert (row["state"], row["reason"], row["worst_slots"]) == ("lost", "coverage_left", 24)
    assert row["compute_j"] == pytest.approx(1e-19 * (1e9 / 0.988) ** 2 * (2 / 3) / 0.988, rel=1e-6)
    assert row["transmit_j"] == 0.0
    [event] = run.events.query("kind == 'coverage_left'").to_dict("records")
    assert event["time_ns"] == pytest.approx(2e9 / 3, abs=1)
    assert event["distance_m"] == pytest.approx(500.0)


def test_an_upload_that_ends_with_the_round_counts(run: Run) -> None:
    row = outcome(run, 2, 1)
    assert (row["state"], row["worst_slots"], row["tx_slots"], row["train_ns"]) == ("delivered", 12, 12, 994_000_000)
    received = run.events.query("kind == 'upload_received' and round == 2")
    assert received["time_ns"].tolist() == [2_000_000_000]


def test_the_one_that_drives_off_is_lost_to_the_end_of_the_round(run: Run) -> None:
    row = outcome(run, 2, 2)
    assert (row["state"], row["reason"], row["tx_slots"]) == ("lost", "round_ended", 12)
    [event] = run.events.query("kind == 'update_lost' and round == 2").to_dict("records")
    assert event["bits_left"] == pytest.approx(1445, abs=2)
    assert row["delivered_fraction"] == pytest.approx(1 - event["bits_left"] / 33_000)


def test_slots_are_used_only_while_bits_are_queued(run: Run) -> None:
    slots = run.table("slots")
    assert sorted(slots["slot"].unique()) == [*range(1983, 1995), *range(3988, 4000)]
    assert (slots.groupby("slot")["prbs"].sum() == 2).all()


def test_the_rounds_table(run: Run) -> None:
    rounds = run.rounds
    assert rounds["in_coverage"].tolist() == [3, 2]
    assert rounds["ordered"].tolist() == [3, 2]
    assert rounds["delivered"].tolist() == [2, 1]
    assert rounds["weight_sum"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert rounds["cost"].tolist() == pytest.approx(run.vehicles.groupby("round")["paid"].sum().tolist())


def test_the_whole_trace(run: Run) -> None:
    lines = "\n".join(event_lines(run.events)) + "\n"
    if os.environ.get("VEFL_SIM_UPDATE"):
        GOLDEN.write_text(lines)
    assert lines == GOLDEN.read_text()
