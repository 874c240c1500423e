"""The command `new`: from a clone, and from a wheel in an empty environment."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.command_line import ROOT, call
from vefl_sim import load, load_sweep
from vefl_sim.cli.create import _FILES


@pytest.mark.parametrize("kind", _FILES)
def test_an_experiment_that_says_how_to_run_it(kind: str, tmp_path: Path) -> None:
    written = call("new", kind, "mine.toml", cwd=tmp_path)
    text = (tmp_path / "mine.toml").read_text()
    assert written.stdout.startswith("mine.toml is written; run it with: python -m vefl_sim ")
    assert "mine.toml" in text  # in the comments, instead of the file that it was copied from
    assert "experiments/" not in text
    read = load if kind in ("quickstart", "positions", "map") else load_sweep
    assert read(tmp_path / "mine.toml") == read(ROOT / "experiments" / _FILES[kind][0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quickstart"], "quickstart.toml exists and is not overwritten: name another file."),
        (["quick"], "choose one of quickstart, compare, sweep, positions, map."),
        (["sweep", "no/such/folder.toml"], "no/such/folder.toml cannot be written (No such file or directory)"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_written(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "quickstart.toml").write_text("my own")
    refused = call("new", *arguments, cwd=tmp_path)
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert words in line
    assert [file.read_text() for file in tmp_path.iterdir()] == ["my own"]


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    """The wheel is built from the unpacked sdist, so that both are complete."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", tmp_path, "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    subprocess.run([*build, "wheel"], cwd=next(tmp_path.glob("vefl_sim-*/")), check=True)
    archives = [*tmp_path.glob("*.tar.gz"), *tmp_path.glob("*.whl")]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *archives], check=True)

    venv, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, next(tmp_path.glob("*.whl"))], check=True)

    def python(*command: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        arguments = [venv / "bin" / "python", *command]
        return subprocess.run(
            arguments, cwd=work, env=environment, text=True, check=True, stdout=subprocess.PIPE
        ).stdout

    site = Path(python("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # without the .pth files in it
    assert python("-c", "import vefl_sim, vefl_models; print(vefl_sim.__file__)").startswith(str(site))
    for kind in _FILES:
        python("-m", "vefl_sim", "new", kind)
    assert {path.stem for path in work.iterdir()} == _FILES.keys()
    estimate = python("-m", "vefl_sim", "quickstart.toml", "--dry-run")
    assert tomllib.loads(estimate)["run"]["name"] == "quickstart"
    assert "# about" in estimate
    assert "18 points" in python("-m", "vefl_sim", "sweep", "sweep.toml", "--dry-run")
