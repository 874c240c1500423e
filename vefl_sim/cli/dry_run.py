"""What a run would cost: its first rounds are run for real, and the rest is arithmetic."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from vefl_sim.core.errors import RunFailed
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.recorder import Recorder
from vefl_sim.records.totals import Tally
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.run import scenario_or_complaint
from vefl_sim.simulation.scenario import Scenario
from vefl_sim.simulation.wiring import wire

_ROUNDS = 3  # the first compiles, so the others are timed


@dataclass(frozen=True)
class Estimate:
    """Figures for a whole run, extrapolated."""

    scenario: Scenario
    wall_s: float
    cost: float
    energy_j: float
    disk_bytes: float

    def lines(self) -> list[str]:
        """For people."""
        experiment = self.scenario.experiment
        return [
            f"{experiment.rounds} rounds of {experiment.vefl.round_s:g} s, {len(self.scenario.shards)} CVs, "
            f"{self.scenario.payload_bits / 1e3:.1f} kbit per update",
            f"about {self.wall_s:.0f} s of wall time and {self.disk_bytes / 1e6:.1f} MB of disk on this machine",
            f"about {self.cost:.0f} units paid to the CVs (at most {experiment.rounds * experiment.vefl.budget:.0f} "
            f"are planned) and {self.energy_j:.0f} J of their energy",
        ]


def estimate(experiment: Experiment) -> Estimate:
    """Prepare the run, simulate its first rounds in a temporary directory, and extrapolate."""
    began = time.perf_counter()
    scenario = scenario_or_complaint(experiment)
    prepared_s = time.perf_counter() - began
    ends, tally = [time.perf_counter()], Tally()
    few = min(_ROUNDS, experiment.rounds)
    with tempfile.TemporaryDirectory() as directory:
        _run_rounds(scenario, few, Path(directory), ends, tally)
        written = sum(file.stat().st_size for file in Path(directory).iterdir())
    later = ends[2:] or ends[1:]
    per_round = (ends[-1] - ends[-1 - len(later)]) / len(later)
    share = experiment.rounds / few
    return Estimate(
        scenario=scenario,
        wall_s=prepared_s + (ends[1] - ends[0]) + per_round * (experiment.rounds - 1),
        cost=tally.cost * share,
        energy_j=tally.energy_j * share,
        disk_bytes=written * share,
    )


def _run_rounds(scenario: Scenario, rounds: int, directory: Path, ends: list[float], tally: Tally) -> None:
    env, recorder = NanosecondEnvironment(), Recorder(directory, scenario.experiment.trace)
    enough = env.event()

    def report(closed: RoundReport) -> None:
        recorder.round(closed)
        tally.add(closed)
        ends.append(time.perf_counter())
        if closed.round == rounds:
            enough.succeed()

    try:
        wire(scenario, env, recorder, Audit(scenario.link, scenario.experiment.slots.slot_s), report).processes(env)
        env.run(until=enough)
    except Exception as error:
        raise RunFailed(f"The first rounds fail: {type(error).__name__}: {error}") from error
    finally:
        recorder.commit()
