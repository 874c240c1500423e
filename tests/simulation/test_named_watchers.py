"""Watchers that `run.watch` names: made from the experiment, told what happens, and no danger to the run."""

import re
import signal
from pathlib import Path

import pytest
import tomli_w

from tests import listeners
from tests.command_line import ROOT, call
from tests.listeners import Diary
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, Killer, contents, only
from vefl_sim import BadInput, Experiment, Run, from_tables, resume, simulate, with_settings
from vefl_sim.analysis.runs import part_lines
from vefl_sim.core.errors import RunInterrupted, VeflError
from vefl_sim.records.identity import config_digest
from vefl_sim.sweep.points import load_sweep

HERE = "tests.listeners"
TWO_ROUNDS = from_tables(EXPERIMENT | {"run": {"name": "watched", "rounds": 2, "checkpoint_every": 1}})


@pytest.fixture(autouse=True)
def forget() -> None:
    listeners.made.clear()


def watched(*names: str, experiment: Experiment = TWO_ROUNDS) -> Experiment:
    return with_settings(experiment, f"run.watch={[f'{HERE}:{name}' for name in names]}")


def test_they_are_made_from_the_experiment_and_called_like_any_watcher(tmp_path: Path) -> None:
    experiment = watched("Listener", "OnlyStarted", "Listener")
    run = simulate(experiment, out=tmp_path)
    [listener] = listeners.made
    assert listener.experiment.run.name == "watched"
    assert listener.calls == ["preparing watched", "started 3 CVs", "round 1", "round 2", "ended done"]
    assert run.path.with_suffix(".started").exists()


def test_they_change_neither_the_name_nor_the_content_of_a_run(tmp_path: Path) -> None:
    plain = simulate(TWO_ROUNDS, out=tmp_path / "plain")
    run = simulate(watched("Listener"), out=tmp_path / "watched")
    assert config_digest(watched("Listener")) == config_digest(TWO_ROUNDS)
    assert run.path.name == plain.path.name
    assert contents(run) == contents(plain)
    assert run.experiment.run.watch == (f"{HERE}:Listener",)
    assert simulate(TWO_ROUNDS, out=tmp_path / "watched").path == run.path


