"""Figures of earlier runs of the benchmarks: a baseline per machine, and one line of history per run."""

from harness import MACHINE, ROOT, Figures

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ALLOWED = 1.3
"""A figure that is worse than its baseline by more than this factor is a regression."""
MORE_IS_BETTER = ("× real time", "per s", "× bare run", "× one process")
"""Units of which more is better; of all others less is."""
NO_TIMES = ("%", "MiB", "× bare run", "× one process")
"""Units that do not depend on how busy the machine is."""


class Damaged(Exception):
    """A file of figures that cannot be read."""


class Measurement(NamedTuple):
    """The figures of one run of the benchmarks."""

    machine: str
    commit: str
    date: str
    turns: int
    figures: Figures


class History:
    """The files of figures in one folder; git ignores them, as they are of one user's machines."""

    def __init__(self, folder: Path, machine: str) -> None:
        self.machine = machine
        self._baseline_file, self._history_file = folder / "baseline.json", folder / "history.jsonl"

    def baseline(self) -> Measurement | None:
        """The baseline of this machine; that of another machine is never returned."""
        return self._baselines().get(self.machine)

    def other_machines(self) -> list[str]:
        """Other machines that have a baseline."""
        return sorted(self._baselines().keys() - {self.machine})

    def store_baseline(self, new: Measurement) -> None:
        """Replace the baseline of this machine; it is one run, because the machine may be busier in another."""
        stored = self._baselines() | {self.machine: new}
        text = json.dumps({machine: kept._asdict() for machine, kept in stored.items()}, indent=2, ensure_ascii=False)
        self._baseline_file.write_text(text + "\n")

    def append(self, new: Measurement) -> None:
        """Add one line to the history."""
        with self._history_file.open("a") as file:
            file.write(json.dumps(new._asdict(), ensure_ascii=False) + "\n")

    def runs(self) -> list[Measurement]:
        """All runs on this machine, the last one last."""
        return [run for run in self._runs() if run.machine == self.machine]

    def _baselines(self) -> dict[str, Measurement]:
        if not self._baseline_file.exists():
            return {}
        try:
            stored = json.loads(self._baseline_file.read_text())
            return {machine: Measurement(**kept) for machine, kept in stored.items()}
        except (ValueError, AttributeError, TypeError) as why:
            raise Damaged(f"{self._baseline_file} is damaged ({why}): delete it, and store a baseline again.") from None

    def _runs(self) -> Iterator[Measurement]:
        lines = self._history_file.read_text().splitlines() if self._history_file.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                yield Measurement(**json.loads(line))
            except (ValueError, TypeError) as why:
                raise Damaged(f"{self._history_file}, line {number} is damaged ({why}): delete the line.") from None


def ratios(now: Figures, baseline: Figures) -> Figures:
    """Cost now over cost in the baseline, so above 1 is worse, of all figures that both have.

    Times are relative to those of the fixed calculation: on a busy machine everything takes longer.
    """
    if not (now and baseline):
        return {}
    busier = now[MACHINE] / baseline[MACHINE]
    costs = {label: _ratio(label, now[label], baseline[label]) for label in now if label in baseline}
    relative = {label: cost if label.endswith(NO_TIMES) else cost / busier for label, cost in costs.items()}
    return relative | {MACHINE: busier}


def _ratio(label: str, now: float, before: float) -> float:
    if label.endswith(MORE_IS_BETTER):
        now, before = before, now
    if now == before:
        return 1.0
    return now / before if before else float("inf")


def regressions(compared: Figures) -> Figures:
    """Those of the ratios that are above ALLOWED; the machine itself cannot regress."""
    return {label: worse for label, worse in compared.items() if worse > ALLOWED and label != MACHINE}


def this_machine() -> str:
    """CPU model and number of cores."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def this_commit() -> str:
    """Commit of the sources, marked as dirty if they have changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown commit"
