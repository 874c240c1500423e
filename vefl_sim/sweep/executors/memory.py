"""How much memory is there for another point."""

import os
from pathlib import Path


def available_mb() -> float | None:
    """What could be used without swapping, by this machine and by the group that we are in; None if nobody tells."""
    known = [free for free in (_machine_mb(), _group_mb()) if free is not None]
    return min(known, default=None)


def _machine_mb() -> float | None:
    for line in _lines(Path("/proc/meminfo")):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) / 2**10
    return None


def _group_mb() -> float | None:
    """In a container or under a batch system, less may be ours than there is; files that are cached can go."""
    home = Path("/sys/fs/cgroup")
    own = [line.removeprefix("0::/") for line in _lines(Path("/proc/self/cgroup")) if line.startswith("0::/")]
    for folder in [home / path for path in own] + [home]:
        limit, used = _lines(folder / "memory.max"), _lines(folder / "memory.current")
        if limit and used and limit[0].isdigit():
            cached = [line.split()[1] for line in _lines(folder / "memory.stat") if line.startswith("inactive_file ")]
            return (int(limit[0]) - int(used[0]) + int(cached[0] if cached else 0)) / 2**20
    return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def used_mb(process: int) -> float:
    """What a process holds at the moment; 0 if it cannot be told."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def fits_in_memory(needed_mb: float, running: list[tuple[float, float]]) -> bool:
    """Whether another point fits, when those that run, as (needed, used), will have grown to what they need."""
    free = available_mb()
    if free is None or not running:
        return True
    return free - sum(max(0.0, needs - uses) for needs, uses in running) >= needed_mb