def test_a_resumed_run_has_the_same_watchers_and_may_get_more(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(watched("Listener"), out=tmp_path, watcher=Killer(2))
    run = only(tmp_path)
    lines = part_lines(run, None, [f"{HERE}:OnlyStarted"])[-2:]
    assert [line.split('"')[1] for line in lines] == [f"{HERE}:Listener", f"{HERE}:OnlyStarted"]
    assert all(listeners.__file__ in line for line in lines)
    resume(run, watch=[f"{HERE}:OnlyStarted"])
    again = listeners.made[1]
    assert again.calls == ["preparing watched", "resuming round 2", "started 3 CVs", "round 2", "ended done"]
    assert run.path.with_suffix(".started").exists()


@pytest.mark.parametrize("stage", ["preparing", "working", "started", "round", "ended"])
def test_one_that_raises_is_named_once_and_costs_nothing(stage: str, tmp_path: Path) -> None:
    tables = {"run": {"name": "prepared", "rounds": 2}, "learning": {"kind": "none"}, "data": {"train_samples": 600}}
    experiment = watched(f"raising_in_{stage}", "Listener", experiment=from_tables(tables))
    given = Diary()
    run = simulate(experiment, out=tmp_path, watcher=given)
    assert run.state == "done"
    assert run.rounds["round"].tolist() == [1, 2]
    [warning] = (text for text in given.calls if text.startswith("warned"))
    assert warning == (
        f'warned: run.watch = "{HERE}:raising_in_{stage}" failed in {stage} (ZeroDivisionError: division by zero); '
        "the run does not need it."
    )
    assert listeners.made[1].calls[-3:] == ["round 1", "round 2", "ended done"]  # the other one is still called


def test_without_a_watcher_of_the_caller_python_warns(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"raising_in_round\" failed in round \(ZeroDivisionError"):
        simulate(watched("raising_in_round"), out=tmp_path)


def test_one_that_raises_at_a_checkpoint_or_in_a_signal_handler(tmp_path: Path) -> None:
    class Stopping(Diary):
        def round(self, report) -> None:
            signal.raise_signal(signal.SIGINT)

    given = Stopping()
    with pytest.raises(RunInterrupted):
        simulate(watched("raising_in_stopping", "raising_in_resuming"), out=tmp_path, watcher=given)
    assert [call for call in given.calls if "warned" in call or "ended" in call] == [
        f'warned: run.watch = "{HERE}:raising_in_stopping" failed in stopping (ZeroDivisionError: division by zero); '
        "the run does not need it.",
        "ended stopped",
    ]
    with pytest.warns(UserWarning, match=r"raising_in_resuming\" failed in resuming"):
        assert resume(only(tmp_path)).state == "done"


def test_one_that_raises_in_a_call_and_in_the_signal_handler_within_it(tmp_path: Path) -> None:
    given = Diary()
    with pytest.raises(RunInterrupted):
        simulate(watched("RaisesTwice"), out=tmp_path, watcher=given)
    [warning] = (text for text in given.calls if text.startswith("warned"))
    assert "failed in stopping" in warning
    assert only(tmp_path).state == "unfinished"


def test_a_run_that_cannot_start_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(session: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vefl_sim.simulation.session.Session._prepare_folders", full_disk)
    with pytest.raises(VeflError, match="No space left on device"):
        simulate(watched("Listener"), out=tmp_path)
    assert listeners.made[0].calls == ["preparing watched"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (f"{HERE}:unable", r"run.watch = .*unable\" could not be created: OSError: no such server\.$"),
        (f"{HERE}:NeedsMore", r"NeedsMore\" needs a_tracker_that_is_not_installed: pip install 'vefl_sim\[trackers\]'"),
        (f"{HERE}:missing", r"run.watch = .* has no 'missing'\.$"),
        ("nowhere:Watcher", r"run.watch = .*there is no module 'nowhere'"),
        ("os:system", r"run.watch = .* is in Python itself"),
        ("builtins.dict:fromkeys", r"run.watch"),
        ("types:SimpleNamespace", r"run.watch"),
        (f"{HERE}:text", r"run.watch = .*: str has none of the methods of vefl_sim.RunWatcher"),
    ],
)
def test_one_that_cannot_work_is_refused_before_the_run(name: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=sentence) as refused:
        simulate(with_settings(TWO_ROUNDS, f'run.watch=["{name}"]'), out=tmp_path / "runs")
    assert len(refused.value.problems) == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ('"tests.scripted:Watcher"', 'a list of parts, as ["module:name"]'),
        ("3", 'a list of parts, as ["module:name"]'),
        ('["no colon"]', 'a part as "module:name"'),
        ("[1]", "text in quotes"),
    ],
)
def test_the_key_is_a_list_of_names(value: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=rf"^run\.watch.*: it must be {re.escape(complaint)}\.$"):
        with_settings(TWO_ROUNDS, f"run.watch={value}")


