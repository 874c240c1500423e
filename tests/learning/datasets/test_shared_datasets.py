"""The published data sets, on machines that have them: counts, classes, tracks, first samples."""

from pathlib import Path

import numpy as np
import pytest

from tests.learning.datasets.files import SHARED
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import downloads
from vefl_sim.learning.datasets.public import SOURCES, inventory

CIFAR = downloads() / "cifar10"
"""In the user's cache; the tests use another cache, which is set when they start."""


def folder(kind: str) -> Path:
    if not (SHARED / kind).is_dir():
        pytest.skip(f"{SHARED / kind} does not exist; it would hold the published files, for developers")
    return SHARED / kind


def read(kind: str, **keys: object) -> Dataset:
    return read_from(folder(kind), kind, **keys)


def read_from(place: Path, kind: str, **keys: object) -> Dataset:
    data = DataTable.model_validate({"kind": kind, "dir": str(place), **keys})
    return load_part("data.kind", kind).make(data, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("kind", "first", "of_class_0", "ink"),
    [("mnist", [5, 0, 4, 1, 9], 5923, 33.32), ("fashion-mnist", [9, 0, 0, 3, 0], 6000, 72.94)],
)
def test_mnist_is_complete(kind: str, first: list[int], of_class_0: int, ink: float) -> None:
    data = read(kind)
    assert data.train_inputs.shape == (60_000, 28, 28, 1)
    assert data.test_inputs.shape == (10_000, 28, 28, 1)
    assert data.train_targets[:5].tolist() == first
    assert np.count_nonzero(data.train_targets == 0) == of_class_0
    assert data.train_inputs.mean() == pytest.approx(ink, abs=0.01)  # the published mean · 255: 0.1307, 0.2860


def test_gtsrb_has_whole_tracks() -> None:
    data = read("gtsrb", image_px=16, train_samples=3000, test_samples=100)
    assert data.train_inputs.shape == (3000, 16, 16, 3)
    assert set(data.test_targets.tolist()) <= set(range(43))
    assert data.train_groups is not None
    assert 1100 < len(np.unique(data.train_groups)) <= 1307
    for track in np.unique(data.train_groups)[::50]:
        assert len(set(data.train_targets[data.train_groups == track].tolist())) == 1


@pytest.mark.parametrize(("kind", "state"), [("mnist", ""), ("fashion-mnist", ""), ("gtsrb", ", in compact form")])
def test_the_digests_are_those_of_the_published_files(kind: str, state: str) -> None:
    folder(kind)
    states = {holding.kind: holding.state for holding in inventory(SHARED)}
    assert states[kind] == f"complete{state}"


def test_the_published_files_of_cifar_are_complete_however_they_are_packed() -> None:
    [file] = SOURCES["cifar10"]
    if not (CIFAR / file.name).is_file():
        pytest.skip(f"{CIFAR / file.name} does not exist; download it with data get cifar10")
    assert file.is_in(CIFAR)
    data = read_from(CIFAR, "cifar10")
    assert data.train_inputs.shape == (50_000, 32, 32, 3)
    assert data.test_inputs.shape == (10_000, 32, 32, 3)
    assert data.train_targets[:5].tolist() == [6, 9, 9, 4, 1]
    assert np.bincount(data.train_targets).tolist() == [5000] * 10
    assert data.train_inputs.mean(axis=(0, 1, 2)) / 255 == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
