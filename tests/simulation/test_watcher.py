"""A watcher is called at every stage of a run, may leave methods out, and cannot fail silently."""

from pathlib import Path

import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, only
from vefl_sim import BadInput, RunFailed, RunWatcher, from_tables, resume, simulate
from vefl_sim.cli.progress import PipedConsole, RunProgress
from vefl_sim.core.kernel import COMPILING

TWO_ROUNDS = from_tables(EXPERIMENT | {"run": {"name": "watched", "rounds": 2, "checkpoint_every": 1}})


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


def test_a_watcher_is_called_in_the_order_of_the_run(tmp_path: Path) -> None:
    first, second, third = Diary("round 2", Kill), Diary(), Diary()
    with pytest.raises(Kill):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=first)
    assert first.calls == ["preparing watched", "started 3 CVs", "round 1", "round 2"]
    run = resume(only(tmp_path), watcher=second)
    assert second.calls == ["preparing watched", "resuming round 2", "started 3 CVs", "round 2"]
    assert resume(run, watcher=third).is_done
    assert third.calls == []


class OnlyRounds(RunWatcher):
    """Derived from the protocol, so the other methods do nothing."""

    def __init__(self) -> None:
        self.delivered: list[int] = []

    def round(self, report) -> None:
        self.delivered.append(sum(outcome.lost is None for outcome in report.outcomes))


def test_a_derived_watcher_may_leave_methods_out(tmp_path: Path) -> None:
    watcher = OnlyRounds()
    run = simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher)
    assert watcher.delivered == run.rounds["delivered"].tolist() == [2, 1]


class NotDerived:
    """A watcher without five of the six methods."""

    def round(self, report) -> None:
        pass


def test_an_incomplete_watcher_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^watcher: NotDerived has no method preparing\(experiment\) of vefl_sim.RunW"):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=NotDerived())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stage", ["preparing watched", "started 3 CVs", "round 2"])
def test_an_exception_in_a_watcher_fails_the_run_which_can_be_resumed(stage: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"ValueError: mine \(traceback in "):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=Diary(stage))
    assert only(tmp_path).state == "failed"
    assert resume(only(tmp_path)).rounds["delivered"].tolist() == [2, 1]


def test_the_preparation_of_traffic_is_reported_until_the_run_starts(tmp_path: Path) -> None:
    diary = Diary()
    tables = {"run": {"name": "prepared", "rounds": 1}, "learning": {"kind": "none"}, "data": {"train_samples": 600}}
    simulate(from_tables(tables), out=tmp_path, watcher=diary)
    assert diary.worked - {COMPILING} == {"the traffic settles", "looking for all CVs that will come"}


def test_without_a_terminal_a_step_whose_end_is_unknown_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(PipedConsole(), None)
    progress.preparing(TWO_ROUNDS)
    for step, so_far in [(COMPILING, ""), ("the traffic settles", "1 of 100 s"), (COMPILING, ""), ("points", "9 of 9")]:
        progress.working(step, so_far)
    assert capsys.readouterr().out.splitlines() == ["watched: preparing traffic, data and model", COMPILING]
