"""Rough wall time of a point on one core, to run the longest points first and to estimate the remaining time.

The constants, and those that schemes and data sets declare, were measured on one machine; the finished points of a
sweep correct them by a common factor.
"""

import math

from vefl_sim.core.clock import to_s
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import load_part, with_defaults
from vefl_sim.experiment.unused_keys import is_used
from vefl_sim.schemes.scheme import AnyScheme

_START_S = 4.0  # imports, traffic, data
_TRAFFIC_ONLY_S_PER_S = 1 / 300
_SAMPLE_S = 42e-6  # forward and backward pass of one sample of 28 × 28 × 1
_TEST_SAMPLE_S = 12e-6
_PIXELS = 28 * 28
_ARRIVALS_PER_S = 0.125  # of new CVs, at the default traffic
_SHARE_OF_ITERATIONS = 0.7  # of l_max, under constraints


def wall_time_s(experiment: Experiment) -> float:
    """Estimated wall time of an experiment on one core."""
    duration_s = to_s(experiment.duration_ns)
    scheme: AnyScheme = with_defaults(load_part("scheme.kind", experiment.scheme.kind), AnyScheme)
    traffic_only = not experiment.scheme.constrained or scheme.trains_centrally
    radio = _TRAFFIC_ONLY_S_PER_S if traffic_only else scheme.wall_s_per_s
    learning_s = _learning_s(experiment, scheme, duration_s) if experiment.learning.kind == "jax" else 0.0
    return _START_S + radio * duration_s + learning_s


def _learning_s(experiment: Experiment, scheme: AnyScheme, duration_s: float) -> float:
    rounds, in_coverage = experiment.rounds, experiment.mean_in_coverage
    train, test, size = _samples(experiment)
    tested = rounds / experiment.learning.evaluate_every * test * _TEST_SAMPLE_S
    if scheme.trains_centrally:
        return size * (rounds * train * _SAMPLE_S + tested)
    held = train / (in_coverage + duration_s * _ARRIVALS_PER_S)  # by one CV
    taking_part = min(experiment.scheme.selected, in_coverage) if scheme.selects else in_coverage
    share = _SHARE_OF_ITERATIONS if experiment.scheme.constrained else 1.0
    steps = math.ceil(share * experiment.vefl.max_local_iterations / experiment.learning.iterations_per_step)
    return size * (rounds * taking_part * held * steps * _SAMPLE_S + tested)


def _samples(experiment: Experiment) -> tuple[int, int, float]:
    """Numbers of training and test samples, and the cost of one relative to a grey image of 28 × 28."""
    data, kind = experiment.data, load_part("data.kind", experiment.data.kind)
    train = data.train_samples or int(getattr(kind, "train_samples", 12_000))
    test = data.test_samples or int(getattr(kind, "test_samples", 10_000))
    side_px = data.image_px if is_used(experiment, "data.image_px") else getattr(kind, "side_px", 28)
    return train, test, math.sqrt(getattr(kind, "channels", 1)) * side_px**2 / _PIXELS
