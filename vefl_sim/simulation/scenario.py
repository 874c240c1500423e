"""Everything a run needs before its processes start: its data, its traffic, and the parts that the experiment names."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError, VeflError
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.changes import with_changes
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import (
    declaration,
    is_part,
    load_function,
    load_part,
    make_part,
    part_names,
    require_protocol,
    with_defaults,
)
from vefl_sim.experiment.unused_keys import unused_environment, without_unused_keys
from vefl_sim.learning.codecs import Codec
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import held_out
from vefl_sim.learning.holdings import partition, with_flipped_labels
from vefl_sim.learning.learner import Learner
from vefl_sim.learning.losses import Loss, require_loss
from vefl_sim.mobility.coverage import visitors
from vefl_sim.mobility.kept import KeptTraffic
from vefl_sim.mobility.scene import Mobility
from vefl_sim.optimize.rat.edf import Scheduler
from vefl_sim.optimize.rat.problem import RatPolicy
from vefl_sim.radio.channel import Channel, CheckedChannel, DelayedCsi
from vefl_sim.radio.link import Link
from vefl_sim.schemes.centralized import BATCH_SIZE, EVERYTHING
from vefl_sim.schemes.scheme import AnyScheme, AsynchronousScheme, Scheme
from vefl_sim.simulation.compilation import compiling_ahead

Shards = Mapping[int, NDArray[np.int64]]
"""CV -> its samples, for all CVs that will enter coverage."""
Traffic = Callable[[], Mobility]
"""Starts the same traffic each time it is called."""
_STATISTIC_BITS = 32  # of BatchNorm's averages, which codecs do not code


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs that is not a process; built once, before the first round.

    It holds nothing that changes during a run, so that a second run starts like the first.
    """

    experiment: Experiment
    streams: Streams
    shards: Shards
    dataset: Dataset
    learner: Learner
    mobility: Traffic
    link: Link
    payload_bits: int  # S, of an update
    learn: Callable[[Experiment], tuple[Dataset, Learner]]  # makes both with other values of keys that can change

    def with_changes(self, indices: Sequence[int]) -> "Scenario":
        """This scenario with the keys of these changes of its experiment."""
        if not indices:
            return self
        experiment = without_unused_keys(with_changes(self.experiment, indices))
        dataset, learner = self.dataset, self.learner
        if any(getattr(experiment, table) != getattr(self.experiment, table) for table in ("learning", "adversary")):
            dataset, learner = self.learn(experiment)
        link = Link.of(experiment.radio)
        return replace(self, experiment=experiment, dataset=dataset, learner=learner, link=link)


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
        ours = ("vefl_sim", "vefl_models")
        if all(name.split(":")[0].split(".")[0] in ours for _, name in part_names(experiment)):
            raise  # an error in vefl_sim itself, not bad input
        raise ExperimentError(f"The experiment cannot be prepared: {type(error).__name__}: {error}") from error


def _build(experiment: Experiment, folder: Path | None) -> Scenario:
    streams, scheme = Streams(experiment.run.seed), make_scheme(experiment)
    make_scheduler_and_policy(experiment)  # parts that cannot be used are reported now
    make_channel(experiment, streams)
    with compiling_ahead(experiment) as compiler:
        dataset = _data_without_traffic(experiment, streams)
        example = dataset or load_part("data.kind", experiment.data.kind).example(experiment.data)
        module = make_model(experiment, example)
        traffic = make_traffic(experiment, streams, folder)
        dataset = dataset or make_dataset(experiment, streams, traffic)
        shards = _holdings(experiment, streams, dataset, traffic)

        def learn(experiment: Experiment) -> tuple[Dataset, Learner]:
            scheme, data = make_scheme(experiment), dataset
            if not scheme.trains_centrally:
                data = with_flipped_labels(data, shards, experiment.adversary.share, streams)
            return data, make_learner(experiment, data, shards, scheme, module, streams)

        trained_on, learner = learn(experiment)
        if compiler and compiler.poll() is None:  # there is time to compile something else
            learner.rehearse()
    link, bits = Link.of(experiment.radio), payload_bits(experiment, scheme, make_codec(experiment), learner)
    return Scenario(experiment, streams, shards, trained_on, learner, traffic, link, bits, learn)


def _data_without_traffic(experiment: Experiment, streams: Streams) -> Dataset | None:
    """The data set of an experiment; None if the CVs of the run record it, so that it needs the traffic."""
    from_traffic = declaration("data.kind", experiment.data.kind, "from_traffic", False)
    return None if from_traffic else make_dataset(experiment, streams)


def data_of(experiment: Experiment, streams: Streams, folder: Path | None = None) -> Dataset:
    """The data set of an experiment; `folder`: where its traffic is, if the run has driven it ahead."""
    dataset = _data_without_traffic(experiment, streams)
    return dataset or make_dataset(experiment, streams, make_traffic(experiment, streams, folder))


def data_and_holdings(experiment: Experiment, streams: Streams) -> tuple[Dataset, Shards]:
    """The data set, and the numbers of the samples that each CV holds."""
    dataset, traffic = _data_without_traffic(experiment, streams), make_traffic(experiment, streams)
    dataset = dataset or make_dataset(experiment, streams, traffic)
    return dataset, _holdings(experiment, streams, dataset, traffic)


