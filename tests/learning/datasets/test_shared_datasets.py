"""The published data sets, on machines that have them: counts, classes, tracks, first samples."""

from pathlib import Path

import numpy as np
import pytest

from tests.learning.datasets.files import SHARED
from tests.learning.datasets.test_kinds import read
from vefl_sim.learning.datasets.files import downloads
from vefl_sim.learning.datasets.public import inventory

CIFAR = downloads()
"""In the user's cache; the tests use another cache, which is set when they start."""


def folder(parent: Path, kind: str, state: str = "complete") -> Path:
    """The folder of a data set, whose files are complete."""
    if not (parent / kind).is_dir():
        pytest.skip(f"{parent / kind} does not exist; it would hold the published files, for developers")
    assert [holding.state for holding in inventory(parent) if holding.kind == kind] == [state]
    return parent / kind


@pytest.mark.parametrize(
    ("kind", "first", "of_class_0", "ink"),
    [("mnist", [5, 0, 4, 1, 9], 5923, 33.32), ("fashion-mnist", [9, 0, 0, 3, 0], 6000, 72.94)],
)
def test_mnist_is_complete(kind: str, first: list[int], of_class_0: int, ink: float) -> None:
    data = read(kind, folder(SHARED, kind))
    assert (data.train_inputs.shape, data.test_inputs.shape) == ((60_000, 28, 28, 1), (10_000, 28, 28, 1))
    assert data.train_targets[:5].tolist() == first
    assert np.count_nonzero(data.train_targets == 0) == of_class_0
    assert data.train_inputs.mean() == pytest.approx(ink, abs=0.01)  # the published mean · 255: 0.1307, 0.2860


def test_gtsrb_has_whole_tracks() -> None:
    place = folder(SHARED, "gtsrb", "complete, in compact form")
    data = read("gtsrb", place, image_px=16, train_samples=3000, test_samples=100)
    assert data.train_inputs.shape == (3000, 16, 16, 3)
    assert data.train_groups is not None
    assert 1100 < len(np.unique(data.train_groups)) <= 1307
    for track in np.unique(data.train_groups)[::50]:
        assert len(set(data.train_targets[data.train_groups == track].tolist())) == 1


def test_cifar_is_complete_however_it_is_packed() -> None:
    data = read("cifar10", folder(CIFAR, "cifar10"))
    assert (data.train_inputs.shape, data.test_inputs.shape) == ((50_000, 32, 32, 3), (10_000, 32, 32, 3))
    assert data.train_targets[:5].tolist() == [6, 9, 9, 4, 1]
    assert np.bincount(data.train_targets).tolist() == [5000] * 10
    assert data.train_inputs.mean(axis=(0, 1, 2)) / 255 == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
