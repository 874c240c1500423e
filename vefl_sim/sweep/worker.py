"""A process that runs one point: it reads a job from its input and writes reports to its output, as lines of JSON.

A line "stop" asks it to save and end. When its input ends, the process that started it is gone, and it ends at once:
the run is kept up to its last checkpoint, and its lock is released.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
import tomllib
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from vefl_sim.core.errors import BadInput, NotResumable, RunInterrupted, RunLocked, RunNotFound, VeflError
from vefl_sim.core.files import first_free
from vefl_sim.core.stopping import stopping_at_once
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import validated
from vefl_sim.records.identity import Identity, package_digest
from vefl_sim.records.run_directory import Run, existing_run
from vefl_sim.sweep.job import Job, JobState

_REPORT_INTERVAL_S = 0.5


class ReportWriter:
    """A watcher of the run that writes a report on its progress at most every half second, and warnings at once."""

    def __init__(self, output: TextIO, digest: str) -> None:
        self._output, self._digest = output, digest
        self._rounds, self._last_s = 1, 0.0
        self.run = ""

    def preparing(self, experiment: Any) -> None:
        """Note the number of rounds, and report the start."""
        self._rounds = experiment.rounds
        self._progress(0)

    def started(self, run: Any, scenario: Any) -> None:
        """Note the name of the run, which the next round reports at once."""
        self.run, self._last_s = run.path.name, 0.0

    def resuming(self, checkpoint: Any, notes: list[str]) -> None:
        """Report the share of the rounds that the checkpoint contains."""
        self._progress(checkpoint.round - 1)

    def round(self, report: Any) -> None:
        """Report the share of the rounds that are done."""
        if time.monotonic() - self._last_s >= _REPORT_INTERVAL_S:
            self._progress(report.round)

    def warned(self, sentence: str) -> None:
        """Report that a watcher of the run has failed."""
        self.write(warning=sentence)

    def _progress(self, rounds: int) -> None:
        self._last_s = time.monotonic()
        self.write(share=min(rounds / self._rounds, 1.0), process=os.getpid(), run=self.run)

    def write(self, **fields: Any) -> None:
        """Write a report with these fields."""
        print(json.dumps({"digest": self._digest, **fields}), file=self._output, flush=True)


def main() -> None:
    """Run the job on standard input, and report its end, also if it fails."""
    job = Job(**json.loads(sys.stdin.readline()))
    with os.fdopen(os.dup(1), "w") as reports:
        os.dup2(2, 1)  # user-defined parts may print; the pipe is for reports only
        threading.Thread(target=_wait_for_stop, daemon=True).start()
        writer = ReportWriter(reports, job.digest)
        state, run, error = run_job(job, writer)
        writer.write(state=state, run=run, error=error, peak_mb=_peak_mb())


def run_job(job: Job, writer: ReportWriter) -> tuple[JobState, str, str]:
    """Run a job; returns its state, the name of its run, and the error."""
    from vefl_sim.simulation.watcher import warnings_told

    try:
        with warnings_told(writer.warned), stopping_at_once():  # until the run itself handles signals and can save
            return "done", _simulate(job, writer).path.name, ""
    except RunLocked as error:
        return "busy", writer.run, str(error)
    except (KeyboardInterrupt, RunInterrupted):
        return "stopped", writer.run, ""
    except (VeflError, OSError, MemoryError) as error:
        return "failed", writer.run, str(error) or type(error).__name__
    except (Exception, SystemExit) as error:
        return "failed", writer.run, f"{type(error).__name__}: {error}"


def _simulate(job: Job, writer: ReportWriter) -> Run:
    """Run the experiment, or resume it; a damaged run is renamed and run again."""
    from vefl_sim.simulation.run import resume, simulate  # slow to import

    if package_digest() != job.source:
        raise BadInput(f"The worker has other sources of vefl_sim ({package_digest()}, not {job.source}): update it.")
    experiment, out = _experiment(job), Path(job.out)
    while True:
        before = None if job.fresh else existing_run(Identity(experiment), out)
        try:
            if job.run:
                run = resume(out / job.run, watcher=writer)
            else:
                run = simulate(experiment, out=out, fresh=job.fresh, watcher=writer)
            run.require_complete()
            return run
        except (NotResumable, RunNotFound):
            if before is None:
                raise
            # Kept for inspection, under a name that is not taken for a run of this point.
            before.path.rename(first_free(before.path.with_name(f"{before.path.name}.damaged{n}") for n in count(1)))


def _experiment(job: Job) -> Experiment:
    experiment = validated(tomllib.loads(job.toml))
    learning = experiment.learning.model_copy(update={"threads": 1})  # other points use the other cores
    return experiment.model_copy(update={"learning": learning})


def _wait_for_stop() -> None:
    """Stop the run at a line "stop", and end the process when its input ends."""
    for line in sys.stdin:
        if line.strip() == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


if __name__ == "__main__":
    main()