def test_a_name_without_a_colon_is_refused_when_resuming(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(TWO_ROUNDS, out=tmp_path, watcher=Killer(2))
    with pytest.raises(BadInput, match=r"run.watch = 'tensorboard' must be written as module:name"):
        resume(only(tmp_path), watch=["tensorboard"])
    assert only(tmp_path).state == "unfinished"


# The command line

CHECKPOINTS = EXPERIMENT | {"run": {"name": "cars", "rounds": 2, "checkpoint_every": 1}}


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    file = tmp_path / "cars.toml"
    file.write_text(tomli_w.dumps(CHECKPOINTS | {"run": CHECKPOINTS["run"] | {"watch": [f"{HERE}:Listener"]}}))
    return file


def test_options_add_to_the_file_and_a_failure_is_among_the_last_lines(toml: Path) -> None:
    done = call(toml, "--watch", f"{HERE}:raising_in_round", "--watch", f"{HERE}:OnlyStarted", cwd=toml.parent)
    assert done.returncode == 0, done.stderr
    assert len(listeners.made) == 2
    sentence = f'run.watch = "{HERE}:raising_in_round" failed in round (ZeroDivisionError: division by zero)'
    shown = [line for line in done.stdout.splitlines() if sentence in line]
    assert [line[:9].strip() for line in shown] == ["warning:", "warning"]
    assert done.stdout.splitlines()[-2] == shown[-1]  # before the path of the report page
    [run] = (path for path in (toml.parent / "runs").iterdir() if path.is_dir())
    assert Run(run).experiment.run.watch == tuple(
        f"{HERE}:{n}" for n in ("Listener", "raising_in_round", "OnlyStarted")
    )
    assert run.with_suffix(".started").exists()


def test_resume_takes_the_option_too(toml: Path) -> None:
    with pytest.raises(Kill):
        simulate(from_tables(CHECKPOINTS), out=toml.parent / "runs", watcher=Killer(2))
    done = call("resume", "cars", "--watch", f"{HERE}:Listener", cwd=toml.parent)
    assert done.returncode == 0, done.stderr
    [line] = (line for line in done.stderr.splitlines() if line.startswith("# run.watch"))
    assert f'"{HERE}:Listener" would be loaded from' in line
    assert listeners.__file__ in line
    assert listeners.made[0].calls[1] == "resuming round 2"


@pytest.mark.parametrize("command", [[], ["sweep"]], ids=["run", "sweep"])
def test_a_missing_package_is_one_sentence_and_exit_2(command: list[str], toml: Path) -> None:
    if command:
        toml.write_text(toml.read_text() + "[sweep]\nseeds = [1, 2]\n")
    failed = call(*command, toml, "--watch", f"{HERE}:NeedsMore", cwd=toml.parent)
    assert failed.returncode == 2
    [line] = failed.stderr.strip().splitlines()[-1:]
    assert line == (
        f'error: run.watch = "{HERE}:NeedsMore" needs a_tracker_that_is_not_installed: '
        "pip install 'vefl_sim[trackers]'."
    )
    assert not [*toml.parent.glob("runs/*/resolved.toml")]


def test_points_of_a_sweep_have_the_watchers_of_the_file(toml: Path) -> None:
    toml.write_text(toml.read_text() + "[sweep]\nseeds = [1, 2]\n")
    assert {point.experiment.run.watch for point in load_sweep(toml).points} == {(f"{HERE}:Listener",)}
    toml.write_text(toml.read_text() + 'run.watch = [["a:b"], ["c:d"]]\n')
    with pytest.raises(BadInput, match=r"run\.watch: it cannot be swept: it changes no result"):
        load_sweep(toml)


@pytest.mark.slow
def test_a_watcher_that_fails_in_a_point_is_reported(toml: Path) -> None:
    """In the process of the point, whose warning reaches the display of the sweep."""
    toml.write_text(toml.read_text() + "[sweep]\nseeds = [1, 2]\n")
    done = call("sweep", toml, "--workers", 1, "--watch", f"{HERE}:raising_in_round", cwd=toml.parent)
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stdout.splitlines() if line.startswith("warning")]
    assert len(warned) == 4  # of two points, each when it happens and at the end
    assert "2 of 2 points are done" in done.stdout
    assert all("raising_in_round" in line for line in warned)


def test_the_example_in_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "parts.md").read_text()
    [block] = re.findall(r"^```python\n# delivered\.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "delivered.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    run = simulate(with_settings(TWO_ROUNDS, 'run.watch=["delivered:Delivered"]'), out=tmp_path / "runs")
    assert run.path.with_name(f"{run.path.name}.csv").read_text() == "pdpc,1,1,2\npdpc,1,2,1\n"
