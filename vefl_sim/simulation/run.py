"""Run an experiment, or resume a run: a simulation in its directory, and the ways in which it can end."""

import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, overload

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import (
    BadInput,
    CannotWrite,
    ExperimentError,
    FinishedRun,
    NotResumable,
    RunFailed,
    RunInterrupted,
    VeflError,
    VeflWarning,
    first_line,
)
from vefl_sim.core.files import explain_write_errors
from vefl_sim.core.progress import heard_by
from vefl_sim.core.state import Stateful, pack
from vefl_sim.core.stopping import StopRequest
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.part_files import parts_in
from vefl_sim.experiment.plugins import declaration, require_protocol
from vefl_sim.experiment.toml import load, read_experiment, with_settings
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.mobility.recorded.playback import COMPLETE
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.identity import Identity, library_notes, require_same, require_same_version
from vefl_sim.records.lock import locked
from vefl_sim.records.models import ConfusionMatrix, ModelFiles
from vefl_sim.records.run_directory import FOLDERS, Run, create_run, find_or_create_run
from vefl_sim.records.table_parts import remove_other_files, table_digests
from vefl_sim.records.totals import TABLE_DIGESTS
from vefl_sim.simulation.scenario import Scenario, build_scenario
from vefl_sim.simulation.simulation import Simulation
from vefl_sim.simulation.watcher import RunWatcher, Watchers

_SECONDS_BETWEEN = 60.0
_LARGEST_SHARE = 0.01  # of the wall time may be spent on checkpoints


@overload
def simulate(
    experiment: Experiment | str | Path,
    settings: Settings = (),
    *,
    out: str | Path = "runs",
    fresh: bool = False,
    toml: str | None = None,
    watcher: Any = None,
) -> Run: ...


@overload
def simulate(
    experiment: Experiment | str | Path, settings: Settings = (), *, out: None, watcher: Any = None
) -> Simulation: ...


def simulate(
    experiment: Experiment | str | Path,
    settings: Settings = (),
    *,
    out: str | Path | None = "runs",
    fresh: bool = False,
    toml: str | None = None,
    watcher: Any = None,
) -> Run | Simulation:
    """Run an experiment, or the TOML file of one, and return its run directory.

    A run of the same configuration is resumed, or returned if it is done; `fresh` creates another one. `settings`
    override keys: {"radio.prbs": 5} or ["radio.prbs=5"]; with `toml`, the text that an Experiment was read from with
    these settings, both are only stored beside the results. `watcher`, an object with some of the methods of
    RunWatcher, is told what happens, and so are the watchers that `run.watch` names; a run that is done already calls
    none of them, and a warning (FinishedRun) says so. With `out=None` nothing is written and nothing resumed: the
    result is a `Simulation` that is over, with its tables in memory.
    """
    if watcher:
        require_protocol("watcher", watcher, RunWatcher, partly=True)
    if not isinstance(experiment, Experiment):
        file = read_experiment(experiment)
        experiment, toml = load(file, settings), file.text
    elif settings and toml is None:
        experiment = with_settings(experiment, *setting_texts(settings))
    if out is None:
        return _simulate_in_memory(experiment, watcher)
    settings = setting_texts(settings)
    out, identity = Path(out), Identity(experiment)
    create = create_run if fresh else find_or_create_run
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        while True:
            run = create(identity, out, toml, settings)
            if run.is_done:
                run.require_complete()
                if watcher or experiment.run.watch:
                    warnings.warn(
                        f"{run.path} is done already: it is returned as it is, and no watcher is called. "
                        "simulate(…, fresh=True) runs the experiment again.",
                        FinishedRun,
                        stacklevel=2,
                    )
                return run
            with ExitStack() as held:
                try:
                    held.enter_context(locked(run.path, identity.versions))
                except VeflError:
                    if (run.path / "resolved.toml").exists():
                        raise
                    continue  # another process has found bad input and removed the run
                return _complete(run, identity, watcher, may_remove=True)
    finally:
        with suppress(OSError):  # of a folder that is not empty
            for folder in missing:
                folder.rmdir()  # bad input leaves no new folders behind


