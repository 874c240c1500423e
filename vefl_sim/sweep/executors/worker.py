"""A process that runs one point: a job on its input, reports on its output, each a line of JSON.

A line "stop" asks it to save and end. When its input ends, whoever started it is gone, and it ends at once: the run is
kept as far as its last checkpoint, and its lock is free for the next.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from vefl_sim.sweep.executors.executor import Job, JobOutcome

if TYPE_CHECKING:
    from vefl_sim.experiment.experiment import Experiment
    from vefl_sim.records.run_directory import Run

_SECONDS_BETWEEN = 0.5  # of two reports


class Teller:
    """Watches the run, and tells how far it is."""

    def __init__(self, to: TextIO, digest: str) -> None:
        self._to, self._digest = to, digest
        self._rounds, self._last = 1, 0.0
        self.run = ""

    def preparing(self, experiment: Any) -> None:
        """The end is known."""
        self._rounds = experiment.rounds
        self._tell(0.0)

    def driving(self, done_s: float, of_s: float) -> None:
        """Not counted."""

    def started(self, run: Any, scenario: Any) -> None:
        """The run has a name."""
        self.run = run.path.name

    def resuming(self, checkpoint: Any, notes: list[str]) -> None:
        """Some of it is done."""
        self._tell((checkpoint.round - 1) / self._rounds)

    def round(self, closed: Any) -> None:
        """One more is done."""
        if time.monotonic() - self._last >= _SECONDS_BETWEEN:
            self._tell(closed.round / self._rounds)

    def stopping(self) -> None:
        """Whoever asked for it knows."""

    def ended(self, outcome: JobOutcome) -> None:
        """The last word."""
        self._write({"digest": self._digest, "outcome": asdict(outcome)})

    def _tell(self, share: float) -> None:
        self._last = time.monotonic()
        self._write({"digest": self._digest, "share": min(share, 1.0), "process": os.getpid()})

    def _write(self, message: dict[str, Any]) -> None:
        print(json.dumps(message), file=self._to, flush=True)


def run_job() -> None:
    """Run the point, whatever becomes of it."""
    job = Job.of(sys.stdin.readline())
    with os.fdopen(os.dup(1), "w") as reports:
        os.dup2(2, 1)  # what a part of the user's prints is not for our reader
        threading.Thread(target=_listen, daemon=True).start()
        teller, began = Teller(reports, job.digest), time.perf_counter()
        state, run, error = _ended(job, teller)
        teller.ended(JobOutcome(state, run, error, round(time.perf_counter() - began, 3), _peak_mb()))


def _ended(job: Job, teller: Teller) -> Any:
    """State, run and error."""
    from vefl_sim.core.errors import RunInterrupted, RunLocked, VeflError
    from vefl_sim.core.stopping import stopping_at_once

    try:
        with stopping_at_once():  # before the run can save anything
            return "done", _simulated(job, teller).path.name, ""
    except RunLocked as error:
        return "busy", teller.run, str(error)
    except (KeyboardInterrupt, RunInterrupted):
        return "stopped", teller.run, ""
    except (VeflError, OSError, MemoryError) as error:
        return "failed", teller.run, str(error) or type(error).__name__
    except (Exception, SystemExit) as error:
        return "failed", teller.run, f"{type(error).__name__}: {error}"


def _simulated(job: Job, teller: Teller) -> "Run":
    from vefl_sim.core.errors import BadInput, NotResumable, RunNotFound
    from vefl_sim.records.identity import package_digest
    from vefl_sim.records.run_directory import existing_run
    from vefl_sim.simulation.run import simulate

    if package_digest() != job.source:
        raise BadInput(f"The worker has other sources of vefl_sim ({package_digest()}, not {job.source}): update it.")
    experiment, out = _experiment(job), Path(job.out)
    while True:
        before = existing_run(experiment, out)
        try:
            run = simulate(experiment, out=out, watcher=teller)
            run.require_whole()
            return run
        except (NotResumable, RunNotFound):
            if before is None:
                raise
            _set_aside(before.path)


def _set_aside(run: Path) -> None:
    """A damaged run is left for its owner to look at, under a name by which nobody looks for it."""
    for number in count(1):
        aside = run.with_name(f"{run.name}.damaged{number}")
        if not aside.exists():
            run.rename(aside)
            return


def _experiment(job: Job) -> "Experiment":
    import tomllib

    from vefl_sim.experiment.toml import validated

    experiment = validated(tomllib.loads(job.toml))
    learning = experiment.learning.model_copy(update={"threads": 1})  # others have the other cores
    return experiment.model_copy(update={"learning": learning})


def _listen() -> None:
    for line in sys.stdin:
        if line.strip() == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)


def _peak_mb() -> float:
    with suppress(ImportError):  # not on every system
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
    return 0.0


if __name__ == "__main__":
    run_job()
