"""Watchers, handed over or named by `run.watch`: called at every stage of a run; a named one is no danger to it."""

import re
import signal
import warnings
from pathlib import Path

import pytest
import tomli_w

from tests import listeners
from tests.command_line import ROOT, call
from tests.listeners import Diary
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, Killer, contents, only
from vefl_sim import BadInput, FinishedRun, Run, from_tables, resume, simulate, with_settings
from vefl_sim.analysis.runs import part_lines
from vefl_sim.cli.progress import PipedConsole, RunProgress
from vefl_sim.core.errors import RunInterrupted
from vefl_sim.core.kernel import compiling
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.records.identity import config_digest
from vefl_sim.simulation.watcher import RunWatcher
from vefl_sim.sweep.points import load_sweep

HERE = "tests.listeners"
TABLES = EXPERIMENT | {"run": {"name": "watched", "rounds": 2, "checkpoint_every": 1}}
TWO_ROUNDS = from_tables(TABLES)
WHOLE = ["preparing watched", "started 3 CVs", "round 1", "round 2", "ended done"]


@pytest.fixture(autouse=True)
def forget() -> None:
    listeners.made.clear()


def test_a_watcher_is_called_in_the_order_of_the_run(tmp_path: Path) -> None:
    first, second, third = Diary("round 2", Kill), Diary(), Diary()
    with pytest.raises(Kill):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=first)
    assert first.calls == WHOLE[:4]
    run = resume(only(tmp_path), watcher=second)
    assert second.calls == ["preparing watched", "resuming round 2", "started 3 CVs", "round 2", "ended done"]
    assert resume(run, watcher=third).is_done
    assert third.calls == []


