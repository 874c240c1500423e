"""What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vefl_sim.core.clock import to_s
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.checkpoint import Checkpoint
from vefl_sim.records.run_directory import Run
from vefl_sim.simulation.parts import is_asynchronous
from vefl_sim.simulation.scenario import Scenario


class RunProgress:
    """Prints each round as it closes."""

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console = console
        self._live = live
        self._rounds, self._duration_s, self._fixed = 0, 0.0, True
        self._began, self._first_round, self._first_s = 0.0, 0, 0.0  # of this session
        self._accuracy: float | None = None
        self.run: Run | None = None  # once it has begun
        self._windows = False  # of t_th, instead of rounds

    def preparing(self, experiment: Experiment) -> None:
        """Data and traffic take a few seconds."""
        self._rounds, self._duration_s = experiment.rounds, to_s(experiment.duration_ns)
        self._fixed = not experiment.server.early_close or experiment.run.rounds is not None
        self._show(f"{experiment.run.name}: preparing traffic, data and model", keep=True)

    def driving(self, done_s: float, of_s: float) -> None:
        """How far SUMO is."""
        self._show(f"SUMO: {done_s:.0f} of {of_s:.0f} s driven")

    def started(self, run: Run, scenario: Scenario) -> None:
        """Say what was prepared."""
        self._began, self.run = time.perf_counter(), run
        self._windows = is_asynchronous(scenario.scheme)
        self._show(
            f"{len(scenario.shards)} different CVs will be in coverage, {len(scenario.dataset.train_labels)} samples, "
            f"{scenario.learner.parameters} parameters ({scenario.payload_bits / 1e3:.1f} kbit per update)",
            keep=True,
        )

    def resuming(self, checkpoint: Checkpoint, notes: list[str]) -> None:
        """Say where it goes on, and what is not as it should be."""
        for note in notes:
            self._show(f"note: {note}", keep=True)
        self._first_round, self._first_s = checkpoint.round - 1, to_s(checkpoint.time_ns)
        self._show(f"continues after round {self._first_round}, {self._first_s:.1f} s simulated", keep=True)

    def stopping(self) -> None:
        """A signal handler may interrupt anything, so nothing but the plainest way to write will do."""
        if not self._console.quiet:
            os.write(2, b"\nstopping after this round; once more stops at once\n")

    def round(self, closed: RoundReport) -> None:
        """One line: simulated time, speed, round, accuracy, time to go."""
        if closed.evaluation:
            self._accuracy = closed.evaluation.accuracy
        wall_s = time.perf_counter() - self._began
        delivered = sum(outcome.lost is None for outcome in closed.outcomes)
        accuracy = "" if self._accuracy is None else f" | accuracy {self._accuracy:.4f}"
        rounds = f"{closed.round:>{len(str(self._rounds))}}/{self._rounds}" if self._fixed else f"{closed.round:>4}"
        speed = (to_s(closed.end_ns) - self._first_s) / wall_s
        before, done = self._share(self._first_round, self._first_s), self._share(closed.round, to_s(closed.end_ns))
        left = clock(wall_s * (1 - done) / (done - before)) if done > before else "?"
        what, steps = ("window", f", {closed.steps} steps") if self._windows else ("round", "")
        self._show(
            f"{what} {rounds} | {to_s(closed.end_ns):7.1f} s simulated | {speed:6.2f} s/s"
            f" | {delivered:2d} of {len(closed.outcomes):2d} delivered{steps}"
            f"{accuracy} | {left} to go"
        )

    def _share(self, rounds: int, time_s: float) -> float:
        """How much of the run that is."""
        return rounds / self._rounds if self._fixed else time_s / self._duration_s

    def _show(self, line: str, keep: bool = False) -> None:
        if self._live is not None and not keep:
            self._live.update(Text(line))
        else:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
            self._console.file.flush()  # who writes to a file wants to read it, too


class PipedConsole(Console):
    """A console whose reader may go (`… | head`) without ending the run."""

    def on_broken_pipe(self) -> None:
        """Say nothing any more."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def run_display(console: Console) -> Iterator[RunProgress]:
    """A progress display for the time of a run."""
    if not console.is_terminal:
        yield RunProgress(console, None)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield RunProgress(console, live)


def clock(seconds: float) -> str:
    """As h:mm:ss, or m:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
