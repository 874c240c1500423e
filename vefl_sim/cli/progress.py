"""Progress displays of a run and of a sweep: live lines on a terminal, plain lines otherwise."""

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from vefl_sim.core.clock import to_s
from vefl_sim.core.progress import heard_by
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.kinds import Rule, rule_mse
from vefl_sim.learning.metric import metric_of
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.checkpoint import Checkpoint
from vefl_sim.records.run_directory import Run
from vefl_sim.simulation.scenario import Scenario, make_scheme
from vefl_sim.sweep.runner import PointTask, SweepWatcher, Tasks

_QUIET_S = 10.0  # between two lines about the preparation, without a terminal
_MOST_SHOWN = 12  # running points listed, one line each
_OVERVIEW_EVERY_S = 60.0  # without a terminal: time between two overview lines of a sweep
_SMOOTHING_S = 60.0  # after this time, or what is left of the run, a new estimate of the end counts 63 %
_STATES = ("done", "running", "waiting", "stopped", "failed")
_REPEAT_S = 20.0  # between two lines about the same step of other work, without a terminal


class TimeLeft:
    """The remaining time that is shown; the expected end follows new estimates slowly, so that it does not jump."""

    def __init__(self) -> None:
        self._end_s, self._estimated_s = 0.0, 0.0  # expected end, and when it was last estimated
        self._is_known = False

    def text(self, now_s: float, left_s: float) -> str:
        """The remaining time after a new estimate of it."""
        shown_s = max(self._end_s - now_s, 1.0)
        trust = 1 - math.exp((self._estimated_s - now_s) / min(_SMOOTHING_S, shown_s)) if self._is_known else 1.0
        self._end_s += trust * (now_s + left_s - self._end_s)
        self._estimated_s, self._is_known = now_s, True
        return clock(max(0.0, self._end_s - now_s) if left_s else 0.0)


class RunProgress:
    """Prints the progress of a run after each round."""

    def __init__(self, console: "PipedConsole", live: Live | None) -> None:
        self._console, self._live = console, live
        self._experiment: Experiment | None = None
        self._began, self._first_s = 0.0, 0.0  # start of this session: wall-clock and simulated time
        self._warm: tuple[float, float, float] | None = None  # after the first round: wall time, share, simulated time
        self._left = TimeLeft()
        self._result = ""  # of the last evaluation
        self._shown_s = 0.0  # when the last line was shown
        self._steps: set[str] = set()  # of the preparation that have begun
        self.run: Run | None = None  # set when the run has started
        self.rule: Rule | None = None
        self.warnings: list[str] = []
        self._windows = False  # asynchronous schemes have windows of length t_th instead of rounds

    def preparing(self, experiment: Experiment) -> None:
        """Report that data, traffic and model are being prepared, which takes a few seconds."""
        self._experiment = experiment
        self._show(f"{experiment.run.name}: preparing traffic, data and model", keep=True)

    def working(self, step: str, so_far: str) -> None:
        """Show the step of the preparation; without a terminal, once if its end is unknown, else every few seconds."""
        begins, self._steps = not so_far and step not in self._steps, self._steps | {step}
        if self._live is not None or begins or (so_far and time.monotonic() - self._shown_s > _QUIET_S):
            self._show(f"{step}: {so_far}" if so_far else step)

    def started(self, run: Run, scenario: Scenario) -> None:
        """Print the numbers of CVs, samples and model parameters."""
        self._began, self.run = time.perf_counter(), run
        self.rule = rule_mse(scenario.experiment.data, scenario.dataset)
        self._windows = make_scheme(scenario.experiment).buffer is not None
        self._show(
            f"{len(scenario.shards)} different CVs will be in coverage, {len(scenario.dataset.train_targets)} samples, "
            f"{scenario.learner.parameters} parameters ({scenario.payload_bits / 1e3:.1f} kbit per update)",
            keep=True,
        )

    def resuming(self, checkpoint: Checkpoint, notes: list[str]) -> None:
        """Print from which round the run continues, and `notes` about differences to the earlier session."""
        for note in notes:
            self._show(f"note: {note}", keep=True)
        self._first_s = to_s(checkpoint.time_ns)
        self._show(f"continues after round {checkpoint.round - 1}, {self._first_s:.1f} s simulated", keep=True)

    def warned(self, sentence: str) -> None:
        """Print a warning, and keep it for the end of the run."""
        self.warnings.append(sentence)
        self._show(f"warning: {sentence}", keep=True)

    def stopping(self) -> None:
        """Confirm the stop request; called from a signal handler, where only a plain write is safe."""
        if not self._console.quiet:
            os.write(2, b"\nstopping after this round; interrupt again to stop immediately\n")

    def round(self, report: RoundReport) -> None:
        """Print one line: round, simulated time, speed, delivered updates, accuracy or other metric, remaining time."""
        e = self._experiment
        assert e
        if (found := report.evaluation) and (text := _metric_text(e.learning.loss, found.accuracy, found.loss)):
            self._result = f" | {text}"
        wall_s = time.perf_counter() - self._began
        delivered = sum(outcome.lost is None for outcome in report.outcomes)
        is_fixed = not e.server.early_close or e.run.rounds is not None
        rounds = f"{report.round:>{len(str(e.rounds))}}/{e.rounds}" if is_fixed else f"{report.round:>4}"
        done = report.round / e.rounds if is_fixed else report.end_ns / e.duration_ns
        speed, left = self._pace(wall_s, done, to_s(report.end_ns))
        what, steps = ("window", f", {report.steps} steps") if self._windows else ("round", "")
        self._show(
            f"{what} {rounds} | {to_s(report.end_ns):7.1f} s simulated | {speed:6.2f} s/s"
            f" | {delivered:2d} of {len(report.outcomes):2d} delivered{steps}"
            f"{self._result} | {left} left"
        )

    def _pace(self, wall_s: float, done: float, time_s: float) -> tuple[float, str]:
        """Simulated over wall time, and remaining wall time, of the rounds after the first one, which also compiles."""
        if self._warm is None:
            self._warm = wall_s, done, time_s
            return (time_s - self._first_s) / wall_s, clock(0) if done >= 1 else "?"
        began_s, before, first_s = self._warm
        spent_s = wall_s - began_s
        return (time_s - first_s) / spent_s, self._left.text(wall_s, max(0.0, spent_s * (1 - done) / (done - before)))

    def _show(self, line: str, keep: bool = False) -> None:
        self._shown_s = time.monotonic()
        if self._live is not None and not keep:
            self._live.update(Text(line))
        else:
            self._console.show(line)


