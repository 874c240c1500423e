"""What a run saves of its models: the same after a kill, outside of the content digest, and read without trust."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.resumable import STOPPED, Kill, Killer, contents, only
from vefl_sim import Run, simulate, with_settings
from vefl_sim.analysis.evaluation import evaluate
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import BadInput, NotResumable, RunNotFound
from vefl_sim.learning.datasets.signs import FACES
from vefl_sim.learning.learner import Evaluation
from vefl_sim.records.models import ConfusionMatrix, read_confusion

SHORT = with_settings(STOPPED, "run.rounds=3", "trace.slots=off", "learning.keep_models=1")


@pytest.fixture(scope="module", params=["fedbuff", pytest.param("centralized", marks=pytest.mark.slow)])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(with_settings(SHORT, f"scheme.kind={request.param}"), out=tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(with_settings(SHORT, "run.rounds=2"), out=tmp_path_factory.mktemp("done"))


@pytest.fixture
def copied(done: Run, tmp_path: Path) -> Run:
    return Run(shutil.copytree(done.path, tmp_path / "copies" / done.path.name))


def test_each_is_the_model_that_was_evaluated(finished: Run) -> None:
    accuracies = finished.rounds.set_index("round")["accuracy"]
    losses = finished.rounds.set_index("round")["loss"]
    assert finished.kept_models == [1, 2, 3] == accuracies.index.tolist()
    for round in finished.kept_models:
        [score] = evaluate(finished, finished.model(round))
        assert (score.evaluation.accuracy, score.evaluation.loss) == (accuracies[round], losses[round])
    assert losses.nunique() > 1
    last = finished.model()
    assert all(np.array_equal(array, finished.model(3).arrays[name]) for name, array in last.arrays.items())


def test_kept_models_can_be_used_before_the_run_is_done(done: Run, tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(SHORT, out=tmp_path, watcher=Killer(2))
    killed = only(tmp_path)
    assert not {"model.npz", "confusion.json"} & contents(killed).keys()  # they belong to the last round
    with pytest.raises(RunNotFound, match="has no model yet"):
        killed.model()
    kept = killed.model(1)
    assert np.array_equal(kept.arrays["params.Dense_0.kernel"], done.model(1).arrays["params.Dense_0.kernel"])


def test_the_confusion_matrix_is_that_of_the_last_evaluation(done: Run) -> None:
    matrix = done.confusion
    assert matrix is not None
    assert (matrix.round, matrix.classes) == (2, [face.name for face in FACES])
    counts = np.array(matrix.counts)
    assert counts.sum() == 100
    assert (counts.sum(axis=1) >= 6).all()  # 100 test samples of 16 classes, whose numbers differ by at most one
    assert np.trace(counts) / 100 == done.summary["last_accuracy"]


def test_a_confusion_matrix_without_names_and_those_that_are_not_written(tmp_path: Path) -> None:
    matrix = ConfusionMatrix.of(7, Evaluation(0.5, 1.0, np.eye(256, dtype=np.int64)), None)
    assert matrix is not None
    matrix.write(tmp_path)
    assert read_confusion(tmp_path) == matrix
    assert ConfusionMatrix.of(1, Evaluation(0.5, 1.0), None) is None  # a learner that does not count
    assert ConfusionMatrix.of(1, Evaluation(0.5, 1.0, np.eye(257, dtype=np.int64)), None) is None


def test_they_are_no_part_of_the_content(copied: Run) -> None:
    for file in ("model.npz", "model.json", "models/0000001.npz", "confusion.json"):
        (copied.path / file).unlink()
    assert copied.confusion is None
    assert copied.content_digest() == copied.summary["content_digest"]
    assert all(finding.passed for finding in verify(copied))


class TestBest:
    """`learning.keep_models = "best"`."""

    def test_it_is_the_first_with_the_highest_accuracy(self, tmp_path: Path) -> None:
        best = with_settings(SHORT, "learning.keep_models=best", "data.validation_samples=60")
        run = simulate(with_settings(best, "learning.learning_rate=0.5"), out=tmp_path)
        accuracies = run.rounds.set_index("round")["accuracy"]
        assert run.kept_models == [accuracies.idxmax()]
        validation, test = evaluate(run, run.model(run.kept_models[0]))
        assert validation.evaluation.accuracy == run.summary["best_accuracy"]
        assert (validation.size, test.size) == (60, 100)


MATRIX = {"round": 3, "classes": ["a", "b"], "counts": [[1, 2], [3, 4]]}
WRONG_MATRICES = [
    *(MATRIX | {"more": 1}, MATRIX | {"round": True}, MATRIX | {"classes": ["a"]}),
    *(MATRIX | {"counts": [[1, 2], row]} for row in ([3], [3, -4], [3, 4.5])),
    MATRIX | {"counts": [[1, 2]]},
    MATRIX | {"classes": None, "counts": [[0] * 257] * 257},
]


class TestStrangers:
    """A run directory may come from anywhere."""

    @pytest.mark.parametrize("file", ["model.npz", "model.json"])
    def test_a_damaged_or_missing_file(self, copied: Run, file: str) -> None:
        (copied.path / file).write_bytes(b"\0" * 100)
        with pytest.raises(RunNotFound, match=rf"{file} cannot be used .* --fresh"):
            copied.model()
        (copied.path / file).unlink()
        with pytest.raises(RunNotFound, match=rf"{file} is missing: restore it"):
            copied.model()

    @pytest.mark.parametrize("content", ["", "[" * 10_000, "{}", " " * (1 << 20) + "{}", *WRONG_MATRICES])
    def test_a_confusion_matrix_that_is_none(self, content: str | bytes | dict, tmp_path: Path) -> None:
        text = json.dumps(content) if isinstance(content, dict) else content
        (tmp_path / "confusion.json").write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(RunNotFound, match=r"confusion\.json is damaged"):
            read_confusion(tmp_path)

    def test_a_round_without_a_model(self, copied: Run) -> None:
        with pytest.raises(RunNotFound, match=r"no model of round 7; .*: 1, 2"):
            copied.model(7)

    def test_a_network_whose_source_is_not_that_of_the_run(self, copied: Run) -> None:
        versions = copied.path / "versions.json"
        versions.write_text(versions.read_text().replace('"tests.scripted:thousand_weights": "', '"x": "'))
        model = copied.model()
        assert model.parameters["params"]
        with pytest.raises(NotResumable, match=r"tests\.scripted:thousand_weights"):
            model.apply(np.zeros((1, 16, 16, 3), np.uint8))

    def test_a_network_in_the_run_itself(self, copied: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        (copied.path / "my_network.py").write_text("raise AssertionError('it was imported')")
        card = copied.path / "model.json"
        card.write_text(card.read_text().replace("tests.scripted:thousand_weights", "my_network:net"))
        monkeypatch.syspath_prepend(copied.path)
        with pytest.raises(BadInput, match="no code is loaded from a run"):
            copied.model().apply(np.zeros((1, 16, 16, 3), np.uint8))
