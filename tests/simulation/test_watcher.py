"""A watcher is called at every stage of a run, may leave methods out, and cannot fail silently."""

import signal
import warnings
from pathlib import Path

import pytest

from tests.listeners import Diary
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, only
from vefl_sim import BadInput, FinishedRun, RunFailed, RunWatcher, from_tables, resume, simulate, with_settings
from vefl_sim.cli.progress import PipedConsole, RunProgress
from vefl_sim.core.errors import RunInterrupted
from vefl_sim.core.kernel import compiling
from vefl_sim.protocol.messages import RoundReport

TWO_ROUNDS = from_tables(EXPERIMENT | {"run": {"name": "watched", "rounds": 2, "checkpoint_every": 1}})


def test_a_watcher_is_called_in_the_order_of_the_run(tmp_path: Path) -> None:
    first, second, third = Diary("round 2", Kill), Diary(), Diary()
    with pytest.raises(Kill):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=first)
    assert first.calls == ["preparing watched", "started 3 CVs", "round 1", "round 2"]
    run = resume(only(tmp_path), watcher=second)
    assert second.calls == ["preparing watched", "resuming round 2", "started 3 CVs", "round 2", "ended done"]
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
    """Not derived from the protocol, and without all but one of its methods."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def round(self, report) -> None:
        self.rounds.append(report.round)


def test_any_object_with_some_of_the_methods_is_a_watcher(tmp_path: Path) -> None:
    watcher = NotDerived()
    simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher)
    assert watcher.rounds == [1, 2]


def test_a_finished_run_warns_that_its_watcher_was_not_called(tmp_path: Path) -> None:
    simulate(TWO_ROUNDS, out=tmp_path)
    watcher = NotDerived()
    with pytest.warns(
        FinishedRun, match=r"watched-.* is done already: .* no watcher is called\. .*fresh=True"
    ) as warned:
        simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher)
    assert warned[0].filename == __file__
    assert watcher.rounds == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(TWO_ROUNDS, out=tmp_path)
        simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher, fresh=True)
    assert watcher.rounds == [1, 2]


class Misspelt:
    """A watcher none of whose methods is ever called."""

    def rounds(self, report) -> None:
        pass


class Misled:
    """A watcher with a method that takes other arguments."""

    def round(self, number, report) -> None:
        pass


@pytest.mark.parametrize(
    ("watcher", "sentence"),
    [
        (
            Misspelt(),
            r"^watcher: Misspelt has none of the methods of vefl_sim.RunWatcher \(preparing, .*, ended\)",
        ),
        (Misled(), r"^watcher: Misled.round\(number, report\) must be round\(report\) of vefl_sim.RunWatcher\.$"),
    ],
)
def test_a_wrong_watcher_is_refused_before_the_run(watcher: object, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=sentence):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stage", ["preparing watched", "started 3 CVs", "round 2"])
def test_an_exception_in_a_watcher_fails_the_run_which_can_be_resumed(stage: str, tmp_path: Path) -> None:
    diary = Diary(stage)
    with pytest.raises(RunFailed, match=r"ValueError: mine \(traceback in "):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=diary)
    assert diary.calls[-1] == (stage if "preparing" in stage else "ended failed")
    assert only(tmp_path).state == "failed"
    assert resume(only(tmp_path)).rounds["delivered"].tolist() == [2, 1]


class Stopping(Diary):
    """Asks for a stop after the first round."""

    def round(self, report) -> None:
        super().round(report)
        signal.raise_signal(signal.SIGTERM)


def test_a_stopped_run_tells_its_end(tmp_path: Path) -> None:
    diary = Stopping()
    with pytest.raises(RunInterrupted):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=diary)
    assert diary.calls[-3:] == ["round 1", "stopping", "ended stopped"]


def test_the_preparation_of_traffic_is_reported_until_the_run_starts(tmp_path: Path) -> None:
    diary = Diary()
    tables = {"run": {"name": "prepared", "rounds": 1}, "learning": {"kind": "none"}, "data": {"train_samples": 600}}
    simulate(from_tables(tables), out=tmp_path, watcher=diary)
    assert diary.worked - {compiling()} == {"the traffic settles", "looking for all CVs that will come"}


def test_without_a_terminal_a_step_whose_end_is_unknown_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(PipedConsole(), None)
    progress.preparing(TWO_ROUNDS)
    for step, so_far in [
        (compiling(), ""),
        ("the traffic settles", "1 of 100 s"),
        (compiling(), ""),
        ("points", "9 of 9"),
    ]:
        progress.working(step, so_far)
    assert capsys.readouterr().out.splitlines() == ["watched: preparing traffic, data and model", compiling()]


def test_the_remaining_time_leaves_out_the_first_round_which_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 50.0, 51.0, 53.0, 54.0])  # the first round takes 50 s, the others 1, 2 and 1 s
    monkeypatch.setattr("vefl_sim.cli.progress.time.perf_counter", lambda: next(now))
    progress = RunProgress(PipedConsole(), None)
    progress.preparing(with_settings(TWO_ROUNDS, "run.rounds=4"))
    progress._began = next(now)
    for number in range(1, 5):
        progress.round(RoundReport(number, 0, number * 10**9, 0, [], [], 0, None))
    lines = [line for line in capsys.readouterr().out.splitlines() if "left" in line]
    assert [line.split(" | ")[-1] for line in lines] == ["? left", "0:02 left", "0:02 left", "0:00 left"]
    assert [line.split(" | ")[2].strip() for line in lines] == ["0.02 s/s", "1.00 s/s", "0.67 s/s", "0.75 s/s"]
