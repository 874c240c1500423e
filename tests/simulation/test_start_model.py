"""`model.start`: a run starts from the model of another, whose content is part of its name."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from tests.resumable import STOPPED, Kill, Killer, only
from vefl_sim import Experiment, Run, resume, simulate, with_settings
from vefl_sim.core.arrays import read_npz, write_npz
from vefl_sim.core.errors import BadInput, ExperimentError, NotResumable
from vefl_sim.records.identity import Identity

SHORT = with_settings(STOPPED, "run.rounds=2", "trace.slots=off", "model.factory=vefl_models.logistic:logistic")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(SHORT, out=tmp_path_factory.mktemp("first"))


def starting(first: Run, *settings: str) -> Experiment:
    return with_settings(SHORT, f"model.start={first.path / 'model.npz'}", *settings)


def test_nobody_trains_so_that_the_model_stays(first: Run, tmp_path: Path) -> None:
    run = simulate(starting(first, "vefl.budget=0.0", "run.rounds=1"), out=tmp_path)
    assert run.summary["updates_ordered"] == 0
    assert (run.path / "model.npz").read_bytes() == (first.path / "model.npz").read_bytes()
    assert run.summary["last_accuracy"] == first.summary["last_accuracy"]


def test_its_content_names_the_run_and_its_folder_does_not(first: Run, tmp_path: Path) -> None:
    arrays = read_npz(first.path / "model.npz")
    write_npz(tmp_path / "model.npz", arrays)
    same = with_settings(SHORT, f"model.start={tmp_path / 'model.npz'}")
    named = Identity(starting(first)).directory
    assert Identity(same).directory == named != Identity(SHORT).directory
    write_npz(tmp_path / "model.npz", {name: array + np.float32(1) for name, array in arrays.items()})
    assert Identity(same).directory != named


def test_a_run_whose_start_has_changed_is_not_resumed(first: Run, tmp_path: Path) -> None:
    file = tmp_path / "start.npz"
    file.write_bytes((first.path / "model.npz").read_bytes())
    with pytest.raises(Kill):
        simulate(with_settings(SHORT, f"model.start={file}"), out=tmp_path / "runs", watcher=Killer(1))
    write_npz(file, {"a": np.zeros(3)})
    with pytest.raises(NotResumable, match="initial model has changed"):
        resume(only(tmp_path / "runs"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.npz", "cannot be read .*No such file"),
        (".", "cannot be read .*folder"),
        ("pipe", "cannot be read .*not a file"),
        ("other.npz", r"does not fit model\.factory"),
        ("text.npz", "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_leaves_nothing(name: str, sentence: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write_npz(tmp_path / "other.npz", {"a": np.zeros(3)})
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ExperimentError, match=rf"^model\.start = .*{sentence}.*\.$"):
        simulate(with_settings(SHORT, f"model.start={tmp_path / name}"), out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_file_that_does_not_fit_into_memory_is_not_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "sparse.npz", "wb") as file:
        file.truncate(10**12)
    monkeypatch.setattr(hashlib, "file_digest", lambda *arguments: pytest.fail("the file was read"))
    start = with_settings(SHORT, f"model.start={tmp_path / 'sparse.npz'}")
    with pytest.raises(BadInput, match=r"model\.start .* need 931\.3 GiB"):
        simulate(start, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_model_that_has_diverged_is_no_start(first: Run, tmp_path: Path, number: float) -> None:
    arrays = read_npz(first.path / "model.npz")
    next(iter(arrays.values()))[0] = number
    write_npz(tmp_path / "start.npz", arrays)
    with pytest.raises(ExperimentError, match="NaN or infinite"):
        simulate(with_settings(SHORT, f"model.start={tmp_path / 'start.npz'}"), out=tmp_path / "runs")