def resume(
    run: Run | str | Path, *, parts: str | Path | None = None, watcher: Any = None, watch: Sequence[str] = ()
) -> Run:
    """Resume a run from its last checkpoint; a run that is done is returned unchanged.

    User-defined parts are imported from `parts`, a folder, or else from where Python finds them, but never from a run
    directory, and only if their sources are those that the run was started with. `watch` names watchers in addition to
    those of the run; they are imported in the same way, but may have changed, as they change no result.
    """
    if watcher:
        require_protocol("watcher", watcher, RunWatcher, partly=True)
    run = run if isinstance(run, Run) else Run(run)
    if run.is_done:
        run.require_complete()
        return run
    with parts_in(parts):
        require_same_version(run.path)  # another version may not understand the experiment
        identity = Identity.recorded(run.experiment)
        require_same(run.path, identity)
        with locked(run.path, identity.versions):
            return _complete(run, identity, watcher, watch)


def _simulate_in_memory(experiment: Experiment, watcher: Any) -> Simulation:
    """Simulate to the end without a directory; `watcher` is told of the preparation and of every round."""
    if experiment.run.watch:
        raise ExperimentError("run.watch needs a run directory: remove it, or give one (out).")
    watchers = Watchers(watcher)
    with heard_by(partial(watchers.tell, "working")):
        watchers.tell("preparing", experiment)
        simulation = Simulation(experiment)
    with watchers.until_the_end():
        watchers.tell("started", simulation, simulation.scenario)
        for report in simulation:
            watchers.tell("round", report)
    return simulation


def _complete(
    run: Run, identity: Identity, watcher: Any, watch: Sequence[str] = (), *, may_remove: bool = False
) -> Run:
    """Simulate what is left of a run, whose lock is held; `may_remove`: after bad input, unless something is done."""
    if run.is_done:  # another process finished this run while we waited for the lock
        return run
    last, notes = Checkpoints(run.path).newest()  # before preparing, which is in vain if no checkpoint is usable
    notes += library_notes(run.path, identity)
    if not last and (loss := run.loss):
        raise NotResumable(f"{loss}, or run the experiment again with --fresh; nothing is changed.")
    fault = declaration("mobility.kind", identity.experiment.mobility.kind, "fault", None)
    if last and fault and (message := fault(run.path / "traffic")):  # the finished rounds have used this traffic
        raise NotResumable(f"{run.path} cannot be resumed, because {message}: restore it, or run it with --fresh.")
    if not last and not run.is_untouched:
        sentence = f"{run.path} was stopped before its first checkpoint: it starts again from round 1."
        warnings.warn(sentence, VeflWarning, stacklevel=3)
    try:
        with ExitStack() as heard:
            with _preparing(run, may_remove and run.is_untouched):
                watchers = Watchers(watcher, (*(identity.experiment.run.watch or ()), *watch), identity.experiment)
                heard.enter_context(heard_by(partial(watchers.tell, "working")))
                scenario, prepare = _prepare(run, identity.experiment, watchers)
                if last:
                    watchers.resuming(last, notes)
            _simulate(run, scenario, prepare, watchers, last)
    except CannotWrite as error:
        raise CannotWrite(f"{error} Continue with: python -m vefl_sim resume {run.path}") from error.__cause__
    return run


def _prepare(run: Run, experiment: Experiment, watchers: Watchers) -> tuple[Scenario, dict[str, float]]:
    """The scenario of a run, and the wall time and CPU time that it took to build, as in summary.json."""
    watchers.tell("preparing", experiment)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    scenario = build_scenario(experiment, run.path / "traffic")
    spent = {"prepare_s": time.perf_counter() - began_s, "prepare_cpu_s": time.process_time() - began_cpu_s}
    return scenario, {name: round(seconds, 3) for name, seconds in spent.items()}


