"""Whether another point fits in memory."""

import os

import pytest

from vefl_sim.core import memory


def test_running_points_will_grow_to_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_mb", lambda: 1000.0)
    assert memory.fits_in_memory(900.0, [(500.0, 500.0)])
    assert memory.fits_in_memory(900.0, [(500.0, 400.0)])
    assert not memory.fits_in_memory(900.0, [(500.0, 300.0)])
    assert memory.fits_in_memory(900.0, [(500.0, 800.0)])  # uses more than expected


def test_a_single_point_always_fits_and_one_that_needs_all_memory_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_mb", lambda: 1000.0)
    assert memory.fits_in_memory(float("inf"), [])
    assert not memory.fits_in_memory(float("inf"), [(1.0, 1.0)])
    assert not memory.fits_in_memory(1.0, [(float("inf"), 500.0)])


def test_any_point_fits_if_the_free_memory_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_mb", lambda: None)
    assert memory.fits_in_memory(1e9, [(1e9, 0.0)])


def test_memory_of_this_process() -> None:
    free = memory.available_mb()
    assert free is None or free > 0
    assert memory.used_mb(os.getpid()) >= 0
    assert memory.used_mb(2**30) == 0


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
