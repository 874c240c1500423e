"""Estimate the cost of a run: simulate its first rounds and extrapolate to all rounds."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.core.errors import RunFailed
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.recorder import Recorder
from vefl_sim.records.totals import Tally, energy_text
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.scenario import Scenario, build_scenario
from vefl_sim.simulation.wiring import wire

_ROUNDS = 3  # the first round includes compilation, so only the later ones are timed


@dataclass(frozen=True)
class Estimate:
    """Estimated wall time, payments, energy and disk space of a whole run."""

    scenario: Scenario
    wall_s: float
    cost: float
    energy_j: float
    disk_bytes: float

    def lines(self) -> list[str]:
        """Return the estimate as printable lines."""
        experiment = self.scenario.experiment
        return [
            f"{experiment.rounds} rounds of {experiment.vefl.round_s:g} s, {len(self.scenario.shards)} CVs, "
            f"{self.scenario.payload_bits / 1e3:.1f} kbit per update",
            f"about {self.wall_s:.0f} s of wall time and {self.disk_bytes / 1e6:.1f} MB of disk on this machine",
            f"about {self.cost:.0f} units paid to the CVs (plans may spend "
            f"at most {experiment.rounds * experiment.vefl.budget:.0f}) and {energy_text(self.energy_j)} of CV energy",
        ]


def estimate(experiment: Experiment) -> Estimate:
    """Prepare the run, simulate its first rounds in a temporary directory, and extrapolate to the whole run."""
    began = time.perf_counter()
    scenario = build_scenario(experiment)
    prepared_s = time.perf_counter() - began
    ends, tally = [time.perf_counter()], Tally()
    simulated = min(_ROUNDS, experiment.rounds)
    with tempfile.TemporaryDirectory() as directory:
        _run_rounds(scenario, simulated, Path(directory), ends, tally)
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
    )


def _run_rounds(scenario: Scenario, rounds: int, directory: Path, ends: list[float], tally: Tally) -> None:
    """Simulate the first rounds; append the wall time at the end of each to `ends` and add its costs to `tally`."""
    env, recorder = NanosecondEnvironment(), Recorder(directory, scenario.experiment.trace, scenario.experiment.slots)
    last_round_closed = env.event()

    def report(round_report: RoundReport) -> None:
        recorder.record_round(round_report)
        tally.add(round_report)
        ends.append(time.perf_counter())
        if round_report.round == rounds:
            last_round_closed.succeed()

    try:
        wire(scenario, env, recorder, Audit(scenario.link, scenario.experiment.slots.slot_s), report).processes(env)
        env.run(until=last_round_closed)
    except Exception as error:
        raise RunFailed(f"The first rounds failed: {type(error).__name__}: {error}") from error
    finally:
        recorder.commit()
