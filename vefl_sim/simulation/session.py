"""A session: one process that simulates a run in its directory, from its start or from a checkpoint."""

import time
from typing import Any

from vefl_sim.core.errors import NotResumable, VeflError, first_line
from vefl_sim.core.files import explain_write_errors
from vefl_sim.core.state import Stateful, pack
from vefl_sim.core.stopping import StopRequest
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.models import ConfusionMatrix, ModelFiles
from vefl_sim.records.run_directory import FOLDERS, Run
from vefl_sim.records.table_parts import remove_other_files
from vefl_sim.simulation.scenario import Scenario
from vefl_sim.simulation.simulation import Simulation
from vefl_sim.simulation.watcher import Watchers

_SECONDS_BETWEEN = 60.0
_LARGEST_SHARE = 0.01  # of the wall time may be spent on checkpoints


class Session:
    """A simulation with its run directory: tables, checkpoints and models in files, and watchers that are told."""

    def __init__(self, scenario: Scenario, run: Run, last: Checkpoint | None, watchers: Watchers) -> None:
        """Prepare to simulate from the checkpoint `last`, or from the start."""
        self._watchers, self._run, self._every = watchers, run, scenario.experiment.run.checkpoint_every
        self._checkpoints, self.last = Checkpoints(run.path), last
        with explain_write_errors(run.path):
            self._prepare_folders()
        self.simulation = Simulation(scenario, parts=run.path / "parts", start_ns=last.time_ns if last else 0)
        self._recorder = self.simulation.recorder
        if last:
            self._recorder.continue_after(last.tables)
        self._class_names = scenario.dataset.class_names
        card = ModelCard.of(scenario.experiment.model.factory, scenario.experiment.learning.loss, scenario.dataset)
        self._models = ModelFiles(run.path, scenario.experiment.learning.keep_models, card)
        self._confusion: ConfusionMatrix | None = None  # of the last evaluation in this session
        self._stop = StopRequest(lambda: watchers.tell("stopping"))
        self._before_s, self._wait_s = last.wall_s if last else 0.0, _SECONDS_BETWEEN
        self._before_cpu_s = float(last.figures.get("cpu_s", 0.0)) if last else 0.0

    def simulate(self) -> bool:
        """Simulate to the end and complete the tables; False if the run was stopped before."""
        self._began, self._saved = time.perf_counter(), time.perf_counter()
        self._began_cpu_s = time.process_time()
        with self._stop.listening():
            self._restore()
            while self.simulation.next_round():
                self._tell_reports()
                self._keep_model()  # before the checkpoint, after which it would not be due again
                if self._stop.made or self._is_due():
                    self._save()
                if self._stop.made:
                    self._recorder.discard()
                    return False
            self._tell_reports()
            self.simulation.close()
            if self._confusion:
                self._confusion.write(self._run.path)  # before the last checkpoint, which does not hold it
            self._keep_model()
            self._models.finish(self.simulation.model)
            if self.last:
                self._save()  # a crash from here on costs nothing; a run without any checkpoint is short
            self._recorder.compact(self._run.path / "tables")
        return True

    def figures(self) -> dict[str, Any]:
        """Figures of the run up to now, as in summary.json."""
        cpu_s = self._before_cpu_s + time.process_time() - self._began_cpu_s
        return self.simulation.summary | {"wall_s": round(self._wall_s, 3), "cpu_s": round(cpu_s, 3)}

    @property
    def _wall_s(self) -> float:
        return self._before_s + time.perf_counter() - self._began

    def _tell_reports(self) -> None:
        for report in self.simulation.new_reports():
            if report.evaluation:
                self._confusion = ConfusionMatrix.of(report.round, report.evaluation, self._class_names)
            self._watchers.tell("round", report)

    def _keep_model(self) -> None:
        """Keep the model after the round that has just ended, if `learning.keep_models` asks for it."""
        if rounds := self.simulation.rounds_done:
            evaluation = self.simulation.actors.server.model.evaluation
            self._models.keep(rounds, evaluation, lambda: self.simulation.model)

    def _is_due(self) -> bool:
        if self._every:
            return self.simulation.rounds_done - (self.last.round - 1 if self.last else 0) >= self._every
        return time.perf_counter() - self._saved >= self._wait_s

    def _save(self) -> None:
        began = time.perf_counter()
        with self.simulation.actors.stopwatch("checkpoint"):
            self.last = Checkpoint(
                round=self.simulation.rounds_done + 1,
                time_ns=self.simulation.now_ns,
                wall_s=self._wall_s,
                figures=self.figures(),
                tables=self._recorder.commit(),
                state={name: part.state() for name, part in self._stateful().items()},
            )
            self._checkpoints.write(self.last)
        self._saved = time.perf_counter()
        self._wait_s = max(_SECONDS_BETWEEN, (self._saved - began) / _LARGEST_SHARE)

    def _restore(self) -> None:
        parts = self._stateful()
        pack({name: part.state() for name, part in parts.items()}, {})  # what cannot be saved is reported now
        for name, part in parts.items() if self.last else ():
            try:
                part.restore(self.last.state[name])  # type: ignore[union-attr]  # it is not None
            except VeflError:
                raise
            except Exception as error:  # a state that somebody has edited may raise anything
                raise NotResumable(
                    f"{self._checkpoints.file_of(self.last)} cannot be restored ({name}: {type(error).__name__}: "  # type: ignore[arg-type]
                    f"{first_line(error)}; traceback in {self._run.path / 'FAILED'}): delete it to resume from the "
                    "checkpoint before it, or run the experiment with --fresh."
                ) from error

    def _stateful(self) -> dict[str, Stateful]:
        return self.simulation.stateful() | {"models": self._models}

    def _prepare_folders(self) -> None:
        """Create the folders, and remove files written after the checkpoint: those rounds are repeated."""
        for folder in FOLDERS:
            (self._run.path / folder).mkdir(exist_ok=True)
        remove_other_files(self._run.path / "parts", self.last.files if self.last else [])
        remove_other_files(self._run.path / "tables", [])
        self._checkpoints.remove_after(self.last)
        (self._run.path / "FAILED").unlink(missing_ok=True)
