"""The confusion matrix of the last model: written once, outside of the content digest, and read without trust."""

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from tests.resumable import STOPPED
from vefl_sim import Run, simulate, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import RunNotFound
from vefl_sim.learning.datasets.signs import FACES
from vefl_sim.learning.learner import Evaluation
from vefl_sim.records.models import ConfusionMatrix, read_confusion

SHORT = with_settings(STOPPED, "run.rounds=3", "learning.evaluate_every=2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(SHORT, out=tmp_path_factory.mktemp("finished"))


def test_it_is_that_of_the_last_evaluation(finished: Run) -> None:
    matrix = finished.confusion
    assert matrix is not None
    assert matrix.round == 3
    assert matrix.classes == [face.name for face in FACES]
    counts = np.array(matrix.counts)
    assert counts.sum() == 100
    assert (counts.sum(axis=1) >= 6).all()  # 100 test samples of 16 classes, whose numbers differ by at most one
    assert np.trace(counts) / 100 == finished.summary["last_accuracy"]
    assert json.loads((finished.path / "confusion.json").read_text()) == vars(matrix)


def test_without_it_the_run_is_still_whole(finished: Run, tmp_path: Path) -> None:
    copy = Run(copytree(finished.path, tmp_path / finished.path.name))
    (copy.path / "confusion.json").unlink()
    assert copy.confusion is None
    assert copy.content_digest() == finished.summary["content_digest"]
    assert all(finding.passed for finding in verify(copy))


def test_a_run_without_learning_has_none(tmp_path: Path) -> None:
    run = simulate(with_settings(SHORT, "learning.kind=none"), out=tmp_path)
    assert run.confusion is None
    assert not (run.path / "confusion.json").exists()


def test_a_learner_that_does_not_count_and_hundreds_of_classes_have_none() -> None:
    assert ConfusionMatrix.of(1, Evaluation(0.5, 1.0), None) is None
    assert ConfusionMatrix.of(1, Evaluation(0.5, 1.0, np.eye(257, dtype=np.int64)), None) is None


def test_data_without_names(tmp_path: Path) -> None:
    matrix = ConfusionMatrix.of(7, Evaluation(0.5, 1.0, np.eye(256, dtype=np.int64)), None)
    assert matrix is not None
    matrix.write(tmp_path)
    assert read_confusion(tmp_path) == matrix
    assert matrix.classes is None


RIGHT = {"round": 3, "classes": ["a", "b"], "counts": [[1, 2], [3, 4]]}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "null", "[" * 10_000, "{}", b"\xff", "9" * 5000,
        RIGHT | {"more": 1},
        RIGHT | {"round": "3"},
        RIGHT | {"round": True},
        RIGHT | {"classes": ["a"]},
        RIGHT | {"classes": ["a", 1]},
        RIGHT | {"classes": "ab"},
        RIGHT | {"counts": []},
        RIGHT | {"counts": [[1, 2]]},
        RIGHT | {"counts": [[1, 2], [3]]},
        RIGHT | {"counts": [[1, 2], [3, -4]]},
        RIGHT | {"counts": [[1, 2], [3, 4.5]]},
        RIGHT | {"counts": [[1, 2], [3, None]]},
        RIGHT | {"counts": [[1, 2], "34"]},
        RIGHT | {"counts": {"0": [1]}},
        RIGHT | {"classes": None, "counts": [[0] * 257] * 257},
        " " * (1 << 20) + "{}",
    ],
)  # fmt: skip
def test_a_file_of_a_stranger_is_refused_in_one_sentence(content, tmp_path: Path) -> None:
    bytes_ = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
    (tmp_path / "confusion.json").write_bytes(json.dumps(content).encode() if bytes_ is None else bytes_)
    with pytest.raises(RunNotFound, match=r"confusion\.json is damaged: delete it, or run .* --fresh\.$"):
        read_confusion(tmp_path)


def test_a_link_in_its_place_is_refused(finished: Run, tmp_path: Path) -> None:
    copy = copytree(finished.path, tmp_path / finished.path.name)
    (copy / "confusion.json").unlink()
    (copy / "confusion.json").symlink_to(finished.path / "confusion.json")
    with pytest.raises(RunNotFound, match=r"confusion\.json is a link"):
        Run(copy)
