"""One process at work on a run: from its beginning or from a checkpoint, to its end or until it is stopped."""

import time
from typing import Any, Protocol

from vefl_sim.core.clock import to_s
from vefl_sim.core.files import writing
from vefl_sim.core.state import State, Stateful, pack
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.recorder import Recorder
from vefl_sim.records.run_directory import FOLDERS, Run
from vefl_sim.records.table_parts import remove_others
from vefl_sim.records.totals import Tally
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.scenario import Scenario
from vefl_sim.simulation.slot_check import SlotCheck
from vefl_sim.simulation.wiring import wire

_SECONDS_BETWEEN = 60.0
_LARGEST_SHARE = 0.01  # of the wall time that checkpoints may take


class RunWatcher(Protocol):
    """Somebody who wants to see how a run goes."""

    def preparing(self, experiment: Experiment) -> None:
        """Before data and traffic are made."""
        ...

    def driving(self, done_s: float, of_s: float) -> None:
        """Traffic from outside (SUMO) is driven ahead of the run; so many simulated seconds are done."""
        ...

    def started(self, run: Run, scenario: Scenario) -> None:
        """The run directory exists."""
        ...

    def resuming(self, checkpoint: Checkpoint, notes: list[str]) -> None:
        """It is not the first time; `notes` say what is not as it should be."""
        ...

    def round(self, closed: RoundReport) -> None:
        """A round is over."""
        ...

    def stopping(self) -> None:
        """Somebody asked to stop; the round is still finished. Called from within a signal handler."""
        ...


class Session:
    """A scenario and everything that has happened to it."""

    def __init__(self, scenario: Scenario, run: Run, last: Checkpoint | None) -> None:
        """Take up the run where its last checkpoint is, if it has one."""
        self._run, self._every = run, scenario.experiment.run.checkpoint_every
        self._checkpoints, self.last = Checkpoints(run.path), last
        with writing(run.path):
            self._make_room()
        self._env = NanosecondEnvironment(self.last.time_ns if self.last else 0)
        self._recorder = Recorder(run.path / "parts", scenario.experiment.trace)
        if self.last:
            self._recorder.go_on_after(self.last.tables)
        self._tally, self._audit = Tally(), _audit(scenario)
        self._actors = wire(scenario, self._env, self._recorder, self._audit, self._report, self._checkpoint_if_due)
        self._watcher: RunWatcher | None = None
        self._stop = StopRequest(self._tell)
        self._before_s, self._wait_s = self.last.wall_s if self.last else 0.0, _SECONDS_BETWEEN

    def simulate(self, watcher: RunWatcher | None) -> bool:
        """Run to the end, and complete the tables; False if somebody stopped it before."""
        self._watcher, self._began, self._saved = watcher, time.perf_counter(), time.perf_counter()
        with self._stop.listening():
            self._restore()
            self._env.run(until=self._actors.processes(self._env))
            if self._stopped:
                self._recorder.discard()
                return False
            self._audit.close(self._actors.ledger)
            if self.last:
                self._save()  # a crash from here on costs nothing; a run without a checkpoint is a short one
            self._recorder.compact(self._run.path / "tables")
        return True

    def salvage(self) -> None:
        """After an error: complete the tables as far as they go, so that somebody can look into it."""
        self._recorder.salvage(self._run.path / "tables")

    @property
    def rounds(self) -> int:
        """How many are over."""
        return self._actors.server.round - 1

    @property
    def not_told(self) -> str:
        """Without rounds, a window is in the tables when the next one ends."""
        return ", of which the last is in the tables when it goes on" if self._tally.rounds < self.rounds else ""

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self._env.now

    def figures(self) -> dict[str, Any]:
        """Of the whole run, up to now."""
        simulated = {"simulated_s": to_s(self.now_ns), "wall_s": round(self._wall_s, 3)}
        return self._tally.figures() | self._audit.figures() | simulated

    @property
    def _wall_s(self) -> float:
        return self._before_s + time.perf_counter() - self._began

    @property
    def _stopped(self) -> bool:
        server = self._actors.server
        return server.timetable.has(server.round, self.now_ns)

    def _tell(self) -> None:
        if self._watcher:
            self._watcher.stopping()

    def _report(self, closed: RoundReport) -> None:
        self._recorder.round(closed)
        self._audit.round(closed)
        self._tally.add(closed)
        if self._watcher:
            self._watcher.round(closed)

    def _checkpoint_if_due(self) -> bool:
        """Save everything if it is time, or if the run was asked to stop; False if it was."""
        if self._stop.made or self._is_due():
            self._save()
        return not self._stop.made

    def _is_due(self) -> bool:
        if self._every:
            return self.rounds - (self.last.round - 1 if self.last else 0) >= self._every
        return time.perf_counter() - self._saved >= self._wait_s

    def _save(self) -> None:
        began = time.perf_counter()
        with self._actors.server.stopwatch("checkpoint"):
            self.last = self._checkpoint()
            self._checkpoints.write(self.last)
        self._saved = time.perf_counter()
        self._wait_s = max(_SECONDS_BETWEEN, (self._saved - began) / _LARGEST_SHARE)

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            round=self._actors.server.round,
            time_ns=self.now_ns,
            wall_s=self._wall_s,
            figures=self.figures(),
            tables=self._recorder.commit(),
            state=self._state(),
        )

    def _state(self) -> State:
        return {name: part.state() for name, part in self._stateful().items()}

    def _restore(self) -> None:
        pack(self._state(), {})  # a part that cannot be packed shows now, and not at the first checkpoint
        if self.last:
            for name, part in self._stateful().items():
                part.restore(self.last.state[name])

    def _stateful(self) -> dict[str, Stateful]:
        ours: dict[str, Stateful] = {"recorder": self._recorder, "audit": self._audit, "tally": self._tally}
        return self._actors.stateful() | ours

    def _make_room(self) -> None:
        """Make the folders, and forget what came after the checkpoint: those rounds will be repeated."""
        for folder in FOLDERS:
            (self._run.path / folder).mkdir(exist_ok=True)
        remove_others(self._run.path / "parts", self.last.files if self.last else [])
        remove_others(self._run.path / "tables", [])
        self._checkpoints.remove_after(self.last)
        (self._run.path / "FAILED").unlink(missing_ok=True)


def _audit(scenario: Scenario) -> Audit:
    experiment = scenario.experiment
    check = SlotCheck(
        scenario.link,
        experiment.slots.slot_s,
        edf=not is_part(experiment.mac.scheduler),
        floors=not is_part(experiment.rat.method),
    )
    return Audit(scenario.link, experiment.slots.slot_s, binding=not is_part(experiment.scheme.kind), check=check)
