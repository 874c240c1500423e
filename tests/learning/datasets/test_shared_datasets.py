"""The published data sets, on machines that have them: complete, and read as their publishers describe them."""

from pathlib import Path

import numpy as np
import pytest

from tests.learning.datasets.files import SHARED
from tests.learning.datasets.test_kinds import read
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.files import downloads
from vefl_sim.learning.datasets.public import inventory

CACHE = downloads()
"""Of the user; the tests use another cache, which is set when they start."""


def complete(parent: Path, kind: str, form: str = "", **keys: object) -> Dataset:
    if not (parent / kind).is_dir():
        pytest.skip(f"{parent / kind} does not exist; it would hold the published files, for developers")
    assert [holding.state for holding in inventory(parent) if holding.kind == kind] == [f"complete{form}"]
    return read(kind, parent / kind, **keys)


@pytest.mark.parametrize(
    ("parent", "kind", "shape", "first", "of_class_0", "mean"),
    [
        (SHARED, "mnist", (60_000, 28, 28, 1), [5, 0, 4, 1, 9], 5923, 0.1307),
        (SHARED, "fashion-mnist", (60_000, 28, 28, 1), [9, 0, 0, 3, 0], 6000, 0.2860),
        (CACHE, "cifar10", (50_000, 32, 32, 3), [6, 9, 9, 4, 1], 5000, 0.4734),
    ],
)
def test_all_images_are_read(
    parent: Path, kind: str, shape: tuple[int, ...], first: list[int], of_class_0: int, mean: float
) -> None:
    data = complete(parent, kind)
    assert (data.train_inputs.shape, data.test_inputs.shape) == (shape, (10_000, *shape[1:]))
    assert (data.train_targets[:5].tolist(), np.count_nonzero(data.train_targets == 0)) == (first, of_class_0)
    assert data.train_inputs.mean() / 255 == pytest.approx(mean, abs=1e-4)  # as published


def test_gtsrb_has_whole_tracks() -> None:
    data = complete(SHARED, "gtsrb", ", in compact form", image_px=16, train_samples=3000, test_samples=100)
    assert data.train_inputs.shape == (3000, 16, 16, 3)
    assert data.train_groups is not None
    assert 1100 < len(np.unique(data.train_groups)) <= 1307
    for track in np.unique(data.train_groups)[::50]:
        assert len(set(data.train_targets[data.train_groups == track].tolist())) == 1
