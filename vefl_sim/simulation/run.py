"""Runs an experiment, or goes on with it: the run directory and the way a run ends."""

import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import (
    BadInput,
    CannotWrite,
    ExperimentError,
    NotResumable,
    RunFailed,
    RunInterrupted,
    VeflError,
)
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_names
from vefl_sim.mobility.recorded.trajectory import Tell, has_driven
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.identity import library_notes, require_same, require_same_version, versions
from vefl_sim.records.lock import locked
from vefl_sim.records.run_directory import Run, create_run, earliest_run, existing_run
from vefl_sim.simulation.scenario import Scenario, build_scenario
from vefl_sim.simulation.session import RunWatcher, Session


def simulate(
    experiment: Experiment,
    *,
    out: str | Path = "runs",
    fresh: bool = False,
    toml: str | None = None,
    settings: Sequence[str] = (),
    watcher: RunWatcher | None = None,
) -> Run:
    """Run an experiment and return its directory; a run of the same configuration is continued, or returned if done.

    `fresh` runs again in another directory; `toml` and `settings` are kept beside the results as the user wrote them;
    `watcher` hears of every round.
    """
    out = Path(out)
    if not fresh and (run := existing_run(experiment, out)):
        return _go_on(run, experiment, watcher)
    if experiment.mobility.kind == "sumo":
        run = create_run(experiment, out, toml, settings)
        if not fresh and (earliest := earliest_run(experiment, out)).path != run.path:  # somebody else was faster
            rmtree(run.path, ignore_errors=True)
            return _go_on(earliest, experiment, watcher)
        return _go_on(run, experiment, watcher, new=True)
    scenario, prepare_s = _prepared(experiment, watcher)
    if not fresh and (run := existing_run(experiment, out)):  # somebody else was faster
        return _go_on(run, experiment, watcher)
    run = create_run(experiment, out, toml, settings)
    with locked(run.path, versions(experiment)):
        last, _ = Checkpoints(run.path).newest()  # somebody may even have begun with it
        return run if run.is_done else _finish(run, scenario, prepare_s, watcher, last)


def resume(run: Run | str | Path, *, watcher: RunWatcher | None = None) -> Run:
    """Go on with a run from its last checkpoint; one that is done is returned as it is."""
    run = run if isinstance(run, Run) else Run(run)
    if run.is_done:
        return run
    require_same_version(run.path)  # another one may not even understand the experiment
    require_same(run.path, run.experiment)
    return _go_on(run, run.experiment, watcher)


def scenario_or_complaint(experiment: Experiment, folder: Path | None = None, tell: Tell | None = None) -> Scenario:
    """`build_scenario`, with whatever a part of the user's raises turned into one sentence."""
    try:
        return build_scenario(experiment, folder, tell)
    except VeflError:
        raise
    except Exception as error:
        if not any(_is_of_the_users(name) for _, name in part_names(experiment)):
            raise  # then it is ours, and a traceback is what we need
        raise ExperimentError(f"The experiment cannot be prepared: {type(error).__name__}: {error}") from error


def _is_of_the_users(part: str) -> bool:
    return part.split(":")[0].split(".")[0] not in ("vefl_sim", "vefl_models")


def _prepared(experiment: Experiment, watcher: RunWatcher | None, run: Run | None = None) -> tuple[Scenario, float]:
    if watcher:
        watcher.preparing(experiment)
    began = time.perf_counter()
    folder = run.path / "traffic" if run else None
    return scenario_or_complaint(
        experiment, folder, watcher.driving if watcher and folder else None
    ), time.perf_counter() - began


def _go_on(run: Run, experiment: Experiment, watcher: RunWatcher | None, *, new: bool = False) -> Run:
    """Finish a run that is there already, unless it is done.

    `new`: its directory was made for the traffic that is kept in it; if bad input is in the way there shall be none.
    """
    if run.is_done:
        return run
    with locked(run.path, versions(experiment)):
        if run.is_done:  # whoever had the lock before has finished it
            return run
        last, notes = Checkpoints(run.path).newest()  # before the work of preparing: there may be nothing to go on from
        notes += library_notes(run.path, experiment)
        if last and experiment.mobility.kind == "sumo":
            _require_traffic(run)
        with _marked(run, new):
            scenario, prepare_s = _prepared(experiment, watcher, run)
        if last:
            _tell(watcher, last, notes)
        return _finish(run, scenario, prepare_s, watcher, last)


def _require_traffic(run: Run) -> None:
    """Rounds that were run must have seen what those to come will see."""
    from vefl_sim.mobility.sumo.traffic import fault

    if message := fault(run.path / "traffic"):
        raise NotResumable(f"{run.path} cannot be continued, because {message}: restore it, or run it with --fresh.")


def _finish(run: Run, scenario: Scenario, prepare_s: float, watcher: RunWatcher | None, last: Checkpoint | None) -> Run:
    """Do what is left to do after the last checkpoint; whoever calls this has the lock."""
    session = Session(scenario, run, last)
    if watcher:
        watcher.started(run, scenario)
    with _unbroken(run, session):
        finished = session.simulate(watcher)
    if not finished:
        raise RunInterrupted(
            f"stopped after {session.rounds} rounds, {to_s(session.now_ns):.1f} simulated seconds{session.not_told}; "
            f"continue with: python -m vefl_sim resume {run.path}"
        )
    digest = run.content_digest()
    run.finish(session.figures() | {"prepare_s": round(prepare_s, 3), "content_digest": digest})
    return run


def _tell(watcher: RunWatcher | None, last: Checkpoint, notes: list[str]) -> None:
    if watcher:
        watcher.resuming(last, notes)
        return
    for note in notes:
        warnings.warn(note, stacklevel=4)


@contextmanager
def _marked(run: Run, new: bool) -> Iterator[None]:
    """What fails while it is prepared leaves its mark and what was recorded; bad input only if there is a record."""
    try:
        yield
    except CannotWrite:
        raise
    except BadInput as error:
        if has_driven(run.path / "traffic"):
            with suppress(CannotWrite):
                run.mark("FAILED", f"{error}\n")
        elif new:
            rmtree(run.path, ignore_errors=True)
        raise
    except Exception as error:
        with suppress(CannotWrite):
            run.mark("FAILED", traceback.format_exc())
        if isinstance(error, VeflError):
            raise
        raise RunFailed(f"{type(error).__name__}: {error} (traceback in {run.path / 'FAILED'})") from error


@contextmanager
def _unbroken(run: Run, session: Session) -> Iterator[None]:
    """After an error keep what there is for whoever looks into it, and say in one sentence what happened."""
    try:
        yield
    except CannotWrite:
        raise  # nothing is wrong with the run: it can go on
    except Exception as error:
        with suppress(CannotWrite):
            run.mark("FAILED", traceback.format_exc())
            session.salvage()
        if isinstance(error, VeflError) and not isinstance(error, BadInput):
            raise
        message = error.__cause__ or error  # SimPy rebuilds exceptions, and not all can be
        raise RunFailed(f"{type(message).__name__}: {message} (traceback in {run.path / 'FAILED'})") from error
