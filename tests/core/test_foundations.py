"""The clock, random streams, memory, and the progress that long work reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core import memory
from vefl_sim.core.clock import SlotGrid, to_ns, to_s
from vefl_sim.core.progress import counted, heard_by, report
from vefl_sim.core.rng import Streams


@given(st.integers(0, 10**13), st.integers(0, 4))
def test_floor_and_ceil_enclose_the_instant(time_ns: int, numerology: int) -> None:
    grid = SlotGrid.of_numerology(numerology)
    assert grid.slot_ns * 2**numerology == 1_000_000
    assert grid.start_ns(grid.floor(time_ns)) <= time_ns < grid.start_ns(grid.floor(time_ns) + 1)
    assert grid.start_ns(grid.ceil(time_ns)) >= time_ns > grid.start_ns(grid.ceil(time_ns) - 1)


@given(st.integers(0, 10**13))
def test_seconds_convert_back_to_the_same_nanoseconds(time_ns: int) -> None:
    assert to_ns(to_s(time_ns)) == time_ns


def test_seed_name_and_index_all_matter() -> None:
    draws = [
        float(streams.generator(name, *index).random())
        for streams in (Streams(1), Streams(2))
        for name in ("traffic", "slas")
        for index in ((), (0,), (1,), (0, 1))
    ]
    assert len(set(draws)) == len(draws)
    assert Streams(1).generator("traffic", 0, 1).random() in draws


def test_philox_keys_have_128_bits_and_differ_by_name() -> None:
    keys = {Streams(seed).philox_key(name) for seed in range(20) for name in ("fading", "other")}
    assert len(keys) == 40
    assert max(keys).bit_length() > 120


@pytest.mark.parametrize(
    ("free", "needed", "running", "fits"),
    [
        (1000.0, 900.0, [(500.0, 400.0)], True),
        (1000.0, 900.0, [(500.0, 300.0)], False),  # a running point will grow to what it needs
        (1000.0, 900.0, [(500.0, 800.0)], True),  # it uses more than expected
        (1000.0, float("inf"), [], True),  # a single point always fits
        (1000.0, 1.0, [(float("inf"), 500.0)], False),
        (None, 1e9, [(1e9, 0.0)], True),
    ],
)
def test_whether_another_point_fits(free, needed, running, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_mb", lambda: free)
    assert memory.fits_in_memory(needed, running) == fits


def test_the_limit_of_a_control_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": ["MemAvailable:  8192000 kB"],
        "/proc/self/cgroup": ["0::/job"],
        "/sys/fs/cgroup/job/memory.max": [str(1000 * 2**20)],
        "/sys/fs/cgroup/job/memory.current": [str(700 * 2**20)],
        "/sys/fs/cgroup/job/memory.stat": ["anon 1", f"inactive_file {100 * 2**20}"],
    }
    monkeypatch.setattr(memory, "_lines", lambda file: files.get(str(file), []))
    assert memory.available_mb() == 400
    files["/sys/fs/cgroup/job/memory.max"] = ["max"]
    assert memory.available_mb() == 8000


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
