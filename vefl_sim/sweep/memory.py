"""How much memory is there for another point."""

import os
from pathlib import Path


def available_mb() -> float | None:
    """What could be used without swapping; None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) / 2**10
    except (OSError, ValueError, IndexError):
        pass
    return None


def used_mb(process: int) -> float:
    """What a process holds at the moment; 0 if it cannot be told."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def has_room(needed_mb: float, running: list[tuple[float, float]]) -> bool:
    """Whether another point fits, when those that run, as (needed, used), will have grown to what they need."""
    free = available_mb()
    if free is None or not running:
        return True
    return free - sum(max(0.0, needs - uses) for needs, uses in running) >= needed_mb
