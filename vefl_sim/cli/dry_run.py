"""Estimate the cost of a run: simulate its first rounds and extrapolate to all rounds."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vefl_sim.analysis.reasons import why_nobody
from vefl_sim.core.errors import RunFailed
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.totals import Tally, energy_text
from vefl_sim.simulation.scenario import Scenario, build_scenario
from vefl_sim.simulation.simulation import Simulation

_ROUNDS = 3  # the first round includes compilation, so only the later ones are timed


@dataclass(frozen=True)
class Estimate:
    """Estimated wall time, payments, energy and disk space of a whole run."""

    scenario: Scenario
    wall_s: float
    cost: float
    energy_j: float
    disk_bytes: float
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the estimate as printable lines."""
        experiment = self.scenario.experiment
        return [
            f"{experiment.rounds} rounds of {experiment.vefl.round_s:g} s, {len(self.scenario.shards)} CVs, "
            f"{self.scenario.payload_bits / 1e3:.1f} kbit per update",
            f"about {self.wall_s:.0f} s of wall time and {self.disk_bytes / 1e6:.1f} MB of disk on this machine",
            f"about {self.cost:.0f} units paid to the CVs (plans may spend "
            f"at most {experiment.rounds * experiment.vefl.budget:.0f}) and {energy_text(self.energy_j)} of CV energy",
            *(f"warning: {sentence}" for sentence in self.warnings),
        ]


def estimate(experiment: Experiment) -> Estimate:
    """Prepare the run, simulate its first rounds in a temporary directory, and extrapolate to the whole run."""
    began = time.perf_counter()
    scenario = build_scenario(experiment)
    prepared_s = time.perf_counter() - began
    ends, tally, reports = [time.perf_counter()], Tally(), list[RoundReport]()
    simulated = min(_ROUNDS, experiment.rounds)
    with tempfile.TemporaryDirectory() as directory:
        simulation = Simulation(scenario, parts=Path(directory))
        try:
            for report in islice(simulation, simulated):
                ends.append(time.perf_counter())
                tally.add(report)
                reports.append(report)
        except Exception as error:
            raise RunFailed(f"The first rounds failed: {type(error).__name__}: {error}") from error
        simulation.recorder.commit()
        written = sum(file.stat().st_size for file in Path(directory).iterdir())
    later = ends[2:] or ends[1:]
    per_round = (ends[-1] - ends[-1 - len(later)]) / len(later)
    factor = experiment.rounds / simulated
    return Estimate(
        scenario=scenario,
        wall_s=prepared_s + (ends[1] - ends[0]) + per_round * (experiment.rounds - 1),
        cost=tally.cost * factor,
        energy_j=tally.energy_j * factor,
        disk_bytes=written * factor,
        warnings=tuple(_warnings(experiment, reports)),
    )


def _warnings(experiment: Experiment, reports: list[RoundReport]) -> Iterator[str]:
    """Yield a sentence if nobody got an order in these rounds, or if `scheme.selected` excludes nobody."""
    kind, most, rounds = experiment.scheme.kind, max(report.in_coverage for report in reports), len(reports)
    if declaration("scheme.kind", kind, "trains_centrally", False):
        return
    if not any(report.outcomes for report in reports):
        limits = Counter(limit for report in reports for limit in report.ineligible.values())
        reason = why_nobody(Counter(report.status for report in reports), limits)
        yield f"nobody got an order in the first {rounds} rounds: {reason}."
    elif declaration("scheme.kind", kind, "selects", False) and experiment.scheme.selected > most:
        yield (
            f"scheme.selected = {experiment.scheme.selected} excludes nobody: at most {most} CVs were in coverage in "
            f"the first {rounds} rounds."
        )
