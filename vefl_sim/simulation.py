"""Runs a scenario: owns the SimPy environment, the run directory and the way a run ends."""

import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from simpy import Event

from vefl_sim.audit import Audit
from vefl_sim.clock import to_s
from vefl_sim.errors import BadInput, ExperimentError, RunFailed, RunInterrupted, VeflError
from vefl_sim.experiment import Experiment
from vefl_sim.parts import is_part, part_names
from vefl_sim.protocol.environment import NanosecondEnvironment
from vefl_sim.protocol.messages import ClosedRound
from vefl_sim.recorder import Recorder
from vefl_sim.results import Run, create_run, finished_run
from vefl_sim.scenario import Scenario, prepare, wire
from vefl_sim.summary import Tally


class Watcher(Protocol):
    """Somebody who wants to see how a run goes."""

    def preparing(self, experiment: Experiment) -> None:
        """Before data and traffic are made."""
        ...

    def started(self, run: Run, scenario: Scenario) -> None:
        """The run directory exists."""
        ...

    def round(self, closed: ClosedRound) -> None:
        """A round is over."""
        ...


def simulate(
    experiment: Experiment,
    *,
    out: str | Path = "runs",
    fresh: bool = False,
    toml: str | None = None,
    settings: Sequence[str] = (),
    watcher: Watcher | None = None,
) -> Run:
    """Run an experiment and return its directory; a finished run of the same configuration is returned as it is.

    `fresh` runs again in another directory; `toml` and `settings` are kept beside the results as the user wrote them;
    `watcher` hears of every round.
    """
    out = Path(out)
    if not fresh and (run := finished_run(experiment, out)):
        return run
    if watcher:
        watcher.preparing(experiment)
    began = time.perf_counter()
    scenario = prepared(experiment)
    prepare_s = time.perf_counter() - began
    run = create_run(experiment, out, toml, settings)
    if watcher:
        watcher.started(run, scenario)
    with _unbroken(run):
        _simulate(scenario, run, watcher, prepare_s)
    return run


def prepared(experiment: Experiment) -> Scenario:
    """`prepare`, with whatever a part of the user's raises turned into one sentence."""
    try:
        return prepare(experiment)
    except VeflError:
        raise
    except Exception as error:
        if not part_names(experiment):
            raise  # then it is ours, and a traceback is what we need
        raise ExperimentError(f"The experiment cannot be prepared: {type(error).__name__}: {error}") from error


def _simulate(scenario: Scenario, run: Run, watcher: Watcher | None, prepare_s: float) -> None:
    began = time.perf_counter()
    env = NanosecondEnvironment()
    recorder = Recorder(run.path / "tables", scenario.experiment.trace)
    tally, audit = Tally(), _audit(scenario)

    def report(closed: ClosedRound) -> None:
        recorder.round(closed)
        audit.round(closed)
        tally.add(closed)
        if watcher:
            watcher.round(closed)

    try:
        actors = wire(scenario, env, recorder, audit, report)
        stopped = _run(env, actors.processes(env))
        audit.close(actors.ledger)
    finally:
        recorder.close()
    figures = (
        tally.figures()
        | audit.figures()
        | {
            "simulated_s": to_s(env.now),
            "prepare_s": round(prepare_s, 3),
            "wall_s": round(time.perf_counter() - began, 3),
            "content_digest": run.content_digest(),
        }
    )
    run.finish({"state": "interrupted" if stopped else "done"} | figures)
    if stopped:
        raise RunInterrupted(
            f"stopped after {figures['rounds']} rounds, {to_s(env.now):.1f} simulated seconds, which are kept in "
            f"{run.path}. The same command starts again from the beginning, in another directory."
        )
    run.mark("DONE", figures["content_digest"])


def _audit(scenario: Scenario) -> Audit:
    experiment = scenario.experiment
    return Audit(scenario.link, experiment.slots.slot_s, binding=not is_part(experiment.scheme.kind))


def _run(env: NanosecondEnvironment, last: Event) -> bool:
    """Run until `last` has happened; True if Ctrl-C or SIGTERM came before, at a clean event boundary."""
    stop = env.event()

    def on_signal(number: int, frame: Any) -> None:
        if stop.triggered:
            raise KeyboardInterrupt  # twice: the user means it
        stop.succeed()

    with _handling(on_signal):
        env.run(until=last | stop)
    return not last.triggered


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)


@contextmanager
def _unbroken(run: Run) -> Iterator[None]:
    """Mark a run that breaks as FAILED, with the traceback, and say so in one sentence."""
    try:
        yield
    except RunInterrupted:
        raise
    except Exception as error:
        run.mark("FAILED", traceback.format_exc())
        if isinstance(error, VeflError) and not isinstance(error, BadInput):
            raise
        told = error.__cause__ or error  # SimPy rebuilds exceptions, and not all can be
        raise RunFailed(f"{type(told).__name__}: {told} (traceback in {run.path / 'FAILED'})") from error
