"""What the benchmarks share: one thread, CPU time, tables, and figures that are measured turn by turn.

Import this file first: numerical libraries read the number of threads when they are loaded.
"""

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))

from script import ROOT, SMALL

import json
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeVar

sys.path[:0] = [str(ROOT), str(ROOT / "models")]
QUICK = SMALL or "--quick" in sys.argv

T = TypeVar("T")
Figures = dict[str, float]
"""Values by their label, which ends with the unit, such as "--help, s"."""
Turn = Callable[[], Figures]
"""Measures the figures of a case once."""


MACHINE = "machine: fixed calculation, ms"


class Skipped(Exception):
    """A case that cannot be measured here; its text is the reason."""


class Case(NamedTuple):
    """Figures that are measured together."""

    name: str
    place: str  # `module:function`; the function prepares the case, which is not measured, and returns its Turn
    about: str

    def prepare(self) -> Turn:
        """Import and call the function of this case; every turn also measures the machine."""
        module, _, function = self.place.partition(":")
        turn: Turn = getattr(import_module(module), function)()
        return lambda: fixed_calculation() | turn()


def progress(text: str) -> None:
    """Show the step that begins on stderr: in place of the last one on a terminal, else below it."""
    sys.stderr.write(f"\r\033[K{text}" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()


def measured(prepare: Mapping[str, Callable[[], Turn]], turns: int) -> tuple[Figures, dict[str, str]]:
    """Medians over the turns, and the reason for each case that was skipped; `prepare`: what is called first, by name.

    Each turn measures every case once before the next turn starts, so that a busy minute disturbs all cases alike.
    """
    ready: dict[str, Turn] = {}
    skipped: dict[str, str] = {}
    values: dict[str, list[float]] = {}
    for name, function in prepare.items():
        progress(f"preparing {name}")
        try:
            ready[name] = function()
        except Skipped as reason:
            skipped[name] = str(reason)
    for number in range(1, turns + 1):
        for name, turn in ready.items():
            progress(f"turn {number} of {turns}: {name}")
            for label, value in turn().items():
                values.setdefault(label, []).append(value)
    progress("")
    return {label: statistics.median(column) for label, column in values.items()}, skipped


def fixed_calculation() -> Figures:
    """Time of some Python and numpy that no change of ours can change: how fast the machine is at the moment."""
    import numpy as np

    matrix = np.ones((300, 300))
    return {MACHINE: 1e3 * timed(lambda: (sum(number % 7 for number in range(300_000)), matrix @ matrix @ matrix))[0]}


def timed(work: Callable[[], T], clock: Callable[[], float] = time.process_time) -> tuple[float, T]:
    """Seconds that the work took, and its result; by default CPU time, which other processes disturb less."""
    began = clock()
    result = work()
    return clock() - began, result


def cpu_s() -> float:
    """CPU seconds of this process and of the child processes it has waited for."""
    used = [resource.getrusage(processes) for processes in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def peak_mib() -> float:
    """Largest memory that this process has used so far (Linux); `ru_maxrss` would count its parent's memory, too."""
    [peak] = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) / 1024


def number(value: float) -> str:
    """Four digits, without an exponent where it can be avoided."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def show(title: str, rows: Mapping[str, Figures]) -> None:
    """Print one row per label and one column per figure."""
    names = list(next(iter(rows.values())))
    first = max(22, *(len(label) + 1 for label in rows))
    print(f"\n{title}\n{'':{first}}" + "".join(f"{name:>{max(12, len(name) + 2)}}" for name in names))
    for label, row in rows.items():
        print(f"{label:{first}}" + "".join(f"{number(row[name]):>{max(12, len(name) + 2)}}" for name in names))


def keep(script: str, results: object) -> None:
    """Write the results of a script beside it, as JSON."""
    Path(script).with_suffix(".json").write_text(json.dumps(results, indent=2, default=float) + "\n")