def _metric_text(objective: str, accuracy: float | None, loss: float | None) -> str:
    """The number by which a run is judged, with its name; empty if there is none."""
    metric = metric_of(objective, has_accuracy=accuracy is not None)
    value = metric.value(accuracy, loss)
    return "" if value is None else f"{metric.name} {metric.text(value)}"


class SweepProgress(SweepWatcher):
    """Prints each point that ends, and the remaining time of the sweep."""

    def __init__(self, console: "PipedConsole", live: Live | None) -> None:
        self._console, self._live, self._last_s = console, live, time.monotonic()
        self._left = TimeLeft()
        self.warnings: list[str] = []

    def changed(self, tasks: Tasks, task: PointTask) -> None:
        """Print one line for a point that ended or will be tried again; a started point only updates the overview."""
        if task.status == "running":
            self.ticked(tasks)
            return
        count = f"[{len(tasks.having('done', 'failed')):>{len(str(len(tasks)))}}/{len(tasks)}]"
        outcome = _waiting(task) if task.status == "waiting" else f"{task.status:7} {task.point.title}{_result(task)}"
        self._print(f"{count} {outcome} | {self._left.text(time.monotonic(), tasks.left_s())} left")

    def warned(self, task: PointTask, sentence: str) -> None:
        """Print a warning about a point, and keep it for the end."""
        self.warnings.append(f"warning {task.point.title}: {sentence}")
        self._print(self.warnings[-1])

    def ticked(self, tasks: Tasks) -> None:
        """Update the overview of the sweep and the list of running points."""
        if self._live:
            lines = [self._overview(tasks), *_running(tasks)]
            self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True))
        elif time.monotonic() - self._last_s >= _OVERVIEW_EVERY_S:
            self._print(self._overview(tasks))

    def stopping(self) -> None:
        """Confirm the stop request; called from a signal handler, where only a plain write is safe."""
        if not self._console.quiet:
            os.write(2, b"\nstopping after the current rounds; interrupt again to stop immediately\n")

    def _overview(self, tasks: Tasks) -> str:
        counts = [f"{len(some)} {status}" for status in _STATES if (some := tasks.having(status))]
        return f"{len(tasks)} points: {', '.join(counts)} | {self._left.text(time.monotonic(), tasks.left_s())} left"

    def _print(self, line: str) -> None:
        self._last_s = time.monotonic()
        self._console.show(line)


def _running(tasks: Tasks) -> Iterator[str]:
    running = tasks.having("running")
    for task in running[:_MOST_SHOWN]:
        yield f"  {task.share:4.0%} {task.point.title} | {clock(tasks.factor * task.left_s)} left"
    if len(running) > _MOST_SHOWN:
        yield f"  … and {len(running) - _MOST_SHOWN} more"


def _waiting(task: PointTask) -> str:
    what = "retried" if task.deaths else "waiting"
    return f"{what:7} {task.point.title}: {task.error}"


def _result(task: PointTask) -> str:
    if task.status == "failed":
        return f": {task.error}"
    text = _metric_text(task.point.experiment.learning.loss, task.accuracy, task.loss)
    wall = "" if task.wall_s is None else f", {clock(task.wall_s)}"
    return f", {text}{wall}" if text else wall


@contextmanager
def showing_steps(quiet: bool = False) -> Iterator[None]:
    """Show steps on stderr: one live line on a terminal, else one line per step and every 20 s of a long step."""
    console, last = Console(stderr=True, quiet=quiet), ("", 0.0)  # the last line: its step, its time in s

    def show(step: str, so_far: str) -> None:
        nonlocal last
        line, now_s = f"{step}: {so_far}" if so_far else step, time.monotonic()
        if status:
            status.update(escape(line))
        elif step != last[0] or now_s - last[1] > _REPEAT_S:
            last = step, now_s
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    with console.status("…") if console.is_terminal else nullcontext() as status, heard_by(show):
        yield


class PipedConsole(Console):
    """A console whose output pipe may be closed (`… | head`) without ending the run."""

    def show(self, line: str) -> None:
        """Print a line as it is: not coloured, not wrapped, and square brackets are no markup."""
        self.print(line, highlight=False, markup=False, soft_wrap=True)
        self.file.flush()  # so that a log file is readable while a run continues

    def on_broken_pipe(self) -> None:
        """Stop all output."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def live_display(console: Console) -> AbstractContextManager[Live | None]:
    """The live lines of a progress display; None without a terminal."""
    return Live(console=console, refresh_per_second=4) if console.is_terminal else nullcontext()


def clock(seconds: float) -> str:
    """Format a duration as h:mm:ss or m:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