class NotDerived:
    """Not derived from the protocol, and without all but one of its methods."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def round(self, report) -> None:
        self.rounds.append(report.round)


class Derived(NotDerived, RunWatcher):
    """Derived from the protocol, so the other methods do nothing."""


def test_a_watcher_may_leave_methods_out_and_is_not_called_by_a_finished_run(tmp_path: Path) -> None:
    watcher, other = Derived(), NotDerived()
    simulate(TWO_ROUNDS, out=tmp_path, watcher=watcher)
    assert watcher.rounds == [1, 2]
    with pytest.warns(FinishedRun, match="no watcher is called") as warned:
        simulate(TWO_ROUNDS, out=tmp_path, watcher=other)
    assert warned[0].filename == __file__
    assert other.rounds == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(TWO_ROUNDS, out=tmp_path)
        simulate(TWO_ROUNDS, out=tmp_path, watcher=other, fresh=True)
    assert other.rounds == [1, 2]


class Stopping(Diary):
    """Asks for a stop after the first round."""

    def round(self, report) -> None:
        super().round(report)
        signal.raise_signal(signal.SIGTERM)


class Impatient(Stopping):
    """Asks a second time."""

    def stopping(self) -> None:
        super().stopping()
        signal.raise_signal(signal.SIGINT)


def test_a_second_request_stops_at_once(tmp_path: Path) -> None:
    diary = Impatient()
    with pytest.raises(KeyboardInterrupt):
        simulate(with_settings(TWO_ROUNDS, "run.rounds=3"), out=tmp_path, watcher=diary)
    assert diary.calls[-3:] == ["round 1", "stopping", "ended stopped"]
    assert only(tmp_path).state == "unfinished"
    assert not [*only(tmp_path).path.glob("checkpoints/*")]  # no time was taken to save


@pytest.mark.parametrize(
    ("rounds", "ends_s", "left", "speeds"),
    [
        (4, [51.0, 53.0, 54.0], ["0:02", "0:01", "0:00"], ["1.00", "0.67", "0.75"]),
        (100, [51.0, 54.0], ["1:38", "1:40"], ["1.00", "0.50"]),  # one slow round hardly changes the expected end
    ],
)
def test_the_remaining_time_leaves_out_the_first_round_which_compiles_and_does_not_jump(
    rounds: int,
    ends_s: list[float],
    left: list[str],
    speeds: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 50.0, *ends_s])  # the first round takes 50 s
    monkeypatch.setattr("vefl_sim.cli.progress.time.perf_counter", lambda: next(now))
    progress = RunProgress(PipedConsole(), None)
    progress.preparing(with_settings(TWO_ROUNDS, f"run.rounds={rounds}"))
    progress._began = next(now)
    for number in range(1, 2 + len(ends_s)):
        progress.round(RoundReport(number, 0, number * 10**9, 0, [], [], 0, None))
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "left" in line]
    assert [line[-1] for line in lines] == [f"{time} left" for time in ("?", *left)]
    assert [line[2].strip() for line in lines] == [f"{speed} s/s" for speed in ("0.02", *speeds)]


# Named by run.watch


def watched(*names: str):
    return with_settings(TWO_ROUNDS, f"run.watch={[f'{HERE}:{name}' for name in names]}")


def test_they_are_made_from_the_experiment_and_change_nothing(tmp_path: Path) -> None:
    experiment = watched("Listener", "OnlyStarted", "Listener")
    run, plain = simulate(experiment, out=tmp_path / "watched"), simulate(TWO_ROUNDS, out=tmp_path / "plain")
    [listener] = listeners.made
    assert listener.experiment.run.name == "watched"
    assert listener.calls == WHOLE
    assert run.path.with_suffix(".started").exists()
    assert config_digest(experiment) == config_digest(TWO_ROUNDS)
    assert run.path.name == plain.path.name
    assert contents(run) == contents(plain)
    assert simulate(TWO_ROUNDS, out=tmp_path / "watched").path == run.path


def test_a_resumed_run_has_the_same_watchers_and_may_get_more(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(watched("Listener"), out=tmp_path, watcher=Killer(2))
    run = only(tmp_path)
    with pytest.raises(BadInput, match=r"run.watch = 'tensorboard' must be written as module:name"):
        resume(run, watch=["tensorboard"])
    lines = part_lines(run, None, [f"{HERE}:OnlyStarted"])[-2:]
    assert [line.split('"')[1] for line in lines] == [f"{HERE}:Listener", f"{HERE}:OnlyStarted"]
    assert all(listeners.__file__ in line for line in lines)
    resume(run, watch=[f"{HERE}:OnlyStarted"])
    again = listeners.made[-1]
    assert again.calls == ["preparing watched", "resuming round 2", "started 3 CVs", "round 2", "ended done"]
    assert run.path.with_suffix(".started").exists()


@pytest.mark.parametrize("stage", ["working", "round", "ended"])
def test_one_that_raises_is_named_once_and_costs_nothing(stage: str, tmp_path: Path) -> None:
    tables = {"run": {"name": "prepared", "rounds": 2}, "learning": {"kind": "none"}, "data": {"train_samples": 600}}
    watch = [f"{HERE}:raising_in_{stage}", f"{HERE}:Listener"]
    given = Diary()
    run = simulate(with_settings(from_tables(tables), f"run.watch={watch}"), out=tmp_path, watcher=given)
    assert run.state == "done"
    assert run.rounds["round"].tolist() == [1, 2]
    [warning] = (text for text in given.calls if text.startswith("warned"))
    assert f'"{watch[0]}" failed in {stage} (ZeroDivisionError' in warning
    assert listeners.made[1].calls[-3:] == ["round 1", "round 2", "ended done"]  # the other one is still called
    assert given.worked - {compiling()} == {"the traffic settles", "looking for all CVs that will come"}


def test_one_that_raises_at_a_checkpoint_or_in_a_signal_handler(tmp_path: Path) -> None:
    given = Stopping()
    with pytest.raises(RunInterrupted):
        simulate(watched("raising_in_stopping", "raising_in_resuming"), out=tmp_path, watcher=given)
    [warning, ended] = (call for call in given.calls if "warned" in call or "ended" in call)
    assert "failed in stopping" in warning
    assert ended == "ended stopped"
    with pytest.warns(UserWarning, match="failed in resuming"):  # the caller has no watcher
        assert resume(only(tmp_path)).state == "done"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (f"{HERE}:unable", r"could not be created: OSError: no such server"),
        (f"{HERE}:NeedsMore", r"needs a_tracker_that_is_not_installed: pip install 'vefl_sim\[trackers\]'"),
        (f"{HERE}:text", "str has none of the methods"),
    ],
)
def test_one_that_cannot_work_is_refused_before_the_run(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"run.watch.*{sentence}") as refused:
        simulate(with_settings(TWO_ROUNDS, f'run.watch=["{name}"]'), out=tmp_path / "runs")
    assert len(refused.value.problems) == 1
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    file = tmp_path / "cars.toml"
    file.write_text(tomli_w.dumps(TABLES | {"run": TABLES["run"] | {"watch": [f"{HERE}:Listener"]}}))
    return file


def test_options_add_to_the_file_and_a_failure_is_among_the_last_lines(toml: Path) -> None:
    done = call(toml, "--watch", f"{HERE}:raising_in_round", "--watch", f"{HERE}:OnlyStarted", cwd=toml.parent)
    assert done.returncode == 0, done.stderr
    assert len(listeners.made) == 2
    shown = [line for line in done.stdout.splitlines() if "failed in round" in line]
    assert [line[:9].strip() for line in shown] == ["warning:", "warning"]
    assert done.stdout.splitlines()[-2] == shown[-1]  # before the path of the report page
    [run] = (path for path in (toml.parent / "runs").iterdir() if path.is_dir())
    names = ("Listener", "raising_in_round", "OnlyStarted")
    assert Run(run).experiment.run.watch == tuple(f"{HERE}:{name}" for name in names)
    assert run.with_suffix(".started").exists()


def test_points_of_a_sweep_have_the_watchers_of_the_file(toml: Path) -> None:
    toml.write_text(toml.read_text() + "[sweep]\nseeds = [1, 2]\n")
    assert {point.experiment.run.watch for point in load_sweep(toml).points} == {(f"{HERE}:Listener",)}
    failed = call("sweep", toml, "--watch", f"{HERE}:NeedsMore", cwd=toml.parent)
    assert failed.returncode == 2
    assert "needs a_tracker_that_is_not_installed" in failed.stderr.splitlines()[-1]
    assert not [*toml.parent.glob("runs/*/resolved.toml")]
    toml.write_text(toml.read_text() + 'run.watch = [["a:b"], ["c:d"]]\n')
    with pytest.raises(BadInput, match=r"run\.watch: it cannot be swept"):
        load_sweep(toml)


def test_the_example_in_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "parts.md").read_text()
    [block] = re.findall(r"^```python\n# delivered\.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "delivered.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    run = simulate(with_settings(TWO_ROUNDS, 'run.watch=["delivered:Delivered"]'), out=tmp_path / "runs")
    assert run.path.with_name(f"{run.path.name}.csv").read_text() == "pdpc,1,1,2\npdpc,1,2,1\n"
