"""Everything a run needs before its processes start: the experiment's parts, its data and its traffic."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError, VeflError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration, load_part, part_names
from vefl_sim.experiment.unused_keys import unused_environment, without_unused_keys
from vefl_sim.learning.codecs.codec import Codec
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.holdings.adversary import with_flipped_labels
from vefl_sim.learning.learner import Learner
from vefl_sim.mobility.coverage import visitors
from vefl_sim.mobility.scene import Mobility
from vefl_sim.optimize.rat.edf import Scheduler
from vefl_sim.optimize.rat.problem import RatPolicy
from vefl_sim.radio.channel import Channel
from vefl_sim.radio.link import Link
from vefl_sim.simulation.compilation import Compilation
from vefl_sim.simulation.parts import (
    AnyScheme,
    make_channel,
    make_codec,
    make_dataset,
    make_learner,
    make_model,
    make_policy,
    make_scheduler,
    make_scheme,
)
from vefl_sim.simulation.traffic import make_traffic

_STATISTIC_BITS = 32  # of BatchNorm's averages, which codecs do not code


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs that is not a process; built once, before the first round."""

    experiment: Experiment
    streams: Streams
    shards: Mapping[int, NDArray[np.int64]]  # CV -> its samples, for all CVs that will enter coverage
    dataset: Dataset
    learner: Learner
    codec: Codec
    link: Link
    scheme: AnyScheme
    scheduler: Scheduler
    policy: RatPolicy
    mobility: Callable[[], Mobility]  # starts the same traffic from its beginning
    channel: Callable[[], Channel]  # makes the same channel, before its first scene

    @property
    def payload_bits(self) -> int:
        """S, the bits of an update: those of its code, times the number of models that the scheme sends."""
        parameters, statistics = self.learner.parameters, self.learner.statistics
        if getattr(self.codec, "is_exact", False):
            bits = self.codec.bits(parameters)
        else:
            bits = self.codec.bits(parameters - statistics) + _STATISTIC_BITS * statistics
        return bits * self._models

    @property
    def model_bits(self) -> int:
        """Bits that the server sends to a CV: the model as it is, and the further models of the scheme."""
        return self.learner.parameters * (1 + self.experiment.model.float_bits) * self._models

    @property
    def _models(self) -> int:
        return int(getattr(self.scheme, "models_per_update", 1))


def build_scenario(experiment: Experiment, folder: Path | None = None) -> Scenario:
    """Build all parts of an experiment; bad input is reported here, before anything is simulated.

    `folder`: where SUMO's trajectory is kept. SUMO may take an hour, so everything else that can be wrong is checked
    first. Unused keys are reset to their defaults, because parts may read them. Whatever a user-defined part raises
    becomes one sentence.
    """
    try:
        return _build(without_unused_keys(experiment), folder)
    except VeflError:
        raise
    except Exception as error:
        if not any(_is_user_defined(name) for _, name in part_names(experiment)):
            raise  # an error in vefl_sim itself, not bad input
        raise ExperimentError(f"The experiment cannot be prepared: {type(error).__name__}: {error}") from error


def _is_user_defined(part: str) -> bool:
    return part.split(":")[0].split(".")[0] not in ("vefl_sim", "vefl_models")


def _build(experiment: Experiment, folder: Path | None) -> Scenario:
    streams = Streams(experiment.run.seed)
    scheme, scheduler, policy = make_scheme(experiment), make_scheduler(experiment), make_policy(experiment)
    channel = partial(make_channel, experiment, streams)
    channel()  # a channel that cannot be used is reported now
    with Compilation(experiment) as compilation:
        dataset, module, traffic = _data_model_traffic(experiment, streams, folder)
        shards = _holdings(experiment, streams, dataset, traffic)
        if not getattr(scheme, "trains_centrally", False):
            dataset = with_flipped_labels(dataset, shards, experiment.adversary.share, streams)
        learner = make_learner(experiment, dataset, shards, scheme, module, streams)
        if compilation.is_running:
            learner.rehearse()
        compilation.wait()
    return Scenario(
        experiment=experiment,
        streams=streams,
        shards=shards,
        dataset=dataset,
        learner=learner,
        codec=make_codec(experiment, scheme, learner),
        link=Link.of(experiment.radio),
        scheme=scheme,
        scheduler=scheduler,
        policy=policy,
        mobility=traffic,
        channel=channel,
    )


def _data_model_traffic(
    experiment: Experiment, streams: Streams, folder: Path | None
) -> tuple[Dataset, Any, Callable[[], Mobility]]:
    """Data set, network and traffic; the network is checked before the traffic, which may take long."""
    if not _from_traffic(experiment):
        dataset = make_dataset(experiment, streams)
        module = make_model(experiment, dataset)
        return dataset, module, make_traffic(experiment, streams, folder)
    module = make_model(experiment, load_part("data.kind", experiment.data.kind).example(experiment.data))
    traffic = make_traffic(experiment, streams, folder)
    return make_dataset(experiment, streams, traffic), module, traffic


def _from_traffic(experiment: Experiment) -> bool:
    """Whether the CVs of the run record the data set."""
    return bool(declaration("data.kind", experiment.data.kind, "from_traffic", False))


def data_of(experiment: Experiment, streams: Streams, folder: Path | None = None) -> Dataset:
    """The data set of an experiment; `folder`: where its traffic is, if the run has driven it ahead."""
    if not _from_traffic(experiment):
        return make_dataset(experiment, streams)
    return make_dataset(experiment, streams, make_traffic(experiment, streams, folder))


def data_and_holdings(experiment: Experiment, streams: Streams) -> tuple[Dataset, dict[int, NDArray[np.int64]]]:
    """The data set, and the numbers of the samples that each CV holds."""
    if not _from_traffic(experiment):
        dataset = make_dataset(experiment, streams)
        return dataset, _holdings(experiment, streams, dataset, make_traffic(experiment, streams))
    traffic = make_traffic(experiment, streams)
    dataset = make_dataset(experiment, streams, traffic)
    return dataset, _holdings(experiment, streams, dataset, traffic)


def _holdings(
    experiment: Experiment, streams: Streams, dataset: Dataset, traffic: Callable[[], Mobility]
) -> dict[int, NDArray[np.int64]]:
    cvs = visitors(traffic(), experiment.radio.coverage_radius_m, experiment.duration_ns)
    message = declaration("mobility.kind", experiment.mobility.kind, "no_cv_message", None)
    if message and not cvs.size:
        raise ExperimentError(message(experiment))
    from vefl_sim.learning.holdings.partition import partition

    data = experiment.data
    if "data.holders" in unused_environment(experiment.scheme.kind):
        data = data.model_copy(update={"holders": 0})  # or too few of them would be refused
    return partition(dataset, cvs, data, streams.generator("partition"))
