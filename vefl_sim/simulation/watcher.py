"""Watchers of a run: objects that are told what happens in it, for a display or an experiment tracker."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

from vefl_sim.core.errors import ExperimentError, FinishedRun, RunInterrupted, VeflWarning, first_line
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import PART_NAME
from vefl_sim.experiment.plugins import load_part, make_part, require_protocol
from vefl_sim.records.checkpoint import Checkpoint
from vefl_sim.records.run_directory import Run

if TYPE_CHECKING:  # slow to import, and not needed to find out whether a watcher can be used
    from vefl_sim.protocol.messages import RoundReport
    from vefl_sim.simulation.scenario import Scenario

RunEnd = Literal["done", "stopped", "failed"]
_KEY = "run.watch"


class RunWatcher(Protocol):
    """Callbacks that report the progress of a run; a watcher may leave some of them out."""

    def preparing(self, experiment: Experiment) -> None:
        """Data and traffic are about to be prepared."""

    def working(self, step: str, so_far: str) -> None:
        """Preparing, or compiling, is at this step, and this far; called often."""

    def resuming(self, checkpoint: Checkpoint, notes: list[str]) -> None:
        """The run continues from a checkpoint; `notes` are warnings, for example about changed libraries."""

    def started(self, run: Run, scenario: "Scenario") -> None:
        """Everything is prepared, and the first round is about to start."""

    def round(self, report: "RoundReport") -> None:
        """A round has ended."""

    def stopping(self) -> None:
        """The run was asked to stop and will, after this round. Called from within a signal handler."""

    def warned(self, sentence: str) -> None:
        """Something went wrong that does not stop the run: another watcher has failed."""

    def ended(self, state: RunEnd) -> None:
        """The run that has `started` is done, was stopped or failed; the last call."""


@contextmanager
def warnings_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Within this block, `tell` is called with the warnings of this package, which Python would print with a path."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def told(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            tell(str(message)) if issubclass(category, VeflWarning) else show(message, category, *where, **more)

        warnings.simplefilter("always", VeflWarning)
        warnings.simplefilter("ignore", FinishedRun)  # who uses this block says so, or does not care
        warnings.showwarning = told
        yield


class Watchers:
    """The watcher that the caller of a run has given, if any, and those that `run.watch` names.

    What the given watcher raises ends the run. A named watcher that raises is reported once and not called again,
    because no result depends on it.
    """

    def __init__(self, given: Any, names: Iterable[str] = (), experiment: Experiment | None = None) -> None:
        """Make the named watchers; one that cannot work is refused."""
        self._given, self._named = given, dict[str, Any]()
        self._failures: list[str] = []  # those that are not reported yet
        for name in dict.fromkeys(names):
            require_watcher(name)
            self._named[name] = make_part(_KEY, name, experiment)
            require_protocol(f'{_KEY} = "{name}"', self._named[name], RunWatcher, partly=True)

    def tell(self, method: str, *arguments: Any) -> None:
        """Call a method of every watcher that has it; that of the given one is called last with the end of the run."""
        if method != "ended":
            self._tell_given(method, *arguments)
        for name, watcher in [*self._named.items()]:
            try:
                if call := _own(watcher, method):
                    call(*arguments)
            except (Exception, SystemExit) as error:
                if not self._named.pop(name, None):
                    continue  # a signal came in this call, and its handler has reported the watcher already
                raised = f"{type(error).__name__}: {first_line(error)}"
                self._failures.append(f'{_KEY} = "{name}" failed in {method} ({raised}); the run does not need it.')
        while self._failures and method != "stopping":  # within a signal handler nothing can be shown
            sentence = self._failures.pop(0)
            if _own(self._given, "warned"):
                self._given.warned(sentence)
            else:
                warnings.warn(sentence, VeflWarning, stacklevel=2)
        if method == "ended":
            self._tell_given(method, *arguments)

    def _tell_given(self, method: str, *arguments: Any) -> None:
        if call := _own(self._given, method):
            call(*arguments)

    def resuming(self, checkpoint: Checkpoint, notes: list[str]) -> None:
        """Tell that the run continues from a checkpoint; Python warns of the notes if the caller does not listen."""
        if not _own(self._given, "resuming"):
            for note in notes:
                warnings.warn(note, VeflWarning, stacklevel=4)
        self.tell("resuming", checkpoint, notes)

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Tell how the run has ended when the block ends; nothing if the process is killed."""
        try:
            yield
        except (RunInterrupted, KeyboardInterrupt):
            self.tell("ended", "stopped")
            raise
        except Exception:
            self.tell("ended", "failed")
            raise
        self.tell("ended", "done")


def require_watcher(name: str) -> None:
    """Refuse the name of a watcher that cannot be imported, or that needs a package which is not installed."""
    if not re.match(PART_NAME, name):
        raise ExperimentError(f"{_KEY} = {name!r} must be written as module:name.")
    part = load_part(_KEY, name)
    for package in getattr(part, "packages", ()):
        if find_spec(package) is None:
            raise ExperimentError(f"{_KEY} = \"{name}\" needs {package}: pip install 'vefl_sim[trackers]'.")


def _own(watcher: object, method: str) -> Callable[..., None] | None:
    """A method of a watcher; None if it has none, or only that of the protocol, which does nothing."""
    found: Callable[..., None] | None = getattr(watcher, method, None)
    return None if getattr(found, "__func__", None) is getattr(RunWatcher, method) else found
