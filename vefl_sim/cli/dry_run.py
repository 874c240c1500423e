"""Estimate the cost of a run: simulate its first rounds and extrapolate to all rounds."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from vefl_sim.analysis.reasons import why_nobody
from vefl_sim.core.errors import RunFailed
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.totals import Tally, energy_text
from vefl_sim.simulation.scenario import build_scenario
from vefl_sim.simulation.simulation import Simulation

_ROUNDS = 3  # the first round includes compilation, so only the later ones are timed


def estimate(experiment: Experiment) -> Iterator[str]:
    """Prepare the run, simulate its first rounds in a temporary directory, and yield lines about the whole run."""
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
    per_round_s = (ends[-1] - ends[-1 - len(later)]) / len(later)
    wall_s = prepared_s + (ends[1] - ends[0]) + per_round_s * (experiment.rounds - 1)
    factor, most = experiment.rounds / simulated, experiment.rounds * experiment.vefl.budget
    yield (
        f"{experiment.rounds} rounds of {experiment.vefl.round_s:g} s, {len(scenario.shards)} CVs, "
        f"{scenario.payload_bits / 1e3:.1f} kbit per update"
    )
    yield f"about {wall_s:.0f} s of wall time and {written * factor / 1e6:.1f} MB of disk on this machine"
    yield (
        f"about {tally.cost * factor:.0f} units paid to the CVs (plans may spend at most {most:.0f}) and "
        f"{energy_text(tally.energy_j * factor)} of CV energy"
    )
    yield from (f"warning: {sentence}" for sentence in _warnings(experiment, reports))


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
