"""A session: one process that simulates a run, from its start or from a checkpoint, until it ends or is stopped."""

import time
from typing import Any

from vefl_sim.core.arrays import NamedArrays
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import NotResumable, VeflError, first_line
from vefl_sim.core.files import explain_write_errors
from vefl_sim.core.state import State, Stateful, pack
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.plugins import is_part
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.radio.access import Access
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.confusion import ConfusionMatrix
from vefl_sim.records.entries import FOLDERS
from vefl_sim.records.models import ModelFiles
from vefl_sim.records.recorder import Recorder, optional_tables
from vefl_sim.records.run_directory import Run
from vefl_sim.records.table_parts import remove_other_files
from vefl_sim.records.totals import Tally
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.scenario import Scenario
from vefl_sim.simulation.slot_check import SlotCheck
from vefl_sim.simulation.watcher import Watchers
from vefl_sim.simulation.wiring import wire

_SECONDS_BETWEEN = 60.0
_LARGEST_SHARE = 0.01  # of the wall time may be spent on checkpoints


class Session:
    """A scenario with its actors, recorder, audit and checkpoints."""

    def __init__(self, scenario: Scenario, run: Run, last: Checkpoint | None, watchers: Watchers) -> None:
        """Prepare to simulate from the checkpoint `last`, or from the start."""
        self._watchers, self._run, self._every = watchers, run, scenario.experiment.run.checkpoint_every
        self._checkpoints, self.last = Checkpoints(run.path), last
        with explain_write_errors(run.path):
            self._prepare_folders()
        self._env = NanosecondEnvironment(self.last.time_ns if self.last else 0)
        experiment = scenario.experiment
        optional = optional_tables(experiment)
        self._recorder = Recorder(run.path / "parts", experiment.trace, experiment.slots, optional)
        if self.last:
            self._recorder.continue_after(self.last.tables)
        self._tally, self._audit = Tally(), _audit(scenario)
        self._class_names, self._payload_bits = scenario.dataset.class_names, scenario.payload_bits
        card = ModelCard.of(scenario.experiment.model.factory, scenario.experiment.learning.loss, scenario.dataset)
        self._models = ModelFiles(run.path, scenario.experiment.learning.keep_models, card)
        self._confusion: ConfusionMatrix | None = None  # of the last evaluation in this session
        self._actors = wire(scenario, self._env, self._recorder, self._audit, self._report, self._checkpoint_if_due)
        self._stop = StopRequest(lambda: watchers.tell("stopping"))
        self._before_s, self._wait_s = self.last.wall_s if self.last else 0.0, _SECONDS_BETWEEN
        self._before_cpu_s = float(self.last.figures.get("cpu_s", 0.0)) if self.last else 0.0

    def simulate(self) -> bool:
        """Simulate to the end and complete the tables; False if the run was stopped before."""
        self._began, self._saved = time.perf_counter(), time.perf_counter()
        self._began_cpu_s = time.process_time()
        with self._stop.listening():
            self._restore()
            self._env.run(until=self._actors.processes(self._env))
            if self._stopped:
                self._recorder.discard()
                return False
            self._audit.close(self._actors.ledger)
            if self._confusion:
                self._confusion.write(self._run.path)  # before the last checkpoint, which does not hold it
            self._keep_model()
            self._models.finish(self._model_arrays())
            if self.last:
                self._save()  # a crash from here on costs nothing; a run without any checkpoint is short
            self._recorder.compact(self._run.path / "tables")
        return True

    def salvage(self) -> None:
        """After an error: complete the tables as far as they go, so that the error can be investigated."""
        self._recorder.salvage(self._run.path / "tables")

    @property
    def rounds(self) -> int:
        """Number of finished rounds."""
        return self._actors.server.round - 1

    @property
    def missing_window_note(self) -> str:
        """A note for schemes without rounds, whose last window is written to the tables when the next one ends."""
        return ", of which the last is written to the tables after resuming" if self._tally.rounds < self.rounds else ""

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self._env.now

    def figures(self) -> dict[str, Any]:
        """Figures of the run up to now, as in summary.json."""
        simulated = {
            "simulated_s": to_s(self.now_ns),
            "wall_s": round(self._wall_s, 3),
            "cpu_s": round(self._before_cpu_s + time.process_time() - self._began_cpu_s, 3),
            "payload_bits": self._payload_bits,
        }
        return self._tally.figures() | self._audit.figures() | simulated

    @property
    def _wall_s(self) -> float:
        return self._before_s + time.perf_counter() - self._began

    @property
    def _stopped(self) -> bool:
        server = self._actors.server
        return server.timetable.has(server.round, self.now_ns)

    def _report(self, report: RoundReport) -> None:
        self._recorder.record_round(report)
        self._audit.round(report)
        self._tally.add(report)
        if report.evaluation:
            self._confusion = ConfusionMatrix.of(report.round, report.evaluation, self._class_names)
        self._watchers.tell("round", report)

    def _keep_model(self) -> None:
        """Keep the model after the round that has just ended, if `learning.keep_models` asks for it."""
        if self.rounds:
            self._models.keep(self.rounds, self._actors.server.evaluation, self._model_arrays)

    def _model_arrays(self) -> NamedArrays:
        model = self._actors.server.model
        return model.learner.arrays_of(model.parameters)

    def _checkpoint_if_due(self) -> bool:
        """Write a checkpoint if one is due or the run was asked to stop; return False if it was."""
        self._keep_model()  # before the checkpoint, after which it would not be due again
        if self._stop.made or self._is_due():
            self._save()
        return not self._stop.made

    def _is_due(self) -> bool:
        if self._every:
            return self.rounds - (self.last.round - 1 if self.last else 0) >= self._every
        return time.perf_counter() - self._saved >= self._wait_s

    def _save(self) -> None:
        began = time.perf_counter()
        with self._actors.server.reporting.stopwatch("checkpoint"):
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
        pack(self._state(), {})  # a part whose state cannot be saved is reported now, not at the first checkpoint
        if not self.last:
            return
        for name, part in self._stateful().items():
            try:
                part.restore(self.last.state[name])
            except VeflError:
                raise
            except Exception as error:  # a state that somebody has edited may raise anything
                raise NotResumable(
                    f"{self._checkpoints.file_of(self.last)} cannot be restored ({name}: {type(error).__name__}: "
                    f"{first_line(error)}; traceback in {self._run.path / 'FAILED'}): delete it to resume from the "
                    "checkpoint before it, or run the experiment with --fresh."
                ) from error

    def _stateful(self) -> dict[str, Stateful]:
        ours: dict[str, Stateful] = {"recorder": self._recorder, "audit": self._audit, "tally": self._tally}
        ours["models"] = self._models
        return self._actors.stateful() | ours

    def _prepare_folders(self) -> None:
        """Create the folders, and remove files written after the checkpoint: those rounds are repeated."""
        for folder in FOLDERS:
            (self._run.path / folder).mkdir(exist_ok=True)
        remove_other_files(self._run.path / "parts", self.last.files if self.last else [])
        remove_other_files(self._run.path / "tables", [])
        self._checkpoints.remove_after(self.last)
        (self._run.path / "FAILED").unlink(missing_ok=True)


def _audit(scenario: Scenario) -> Audit:
    experiment = scenario.experiment
    check = SlotCheck(
        scenario.link,
        experiment.slots.slot_s,
        Access.of(experiment),
        edf=not is_part(experiment.mac.scheduler),
        floors=not is_part(experiment.rat.method),
    )
    return Audit(scenario.link, experiment.slots.slot_s, binding=not is_part(experiment.scheme.kind), check=check)