def _simulate(
    run: Run, scenario: Scenario, prepare: dict[str, float], watchers: Watchers, last: Checkpoint | None
) -> None:
    """Simulate the rounds after the checkpoint `last` and complete the run; the caller holds the lock."""
    session = _Session(scenario, run, last, watchers)
    with watchers.until_the_end():
        with _failing(run, session):
            watchers.tell("started", run, scenario)
            finished = session.simulate()
        if not finished:
            simulation = session.simulation
            done = f"{simulation.rounds_done} rounds, {to_s(simulation.now_ns):.1f} simulated seconds"
            if simulation.rounds_done > simulation.summary["rounds"]:  # without rounds, orders are under way
                done += ", of which the last is written to the tables after resuming"
            then = "continue with" if session.last else "what its scheme remembers cannot be saved, so start again with"
            raise RunInterrupted(f"stopped after {done}; {then}: python -m vefl_sim resume {run.path}")
        digests = {"content_digest": run.content_digest(), TABLE_DIGESTS: table_digests(run.path)}
        run.finish(session.figures() | prepare | digests)


@contextmanager
def _preparing(run: Run, may_remove: bool) -> Iterator[None]:
    """Handle errors while a run is prepared.

    If `may_remove`, its directory is removed after bad input, unless it holds recorded traffic, and after Ctrl-C,
    unless it holds files of SUMO. Other errors are written to FAILED.
    """
    try:
        with _failing(run):
            yield
    except BadInput as error:
        if (run.path / "traffic" / COMPLETE).exists():
            with suppress(CannotWrite):
                run.mark("FAILED", f"{error}\n")
        elif may_remove:
            rmtree(run.path, ignore_errors=True)
        raise
    except KeyboardInterrupt:
        if may_remove and not (run.path / "traffic").exists():
            rmtree(run.path, ignore_errors=True)
        raise


@contextmanager
def _failing(run: Run, session: "_Session | None" = None) -> Iterator[None]:
    """After an error, keep a traceback and the tables for investigation, and raise one sentence."""
    try:
        yield
    except CannotWrite:
        raise  # the run itself is fine and can be resumed
    except Exception as error:
        if session is None and isinstance(error, BadInput):
            raise  # a run that is being prepared does not fail because of it
        with suppress(CannotWrite):
            run.mark("FAILED", traceback.format_exc())
            if session and not isinstance(error, NotResumable):  # then nothing has been simulated
                session.simulation.recorder.salvage(run.path / "tables")
        if isinstance(error, NotResumable) or (isinstance(error, VeflError) and not isinstance(error, BadInput)):
            raise
        original = (session and error.__cause__) or error  # SimPy re-creates exceptions, which fails for some types
        raise RunFailed(f"{type(original).__name__}: {original} (traceback in {run.path / 'FAILED'})") from error


class _Session:
    """A simulation with its run directory: tables, checkpoints and models in files, and watchers that are told."""

    def __init__(self, scenario: Scenario, run: Run, last: Checkpoint | None, watchers: Watchers) -> None:
        """Prepare to simulate from the checkpoint `last`, or from the start."""
        self._watchers, self._run, self._every = watchers, run, scenario.experiment.run.checkpoint_every
        kept = {"kept": None} if scenario.experiment.run.keep_checkpoints else {}
        self._checkpoints, self.last = Checkpoints(run.path, **kept), last
        with explain_write_errors(run.path):
            _prepare_folders(run, last)
        start_ns, start_round = (last.time_ns, last.round) if last else (0, 1)
        self.simulation = Simulation(scenario, parts=run.path / "parts", start_ns=start_ns, start_round=start_round)
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
        wall_s = self._before_s + time.perf_counter() - self._began
        cpu_s = self._before_cpu_s + time.process_time() - self._began_cpu_s
        return self.simulation.summary | {"wall_s": round(wall_s, 3), "cpu_s": round(cpu_s, 3)}

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
        if not self.simulation.actors.server.model.scheme.resumable:
            return
        began = time.perf_counter()
        with self.simulation.actors.stopwatch("checkpoint"):
            figures = self.figures()
            self.last = Checkpoint(
                round=self.simulation.rounds_done + 1,
                time_ns=self.simulation.now_ns,
                wall_s=figures["wall_s"],
                figures=figures,
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


def _prepare_folders(run: Run, last: Checkpoint | None) -> None:
    """Create the folders, and remove files written after the checkpoint `last`: those rounds are repeated."""
    for folder in FOLDERS:
        (run.path / folder).mkdir(exist_ok=True)
    remove_other_files(run.path / "parts", last.files if last else [])
    remove_other_files(run.path / "tables", [])
    Checkpoints(run.path).remove_after(last)
    (run.path / "FAILED").unlink(missing_ok=True)
