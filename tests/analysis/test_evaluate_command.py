"""`evaluate`: the accuracy that the run has measured, exactly; or that on another data set of the same shape."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.command_line import call
from tests.learning.datasets.files import SHARED
from tests.resumable import STOPPED
from vefl_sim import Dataset, Run, simulate, with_settings
from vefl_sim.analysis.evaluation import Score, evaluate
from vefl_sim.core.arrays import read_npz, write_npz
from vefl_sim.core.errors import BadInput, NotResumable
from vefl_sim.core.rng import Streams
from vefl_sim.learning.datasets.files import downloads
from vefl_sim.learning.datasets.signs import FACES
from vefl_sim.learning.learner import Evaluation
from vefl_sim.simulation.scenario import data_of

SHORT = with_settings(STOPPED, "run.rounds=2", "trace.slots=off", "model.factory=vefl_models.logistic:logistic")


PUBLISHED = (SHARED, downloads())
"""Folders that may hold the published data sets; the second is in the user's cache, and the tests use another one."""


def published(kind: str) -> Path:
    if found := next((folder / kind for folder in PUBLISHED if (folder / kind).is_dir()), None):
        return found
    pytest.skip(f"neither {SHARED} nor the user's cache holds {kind}; download it with data get {kind}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(SHORT, out=tmp_path_factory.mktemp("signs"))


@pytest.mark.parametrize("kind", ["signs", "mnist"])
def test_it_equals_the_last_accuracy_of_the_run(kind: str, tmp_path: Path) -> None:
    where = [] if kind == "signs" else [f"data.dir={published(kind)}"]
    finished = simulate(with_settings(SHORT, f"data.kind={kind}", "data.image_px=28", *where), out=tmp_path)
    [score] = evaluate(finished, finished.model())
    last = finished.rounds.iloc[-1]
    assert (score.evaluation.accuracy, score.evaluation.loss) == (last["accuracy"], last["loss"])
    assert score.evaluation.counts.tolist() == finished.confusion.counts
    assert finished.summary["last_accuracy"] == last["accuracy"] > 0


def test_data_of_the_user_are_those_of_the_run_or_refused(tmp_path: Path) -> None:
    own = simulate(with_settings(SHORT, f"data.kind={__name__}:stripes", "data.min_samples=1"), out=tmp_path)
    [score] = evaluate(own, own.model())
    assert score.evaluation.accuracy == own.summary["last_accuracy"]
    versions = own.path / "versions.json"
    versions.write_text(versions.read_text().replace(f'"{__name__}:stripes": "', f'"{__name__}:stripes": "other'))
    with pytest.raises(NotResumable, match=r"was not made with the .*:stripes that is found here"):
        evaluate(own, own.model())


def test_pixels_are_scaled_as_the_model_says(run: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run.path, tmp_path / run.path.name))
    card = json.loads((copy / "model.json").read_text())
    card["scaling"] |= {"mean": 0.9, "deviation": -0.5}
    (copy / "model.json").write_text(json.dumps(card))
    model = Run(copy).model()
    [score] = evaluate(Run(copy), model)
    dataset = data_of(run.experiment, Streams(run.experiment.run.seed), None)
    hits = model.apply(dataset.test_inputs).argmax(axis=1) == dataset.test_targets
    assert score.evaluation.accuracy == pytest.approx(hits.mean())
    assert score.evaluation.accuracy != run.summary["last_accuracy"]


class TestCommand:
    def test_weights_that_are_no_numbers_are_refused(self, run: Run, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(run.path, tmp_path / run.path.name))
        arrays = read_npz(copy / "model.npz")
        write_npz(copy / "model.npz", {name: array * np.float32("nan") for name, array in arrays.items()})
        done = call("evaluate", copy)
        assert done.returncode == 2
        assert "params.Dense_0.bias holds NaN or infinite numbers, as after a training that has diver" in done.stderr

    def test_it_prints_accuracy_loss_and_classes(self, run: Run) -> None:
        done = call("evaluate", run.path)
        assert done.returncode == 0, done.stderr
        last, lines = run.rounds.iloc[-1], done.stdout.splitlines()
        assert lines[0] == f"model           {run.path}/model.npz: vefl_models.logistic:logistic"
        assert lines[1] == "data            signs, 100 test samples"
        hits = round(100 * last["accuracy"])
        assert lines[2] == f"accuracy        {last['accuracy']:.4f} ({hits} of 100 samples)"
        assert lines[3] == f"loss            {last['loss']:.4f}"
        assert [line.split("  ")[8].strip() for line in lines[4:]] == [face.name for face in FACES]
        assert 'model.factory = "vefl_models.logistic:logistic" would be loaded from ' in done.stderr

    def test_a_run_of_another_version_is_evaluated_with_a_note(self, run: Run, tmp_path: Path) -> None:
        copy = Path(shutil.copytree(run.path, tmp_path / run.path.name))
        versions = copy / "versions.json"
        versions.write_text(versions.read_text().replace('"vefl_sim source": "', '"vefl_sim source": "other'))
        done = call("evaluate", copy)
        assert done.stdout.splitlines()[2:] == call("evaluate", run.path).stdout.splitlines()[2:]
        assert "# the run was made with another version of vefl_sim: the figures may differ" in done.stderr


def write_pictures(folder: Path, names: list[str]) -> Path:
    for split in ("train", "test"):
        for number, name in enumerate(names):
            (folder / split / name).mkdir(parents=True)
            picture = np.full((20, 20, 3), 40 * number, np.uint8)
            Image.fromarray(picture).save(folder / split / name / "1.png")
    return folder


def stripes(experiment: object, streams: object) -> Dataset:
    images, labels = np.zeros((16, 16, 16, 3), np.uint8), np.arange(16, dtype=np.int32)
    return Dataset("stripes", images, labels, images, labels, classes=16)


class TestOtherData:
    def test_a_folder_with_some_of_the_classes_in_another_order(self, run: Run, tmp_path: Path) -> None:
        names = ["stop", "danger", "parking"]
        [score] = evaluate(run, run.model(), str(write_pictures(tmp_path / "mine", names)))
        by_name = {name: int(row.sum()) for name, row in zip(score.classes, score.evaluation.counts, strict=True)}
        assert {name for name, samples in by_name.items() if samples} == set(names)
        assert score.size == 3

    def test_other_classes(self, run: Run, tmp_path: Path) -> None:
        folder = write_pictures(tmp_path / "mine", ["cat", "dog"])
        with pytest.raises(BadInput, match="mine has 2 classes, and the model takes 16"):
            evaluate(run, run.model(), str(folder))

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--data", "minst"], "--data minst: there is no such data set"),
            (["--dir", "here"], "add --data to name it"),
        ],
    )
    def test_what_is_neither_a_data_set_nor_a_folder(self, run: Run, arguments: list[str], words: str) -> None:
        done = call("evaluate", run.path, *arguments)
        assert done.returncode == 2
        assert words in done.stderr


def test_a_class_without_samples_has_no_accuracy() -> None:
    counts = np.array([[2, 1], [0, 0]])
    lines = [*Score("x", 3, ("a", "b"), Evaluation(2 / 3, 1.0, counts)).lines()]
    assert lines[-2:] == [f"{'':16}a  0.6667 (2 of 3)", f"{'':16}b       – (0 of 0)"]
