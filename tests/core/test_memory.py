"""Whether another point fits in memory."""

import pytest

from vefl_sim.core import memory


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
