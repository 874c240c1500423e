"""How many cores and how much memory there are, how busy they are, and whether something fits into the memory."""

import os
from pathlib import Path

from vefl_sim.core.errors import BadInput


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def slowdown(processes: int) -> float:
    """How many times longer than alone so many new processes take, as others use the cores as well; at least 1."""
    try:
        others = os.getloadavg()[0]
    except (AttributeError, OSError):  # not on every system
        others = 0.0
    return max(1.0, (others + processes) / cores())


def available_mb() -> float | None:
    """Memory that can be used without swapping, within the limits of machine and control group; None if unknown."""
    limits = [free for free in (_machine_mb(), _cgroup_mb()) if free is not None]
    return min(limits, default=None)


def require_memory(needed_bytes: float, what: str, advice: str) -> None:
    """Refuse what needs more memory than there is, before it is asked for: the system would end the process."""
    free = available_mb()
    if free is not None and needed_bytes > free * 2**20:
        raise BadInput(
            f"{what} need {needed_bytes / 2**30:.1f} GiB of memory, and {free / 2**10:.1f} GiB are free: {advice}."
        )


def _machine_mb() -> float | None:
    for line in _lines(Path("/proc/meminfo")):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) / 2**10
    return None


def _cgroup_mb() -> float | None:
    """Free memory of the control group of a container or batch job; cached files count as free."""
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
    """Memory that a process uses now; 0 if unknown."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def fits_in_memory(needed_mb: float, running: list[tuple[float, float]]) -> bool:
    """Whether another point fits once the running ones, given as (needed, used), use all that they need.

    A point alone always fits.
    """
    free = available_mb()
    if free is None or not running:
        return True
    return free - sum(max(0.0, needed - used) for needed, used in running) >= needed_mb
