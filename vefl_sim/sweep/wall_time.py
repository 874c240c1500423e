"""Rough wall time of a point on one core, to run the longest points first and to estimate the remaining time.

The constants were measured on one machine; the finished points of a sweep correct them by a common factor.
"""

import math

from vefl_sim.core.clock import to_s
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.sweep.results.measurements import SELECTING

_START_S = 4.0  # imports, traffic, data
_SIMULATED_S = {"pdpc": 1 / 70, "centralized": 1 / 300}  # wall time per simulated second, without learning
_ALL_TAKE_PART_S = 1 / 15  # the same for all other schemes
_SAMPLE_S = 42e-6  # forward and backward pass of one sample of 28 × 28 × 1
_TEST_SAMPLE_S = 12e-6
_PIXELS = 28 * 28
_CHANNELS = {"signs": 3, "gtsrb": 3, "cifar10": 3}
_TRAIN = {"mnist": 60_000, "fashion-mnist": 60_000, "cifar10": 50_000, "gtsrb": 39_209}
_TEST = {"gtsrb": 12_630, "signs": 2_000}
_ARRIVALS_PER_S = 0.125  # of new CVs, at the default traffic
_SHARE_OF_ITERATIONS = 0.7  # of l_max, under constraints


def wall_time_s(experiment: Experiment) -> float:
    """Estimated wall time of an experiment on one core."""
    duration_s = to_s(experiment.duration_ns)
    radio_s = duration_s * _SIMULATED_S.get(experiment.scheme.kind, _ALL_TAKE_PART_S)
    if not experiment.scheme.constrained:
        radio_s = duration_s * _SIMULATED_S["centralized"]
    return _START_S + radio_s + (_learning_s(experiment, duration_s) if experiment.learning.kind == "jax" else 0.0)


def _learning_s(experiment: Experiment, duration_s: float) -> float:
    data, rounds = experiment.data, experiment.rounds
    train = data.train_samples or _TRAIN.get(data.kind, 12_000)
    test = data.test_samples or _TEST.get(data.kind, 10_000)
    side_px = data.image_px if data.kind in ("signs", "gtsrb") else 28
    size = math.sqrt(_CHANNELS.get(data.kind, 1)) * side_px**2 / _PIXELS
    tested = rounds / experiment.learning.evaluate_every * test * _TEST_SAMPLE_S
    if experiment.scheme.kind == "centralized":
        return size * (rounds * train * _SAMPLE_S + tested)
    held = train / (experiment.mean_in_coverage + duration_s * _ARRIVALS_PER_S)  # by one CV
    picked = min(experiment.scheme.selected, experiment.mean_in_coverage)
    taking_part = picked if experiment.scheme.kind in SELECTING else experiment.mean_in_coverage
    share = _SHARE_OF_ITERATIONS if experiment.scheme.constrained else 1.0
    steps = math.ceil(share * experiment.vefl.max_local_iterations / experiment.learning.iterations_per_step)
    return size * (rounds * taking_part * held * steps * _SAMPLE_S + tested)
