"""Watchers of runs for tests: some note what they are told, some raise."""

from vefl_sim import Experiment, Run


class Diary:
    """Notes every call; may raise an exception in one of them."""

    def __init__(self, raise_in: str = "", exception: type[BaseException] = ValueError) -> None:
        self.calls, self.worked, self._raise_in, self._exception = [], set(), raise_in, exception

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call == self._raise_in:
            raise self._exception("mine")

    def preparing(self, experiment) -> None:
        self._note(f"preparing {experiment.run.name}")

    def working(self, step, so_far) -> None:
        self.worked = self.worked | {step}

    def started(self, run, scenario) -> None:
        self._note(f"started {len(scenario.shards)} CVs")

    def resuming(self, checkpoint, notes) -> None:
        self._note(f"resuming round {checkpoint.round}")

    def round(self, report) -> None:
        self._note(f"round {report.round}")

    def stopping(self) -> None:
        self._note("stopping")

    def warned(self, sentence) -> None:
        self._note(f"warned: {sentence}")

    def ended(self, state) -> None:
        self._note(f"ended {state}")


made: list["Listener"] = []


class Listener(Diary):
    """A diary that the tests can find."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.experiment = experiment
        made.append(self)


class OnlyStarted:
    """A watcher with one method, which leaves a mark beside the run."""

    def __init__(self, experiment: Experiment) -> None:
        pass

    def started(self, run: Run, scenario) -> None:
        run.path.with_suffix(".started").touch()


def raising_in(stage: str):
    """A part that makes watchers which raise in one method, every time."""

    def make(experiment: Experiment) -> Listener:
        listener = Listener(experiment)
        setattr(listener, stage, lambda *arguments: 1 / 0)
        return listener

    return make


STAGES = ("preparing", "working", "resuming", "started", "round", "stopping", "ended")
globals().update({f"raising_in_{stage}": raising_in(stage) for stage in STAGES})


def unable(experiment: Experiment) -> None:
    raise OSError("no such server")


def text(experiment: Experiment) -> str:
    return "no watcher"


class NeedsMore(OnlyStarted):
    packages = ("json", "a_tracker_that_is_not_installed")
