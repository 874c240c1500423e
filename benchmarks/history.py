"""Figures of earlier runs of the benchmarks: a baseline per machine, and one line of history per run."""

from harness import ROOT, Figures

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ALLOWED = 1.3
"""A figure that is worse than its baseline by more than this factor is a regression."""
MORE_IS_BETTER = ("× real time", "per s")
"""Units of which more is better; of all others less is."""


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
        """Replace this machine's baseline; figures that were not measured now stay."""
        stored = self._baselines()
        before = stored[self.machine].figures if self.machine in stored else {}
        stored[self.machine] = new._replace(figures=before | new.figures)
        text = json.dumps({machine: kept._asdict() for machine, kept in stored.items()}, indent=2, ensure_ascii=False)
        self._baseline_file.write_text(text + "\n")

    def append(self, new: Measurement) -> None:
        """Add one line to the history."""
        with self._history_file.open("a") as file:
            file.write(json.dumps(new._asdict(), ensure_ascii=False) + "\n")

    def last(self) -> Figures:
        """Each figure as it was last measured on this machine; not all need to be of the same run."""
        runs = (run.figures for run in self._runs() if run.machine == self.machine)
        return {label: value for figures in runs for label, value in figures.items()}

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


def ratio(label: str, now: float, before: float) -> float:
    """Cost now over cost before: above 1 is worse, whatever the unit."""
    if label.endswith(MORE_IS_BETTER):
        now, before = before, now
    if now == before:
        return 1.0
    return now / before if before else float("inf")


def regressions(now: Figures, baseline: Figures) -> dict[str, float]:
    """Ratios of the figures that are worse than the baseline by more than ALLOWED."""
    ratios = {label: ratio(label, value, baseline[label]) for label, value in now.items() if label in baseline}
    return {label: worse for label, worse in ratios.items() if worse > ALLOWED}


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
