"""Adversaries: CVs whose labels are flipped (`adversary.share`), so that their updates harm the model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.learning.datasets.dataset import Dataset


def adversaries(cvs: NDArray[np.int64], share: float, streams: Streams) -> NDArray[np.bool_]:
    """Which CVs are adversaries; this depends on the CV only, and a larger share contains the smaller."""
    return np.array([streams.generator("adversary", int(cv)).random() < share for cv in cvs], np.bool_)


def with_flipped_labels(
    dataset: Dataset, shards: Mapping[int, NDArray[np.int64]], share: float, streams: Streams
) -> Dataset:
    """The data set in which the training samples of all adversaries have the class classes − 1 − label."""
    if not share:
        return dataset
    if dataset.classes is None:
        raise ExperimentError(
            f"adversary.share = {share:g} flips labels, and {dataset.name} has no classes: remove the key."
        )
    cvs, labels = np.array([*shards], np.int64), dataset.train_targets.copy()
    for cv in cvs[adversaries(cvs, share, streams)].tolist():
        labels[shards[cv]] = dataset.classes - 1 - labels[shards[cv]]
    return replace(dataset, train_targets=labels)
