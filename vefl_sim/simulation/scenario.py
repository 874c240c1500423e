"""The only wiring: an experiment becomes parts, and parts become actors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.unused_keys import without_ignored
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import Learner
from vefl_sim.mobility.coverage import visitors
from vefl_sim.mobility.recorded.trajectory import Tell
from vefl_sim.mobility.scene import Mobility
from vefl_sim.optimize.rat.edf import Scheduler
from vefl_sim.optimize.rat.problem import RatPolicy
from vefl_sim.radio.link import Link
from vefl_sim.simulation.parts import (
    AnyScheme,
    make_dataset,
    make_learner,
    make_model,
    make_policy,
    make_scheduler,
    make_scheme,
)
from vefl_sim.simulation.traffic import make_traffic


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs that is not a process; made once, before anything is written."""

    experiment: Experiment
    streams: Streams
    shards: Mapping[int, NDArray[np.int64]]  # CV -> its samples; keys are all CVs that will be in coverage
    dataset: Dataset
    learner: Learner
    link: Link
    scheme: AnyScheme
    scheduler: Scheduler
    policy: RatPolicy | str
    mobility: Callable[[], Mobility]  # a fresh start of the same traffic

    @property
    def payload_bits(self) -> int:
        """S = M·(1 + FPP)."""
        return self.learner.parameters * (1 + self.experiment.model.float_bits)


def build_scenario(experiment: Experiment, folder: Path | None = None, tell: Tell | None = None) -> Scenario:
    """Make all parts. Bad input shows here, before anything is simulated.

    `folder`: where traffic is kept that cannot be made again step by step; `tell` hears how far that is. Such traffic
    may take an hour, so that all that can be wrong elsewhere comes before. Keys that the experiment declares without
    effect are at their defaults from here on, because parts may read keys for whatever scheme there is.
    """
    experiment = without_ignored(experiment)
    streams = Streams(experiment.run.seed)
    scheme, scheduler, policy = make_scheme(experiment), make_scheduler(experiment), make_policy(experiment)
    dataset = make_dataset(experiment, streams)
    module = make_model(experiment, dataset)
    traffic = make_traffic(experiment, streams, folder, tell)
    shards = _dealt(experiment, streams, dataset, traffic)
    return Scenario(
        experiment=experiment,
        streams=streams,
        shards=shards,
        dataset=dataset,
        learner=make_learner(experiment, dataset, shards, scheme, module, streams),
        link=Link.of(experiment.radio),
        scheme=scheme,
        scheduler=scheduler,
        policy=policy,
        mobility=traffic,
    )


def share_out(experiment: Experiment, streams: Streams) -> tuple[Dataset, dict[int, NDArray[np.int64]]]:
    """The data, and which samples each CV holds that will be in coverage."""
    dataset = make_dataset(experiment, streams)
    return dataset, _dealt(experiment, streams, dataset, make_traffic(experiment, streams))


def _dealt(
    experiment: Experiment, streams: Streams, dataset: Dataset, traffic: Callable[[], Mobility]
) -> dict[int, NDArray[np.int64]]:
    cvs = visitors(traffic(), experiment.radio.coverage_radius_m, experiment.duration_ns)
    if experiment.mobility.kind in ("playback", "sumo") and not cvs.size:
        raise ExperimentError(_nobody(experiment))
    return _shards(experiment, dataset, cvs, streams)


def _nobody(experiment: Experiment) -> str:
    mobility, radius_m = experiment.mobility, experiment.radio.coverage_radius_m
    if mobility.kind == "sumo":
        return (
            f'mobility.file = "{mobility.file}": no CV comes within radio.coverage_radius_m = {radius_m:g} of the gNB '
            f"in {to_s(experiment.duration_ns):g} s: make the run longer, or let it begin later (mobility.start_s)."
        )
    return (
        f"No CV of the recording comes within radio.coverage_radius_m = {radius_m:g} of mobility.origin_m = "
        f"{list(mobility.origin_m or (0.0, 0.0))}: say where the gNB stands in its coordinates."
    )


def _shards(
    experiment: Experiment, dataset: Dataset, cvs: NDArray[np.int64], streams: Streams
) -> dict[int, NDArray[np.int64]]:
    from vefl_sim.learning.partition import partition

    parts = partition(dataset, len(cvs), experiment.data, streams.generator("partition"))
    return dict(zip(cvs.tolist(), parts, strict=True))