def _holdings(experiment: Experiment, streams: Streams, dataset: Dataset, traffic: Traffic) -> Shards:
    cvs = visitors(traffic(), experiment.radio.coverage_radius_m, experiment.duration_ns)
    message = declaration("mobility.kind", experiment.mobility.kind, "no_cv_message", None)
    if message and not cvs.size:
        raise ExperimentError(message(experiment))
    data = experiment.data
    if "data.holders" in unused_environment(experiment.scheme.kind):
        data = data.model_copy(update={"holders": 0})  # or too few of them would be refused
    return partition(dataset, cvs, data, streams.generator("partition"))


def make_scheme(experiment: Experiment) -> AnyScheme:
    """The scheme named by `scheme.kind`; a user-defined one gets the defaults of members that it does not have."""
    scheme: AnyScheme = with_defaults(make_part("scheme.kind", experiment.scheme.kind, experiment), AnyScheme)
    _check_scheme(scheme)
    if scheme.buffer is not None and experiment.aggregation.form == "models":
        kind = type(scheme).__name__
        raise ExperimentError(f"aggregation.form has no effect with {kind}, which has no rounds: remove it.")
    return scheme


def _check_scheme(scheme: AnyScheme) -> None:
    """Refuse a scheme that lacks a method, or with a member of another form than `schemes/scheme.py` describes."""
    require_protocol("scheme.kind", scheme, Scheme if scheme.buffer is None else AsynchronousScheme)
    name, mu, models = type(scheme).__name__, scheme.proximal_mu, scheme.models_per_update
    if scheme.buffer is not None and not (isinstance(scheme.buffer, int) and scheme.buffer >= 1):
        raise ExperimentError(f"scheme.kind: {name}.buffer = {scheme.buffer!r} must be 1, 2, 3, …")
    if mu is not None and not (isinstance(mu, (int, float)) and 0 <= mu < float("inf")):
        raise ExperimentError(f"scheme.kind: {name}.proximal_mu = {mu!r} must be a number from 0 on.")
    if not isinstance(scheme.memory, dict | None):
        raise ExperimentError(f"scheme.kind: {name}.memory must be a dict of numbers and arrays.")
    if not isinstance(models, int) or models < 1:
        raise ExperimentError(f"scheme.kind: {name}.models_per_update = {models!r} must be 1, 2, 3, …")
    methods = {
        "local": ["cv"],
        "local_term": ["local", "start"],
        "aggregate_updates": ["updates", "model"],
        "begin": ["model"],
    }
    for method, arguments in methods.items():
        try:
            if (own := getattr(scheme, method)) is not None:
                inspect.signature(own).bind(*arguments)
        except TypeError:
            raise ExperimentError(f"scheme.kind: {name}.{method} must take ({', '.join(arguments)}).") from None


def make_codec(experiment: Experiment) -> Codec:
    """The codec named by `update.codec`."""
    codec: Codec = with_defaults(make_part("update.codec", experiment.update.codec, experiment), Codec)
    require_protocol("update.codec", codec, Codec)
    return codec


def payload_bits(experiment: Experiment, scheme: AnyScheme, codec: Codec, learner: Learner) -> int:
    """S, the bits of an update: those of its code, times the number of models that the scheme sends.

    An error if the codec states no size, or cannot code what the scheme sends.
    """
    if scheme.models_per_update > 1 and not codec.is_exact:
        raise ExperimentError(
            f"scheme.kind: an update of {type(scheme).__name__} has several vectors, and only one would be coded: set "
            'update.codec = "float32".'
        )
    coded = learner.parameters if codec.is_exact else learner.parameters - learner.statistics
    bits = codec.bits(coded)
    if not isinstance(bits, int) or bits < 1:
        name = experiment.update.codec
        raise ExperimentError(f'update.codec = "{name}" states {bits!r} bits for {coded} parameters: it must be 1 on.')
    return (bits + _STATISTIC_BITS * (learner.parameters - coded)) * scheme.models_per_update


def make_scheduler_and_policy(experiment: Experiment) -> tuple[Scheduler, RatPolicy]:
    """The functions named by `mac.scheduler` and `rat.method`, built in or user-defined."""
    scheduler = load_function("mac.scheduler", experiment.mac.scheduler, Scheduler)
    return scheduler, load_function("rat.method", experiment.rat.method, RatPolicy)


def make_channel(experiment: Experiment, streams: Streams) -> Channel:
    """The channel named by `radio.channel`, before its first scene."""
    radio, name = experiment.radio, experiment.radio.channel
    channel: Channel = make_part("radio.channel", name, experiment, streams)
    require_protocol("radio.channel", channel, Channel)
    if is_part(name):
        if hasattr(channel, "begin_round") and not isinstance(channel, Stateful):
            raise ExperimentError(
                f'radio.channel = "{name}" has begin_round, so it needs state and restore: a resumed run repeats only '
                "moves."
            )
        channel = CheckedChannel(channel, radio.prbs)
    if not radio.csi_delay_slots:
        return channel
    return DelayedCsi(channel, radio.csi_delay_slots, experiment.slots.slot_ns, radio.csi_margin)


