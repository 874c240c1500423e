"""The command line as a user sees it: exit codes, messages, files."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from tests.command_line import ENVIRONMENT, call, finish, start
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import only


@pytest.fixture
def toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An experiment file; user-defined parts in its folder are found, and forgotten after the test."""
    path = tmp_path / "cars.toml"
    path.write_text("# a comment of the user\n" + tomli_w.dumps(EXPERIMENT))
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("failing_part", None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a finished golden run in ./runs."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "cars.toml").write_text(tomli_w.dumps(EXPERIMENT))
    done = call("cars.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_leaves_everything_in_its_directory(toml: Path) -> None:
    done = finish(start("-m", "vefl_sim", toml, "--out", "here", cwd=toml.parent, stderr=subprocess.PIPE))
    assert done.returncode == 0, done.stderr
    run = only(toml.parent / "here")
    assert run.state == "done"
    assert (run.path / "experiment.toml").read_text() == toml.read_text()
    assert {file.name for file in (run.path / "tables").iterdir()} == {
        "events.parquet", "rounds.parquet", "vehicles.parquet", "mobility.parquet", "slots.parquet", "timings.parquet",
    }  # fmt: skip
    assert (run.path / "DONE").read_text().strip() == run.summary["content_digest"] == run.content_digest()
    assert set(json.loads((run.path / "versions.json").read_text())["packages"]) >= {"vefl_sim", "jax", "simpy"}
    assert "round 2/2" in done.stdout
    assert run.path.name in done.stdout.replace("\n", "")


def test_the_same_run_again_is_shown_not_run(finished: Path) -> None:
    before = sorted((finished / "runs").rglob("*"))
    again = call("cars.toml", cwd=finished)
    assert again.returncode == 0
    assert "3 of 5 delivered" in again.stdout
    assert "already done" in again.stdout
    assert "round 1/2" not in again.stdout
    assert sorted((finished / "runs").rglob("*")) == before


def test_characters_that_a_stream_cannot_write_are_replaced(finished: Path) -> None:
    ascii_only = ENVIRONMENT | {"PYTHONIOENCODING": "ascii:strict"}
    listed = finish(start("-m", "vefl_sim", "runs", cwd=finished, env=ascii_only))
    assert listed.returncode == 0, listed.stdout
    assert "?" in listed.stdout
    assert "–" in call("runs", cwd=finished).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cars.toml", "--set", "radio.nonsense=1"], ["radio.nonsense", "radio.antennas"]),
        (["missing.toml"], ["missing.toml", "no such file"]),
        (["cars.toml", "--set", "scheme.kind=nowhere:Scheme"], ["scheme.kind", "nowhere"]),
        (["cars.toml", "--out", "cars.toml"], ["cars.toml"]),
        (["trace", "nothing"], ["nothing"]),
        (["cars.toml", "--set", "mac.scheduler=broken_part:mine"], ["mac.scheduler", "broken_part", "SyntaxError"]),
        (["cars.toml", "--set", "mobility.kind=failing_part:Failing"], ["ZeroDivisionError"]),
        (["cars.toml", "--set", "model.factory=numpy:sin"], ["cannot be prepared"]),
        (["trace", "."], ["not a run directory"]),
        (["cars.toml", "--set", "data.kind=mnist", "--set", "data.dir=."], ["train-images-idx3-ubyte.gz is not in ."]),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(toml: Path, arguments: list[str], words: list[str]) -> None:
    (toml.parent / "broken_part.py").write_text("def mine(:\n")
    (toml.parent / "failing_part.py").write_text("def Failing(experiment, streams):\n    return 1 / 0\n")
    failed = call(*arguments, cwd=toml.parent)
    assert failed.returncode == 2, failed.stderr
    [line] = failed.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words)
    assert not (toml.parent / "runs").exists()  # no run directory is left


def test_small_commands() -> None:
    schema = json.loads(call("schema").stdout)
    assert schema["properties"].keys() >= {"run", "radio", "vefl"}
    assert schema["additionalProperties"] is False
    assert call("--version").stdout.strip() == __import__("vefl_sim").__version__
    assert call("check", "nothing").returncode == call("runs", "--nonsense").returncode == 2


def test_dry_run_prints_an_experiment_and_its_cost(toml: Path) -> None:
    dry = call(toml, "--dry-run", cwd=toml.parent)
    assert dry.returncode == 0, dry.stderr
    assert "# 2 rounds of 1 s, 3 CVs, 33.0 kbit per update" in dry.stdout
    assert "wall time" in dry.stdout
    assert "warning" not in dry.stdout
    poor = call(toml, "--dry-run", "--set", "vefl.budget=0", cwd=toml.parent).stdout
    assert "# warning: nobody got an order in the first 2 rounds: the budget did not pay for a single CV" in poor
    many = call(toml, "--dry-run", "--set", "scheme.selected=1000", cwd=toml.parent).stdout
    assert "# warning: scheme.selected = 1000 excludes nobody: at most 3 CVs were in coverage" in many
    again = toml.parent / "again.toml"
    again.write_text(dry.stdout)
    assert call(again, "--quiet", cwd=toml.parent).returncode == 0
    assert not list(toml.parent.glob("runs/*-2"))


@pytest.mark.parametrize("options", ["--cv 9999", "--round 300-310", "--cv 9999 --round 1 --why"])
def test_trace_of_a_cv_or_round_that_is_not_there_is_bad_input(options: str, finished: Path) -> None:
    refused = call("trace", "three-cars", *options.split(), cwd=finished)
    assert refused.returncode == 2
    named = " ".join(options.split()[:2])
    assert re.search(rf"error: {named}: no event .* they are between 1 and \d\.", refused.stderr)


def test_every_command_finds_runs_in_another_folder(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    reading = ["runs"], ["trace", "three"], ["verify", "three"], ["resume", "three"]
    for command in (*reading, ["report", "three", "--to", page], ["figure", "three", "--to", tmp_path]):
        done = call(*command, "--out", finished / "runs", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    refused = call("evaluate", "three", "--out", finished / "runs", cwd=tmp_path)
    assert "learning.kind" in refused.stderr


def test_a_run_of_another_length_has_a_note(toml: Path) -> None:
    done = call(toml, "--set", "run.rounds=1", cwd=toml.parent)
    assert "# note: with another run.rounds, the data are split over other CVs" in done.stderr
    assert not call(toml, "--set", "run.rounds=1", "--quiet", cwd=toml.parent).stderr
    assert json.loads((only(toml.parent / "runs").path / "versions.json").read_text())["set"] == ["run.rounds=1"]


def test_trace_filters(finished: Path) -> None:
    def lines(*filters: object) -> list[str]:
        done = call("trace", "three-cars", *filters, cwd=finished)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert len(lines()) == 35
    assert len(lines("--cv", 3)) == 4
    assert len(lines("--round", 2)) == 14
    assert len(lines("--kind", "update_lost")) == 2
    assert len(lines("--from", 1.5, "--to", 2.0)) == 6
    assert "update_lost" in lines("--cv", 2, "--round", 2, "--kind", "update_lost")[0]
    assert "upload_received" in call("trace", "three-cars", "--kind", "upload", cwd=finished).stderr
    csv = lines("--csv", "--kind", "upload_received")
    assert csv[0].startswith("id,cause,time_ns,kind,actor,round,cv")
    assert len(csv) == 4


def test_trace_into_a_closed_pipe(finished: Path) -> None:
    shell = f"{sys.executable} -m vefl_sim trace three-cars | true"
    done = subprocess.run(shell, shell=True, cwd=finished, env=ENVIRONMENT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_trace_names_the_run_it_reads_and_prefers_a_finished_one(finished: Path) -> None:
    [path] = (finished / "runs").iterdir()
    unfinished = path.with_name(path.name + "-2")
    unfinished.mkdir()
    (unfinished / "resolved.toml").write_text((path / "resolved.toml").read_text())
    assert call("trace", "three-cars", cwd=finished).stderr.strip() == f"# {path.relative_to(finished)} (done)"
    (unfinished / "resolved.toml").unlink()
    unfinished.rmdir()


def test_an_error_in_a_part_fails_the_run_with_one_sentence(toml: Path) -> None:
    (toml.parent / "failing_part.py").write_text("def worst(backlog, limit):\n    return backlog.nonsense\n")
    failed = call(toml, "--set", "mac.scheduler=failing_part:worst", cwd=toml.parent)
    assert failed.returncode == 1
    assert len(failed.stderr.strip().splitlines()) == 1
    assert "nonsense" in failed.stderr
    run = only(toml.parent / "runs")
    assert run.state == "failed"
    assert "failing_part.py" in (run.path / "FAILED").read_text()
    assert len(run.events) > 0


def test_an_error_is_one_short_line_that_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "hostile.toml").write_text(
        r'run.name = "x"' + "\n" + r'"\u001b[31m\u009bred\nerror: forged" = 1' + f"\n{'a' * 9000} = 1\n"
    )
    refused = call("hostile.toml", cwd=tmp_path)
    assert refused.returncode == 2
    lines = refused.stderr.splitlines()
    assert len(lines) == 2
    assert r"\x1b[31m\x9bred\nerror: forged" in lines[0]
    assert all(line.isprintable() and len(line) < 2100 for line in lines)