def make_traffic(experiment: Experiment, streams: Streams, folder: Path | None = None) -> Traffic:
    """A function that starts the traffic named by `mobility.kind`, the same each time it is called.

    Traffic that is driven ahead of the rounds is driven here, into `folder`, or into a temporary one.
    """
    kind = experiment.mobility.kind
    if declaration("mobility.kind", kind, "drives_ahead", False):
        with ExitStack() as temporary:  # is removed after an error, else when nobody uses the traffic any more
            if folder is None:
                folder = Path(
                    temporary.enter_context(TemporaryDirectory(prefix="vefl_sim-", ignore_cleanup_errors=True))
                )
            traffic: Traffic = make_part("mobility.kind", kind, experiment, folder)
            finalize(traffic, temporary.pop_all().close)
        return traffic

    def start() -> Mobility:
        mobility: Mobility = make_part("mobility.kind", kind, experiment, streams)
        require_protocol("mobility.kind", mobility, Mobility)
        return mobility

    return KeptTraffic(start()) if declaration("mobility.kind", kind, "kept", False) else start


def make_dataset(experiment: Experiment, streams: Streams, *traffic: Traffic) -> Dataset:
    """The data set named by `data.kind`, with validation samples in place of the test set if they are asked for.

    `traffic`: that of the run, only for kinds that declare `from_traffic`.
    """
    data = experiment.data
    dataset = make_part("data.kind", data.kind, experiment, streams, *traffic)
    if not isinstance(dataset, Dataset):
        raise ExperimentError(f'data.kind = "{data.kind}" gives a {type(dataset).__name__}: return a Dataset.')
    samples = data.validation_samples
    return held_out(dataset, samples, streams.generator("validation")) if samples else dataset


def make_model(experiment: Experiment, dataset: Dataset) -> Any:
    """The flax module that `model.factory` makes; an error if it does not accept the data set's inputs."""
    from vefl_sim.learning.network import input_spec, require_usable

    name = experiment.model.factory
    module = make_part("model.factory", name, dataset.outputs)
    try:
        require_usable(module, input_spec(dataset.input_shape, dataset.train_inputs.dtype), name)
    except VeflError:
        raise
    except Exception as error:
        shape, message = " × ".join(map(str, dataset.input_shape)), f"{type(error).__name__}: {error}"
        what = "images" if dataset.train_inputs.dtype == np.uint8 else "inputs"
        hint = "" if len(dataset.input_shape) == 3 else ' (for inputs that are no images try "vefl_models.mlp:mlp")'
        raise ExperimentError(
            f'The experiment cannot be prepared: model.factory = "{name}" does not take {what} of {shape}: {message}'
            f"{hint}"
        ) from error
    return module


def make_loss(experiment: Experiment, dataset: Dataset, module: Any) -> Loss:
    """The loss named by `learning.loss`; an error if it does not fit the data set or the network."""
    name = experiment.learning.loss
    if (name == "cross-entropy") != (dataset.classes is not None) and not is_part(name):
        targets, other = ("numbers", "mse") if dataset.classes is None else ("classes", "cross-entropy")
        raise ExperimentError(
            f'learning.loss = "{name}" does not fit data.kind = "{experiment.data.kind}", whose targets are {targets}: '
            f'set learning.loss = "{other}".'
        )
    loss: Loss = load_function("learning.loss", name, Loss)
    require_loss(loss, name, module, dataset)
    return loss


def make_learner(
    experiment: Experiment, dataset: Dataset, shards: Shards, scheme: AnyScheme, module: Any, streams: Streams
) -> Learner:
    """The learner, with the samples that each CV holds; `centralized` holds all samples under one number."""
    from vefl_sim.learning.jax_learner import JaxLearner, Options, parameter_shapes, sizes
    from vefl_sim.learning.local import Shuffling
    from vefl_sim.learning.network import input_spec
    from vefl_sim.learning.trained_model import start_model

    learning, spec = experiment.learning, input_spec(dataset.input_shape, dataset.train_inputs.dtype)
    if learning.kind == "none":
        return Learner(*sizes(parameter_shapes(module, spec)))
    batch_size = learning.batch_size
    if scheme.trains_centrally:
        shards, batch_size = {EVERYTHING: np.arange(len(dataset.train_targets))}, batch_size or BATCH_SIZE
    start = experiment.model.start and start_model(experiment.model.start, experiment.model.factory, module, spec)
    shuffling = Shuffling(batch_size, streams.seed_for("batches")) if batch_size else None
    return JaxLearner(
        dataset,
        shards,
        module,
        learning_rate=learning.learning_rate,
        proximal_mu=learning.proximal_mu if scheme.proximal_mu is None else scheme.proximal_mu,
        seed=streams.seed_for("init"),
        start=start or None,
        options=Options(
            learning.optimizer,
            shuffling,
            learning.threads,
            learning.iterations_per_step,
            make_loss(experiment, dataset, module),
            streams.seed_for("dropout"),
            learning.momentum,
            scheme.local_term,
        ),
    )
