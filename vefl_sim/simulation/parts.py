"""The parts that an experiment names, built in or user-defined: scheme, scheduler, RAT policy, channel, data, model."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError, VeflError
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part, load_part, make_part, require_function, require_protocol
from vefl_sim.learning.codecs.codec import Codec
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import Learner, NullLearner
from vefl_sim.learning.losses import Loss, require_loss
from vefl_sim.mobility.scene import Mobility
from vefl_sim.optimize.rat.edf import Scheduler
from vefl_sim.optimize.rat.problem import RatPolicy
from vefl_sim.protocol.server.synchronous import EVERYTHING
from vefl_sim.radio.channel import Channel, CheckedChannel
from vefl_sim.radio.csi import DelayedCsi
from vefl_sim.schemes.centralized import BATCH_SIZE
from vefl_sim.schemes.scheme import AsynchronousScheme, Scheme

AnyScheme = Scheme | AsynchronousScheme


def is_asynchronous(scheme: object) -> bool:
    """Whether a scheme runs without rounds: it has a `buffer`."""
    return getattr(scheme, "buffer", None) is not None


def make_scheme(experiment: Experiment) -> AnyScheme:
    """The scheme named by `scheme.kind`."""
    scheme = _checked_scheme(make_part("scheme.kind", experiment.scheme.kind, experiment))
    if is_asynchronous(scheme) and experiment.aggregation.form == "models":
        kind = type(scheme).__name__
        raise ExperimentError(f"aggregation.form has no effect with {kind}, which has no rounds: remove it.")
    return scheme


def _checked_scheme(scheme: Any) -> AnyScheme:
    """Check a scheme, so that a missing method of a user-defined one is reported before the run starts."""
    require_protocol("scheme.kind", scheme, AsynchronousScheme if is_asynchronous(scheme) else Scheme)
    if is_asynchronous(scheme) and not (isinstance(scheme.buffer, int) and scheme.buffer >= 1):
        raise ExperimentError(f"scheme.kind: {type(scheme).__name__}.buffer = {scheme.buffer!r} must be 1, 2, 3, …")
    mu = getattr(scheme, "proximal_mu", 0.0)
    if not isinstance(mu, (int, float)) or not 0 <= mu < float("inf"):
        raise ExperimentError(f"scheme.kind: {type(scheme).__name__}.proximal_mu = {mu!r} must be a number from 0 on.")
    _check_optional_members(scheme)
    return scheme  # type: ignore[no-any-return]


_ARGUMENTS = {"local": ("cv",), "local_term": ("local", "start"), "aggregate_updates": ("updates", "model")}
"""Optional methods of a scheme, with their arguments."""


def _check_optional_members(scheme: Any) -> None:
    """Refuse optional members of a scheme that have another form than `schemes/scheme.py` describes."""
    name = type(scheme).__name__
    for method, arguments in _ARGUMENTS.items():
        if (own := getattr(scheme, method, None)) is None:
            continue
        try:
            inspect.signature(own).bind(*arguments)
        except TypeError:
            raise ExperimentError(f"scheme.kind: {name}.{method} must take ({', '.join(arguments)}).") from None
    if not isinstance(getattr(scheme, "memory", {}), dict):
        raise ExperimentError(f"scheme.kind: {name}.memory must be a dict of numbers and arrays.")
    models = getattr(scheme, "models_per_update", 1)
    if not isinstance(models, int) or models < 1:
        raise ExperimentError(f"scheme.kind: {name}.models_per_update = {models!r} must be 1, 2, 3, …")


def make_codec(experiment: Experiment, scheme: AnyScheme, learner: Learner) -> Codec:
    """The codec named by `update.codec`; an error if it states no size, or if the scheme sends more than one model."""
    name, parameters = experiment.update.codec, learner.parameters - learner.statistics
    codec: Codec = make_part("update.codec", name, experiment)
    require_protocol("update.codec", codec, Codec)
    if getattr(scheme, "models_per_update", 1) > 1 and not getattr(codec, "is_exact", False):
        raise ExperimentError(
            f"scheme.kind: an update of {type(scheme).__name__} has several vectors, and only one would be coded: set "
            'update.codec = "float32".'
        )
    bits = codec.bits(parameters)
    if not isinstance(bits, int) or bits < 1:
        raise ExperimentError(
            f'update.codec = "{name}" states {bits!r} bits for {parameters} parameters: it must be 1 on.'
        )
    return codec


def make_scheduler(experiment: Experiment) -> Scheduler:
    """The scheduler named by `mac.scheduler`."""
    scheduler: Scheduler = load_part("mac.scheduler", experiment.mac.scheduler)
    require_function("mac.scheduler", experiment.mac.scheduler, scheduler, Scheduler)
    return scheduler


def make_policy(experiment: Experiment) -> RatPolicy:
    """The RAT policy named by `rat.method`: a built-in method or a user-defined function."""
    policy: RatPolicy = load_part("rat.method", experiment.rat.method)
    require_function("rat.method", experiment.rat.method, policy, RatPolicy)
    return policy


def make_channel(experiment: Experiment, streams: Streams) -> Channel:
    """The channel named by `radio.channel`, before its first scene."""
    name = experiment.radio.channel
    channel: Channel = make_part("radio.channel", name, experiment, streams)
    require_protocol("radio.channel", channel, Channel)
    if is_part(name):
        if hasattr(channel, "begin_round") and not isinstance(channel, Stateful):
            raise ExperimentError(
                f'radio.channel = "{name}" has begin_round, so it needs state and restore: a resumed run repeats only '
                "moves."
            )
        channel = CheckedChannel(channel, experiment.radio.prbs)
    radio = experiment.radio
    if not radio.csi_delay_slots:
        return channel
    return DelayedCsi(channel, radio.csi_delay_slots, experiment.slots.slot_ns, radio.csi_margin)


def make_dataset(experiment: Experiment, streams: Streams, *traffic: Callable[[], Mobility]) -> Dataset:
    """The data set named by `data.kind`, with validation samples in place of the test set if they are asked for.

    `traffic`: that of the run, only for kinds that declare `from_traffic`.
    """
    dataset = _dataset(experiment, streams, *traffic)
    if not experiment.data.validation_samples:
        return dataset
    from vefl_sim.learning.datasets.subset import held_out

    return held_out(dataset, experiment.data.validation_samples, streams.generator("validation"))


def _dataset(experiment: Experiment, streams: Streams, *traffic: Callable[[], Mobility]) -> Dataset:
    kind = experiment.data.kind
    dataset = make_part("data.kind", kind, experiment, streams, *traffic)
    if not isinstance(dataset, Dataset):
        raise ExperimentError(f'data.kind = "{kind}" gives a {type(dataset).__name__}: return a Dataset.')
    return dataset


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
    loss: Loss = load_part("learning.loss", name)
    require_function("learning.loss", name, loss, Loss)
    require_loss(loss, name, module, dataset)
    return loss


def make_learner(
    experiment: Experiment,
    dataset: Dataset,
    shards: Mapping[int, NDArray[np.int64]],
    scheme: AnyScheme,
    module: Any,
    streams: Streams,
) -> Learner:
    """The learner, with the samples that each CV holds; `centralized` holds all samples under one number."""
    from vefl_sim.learning.jax_learner import JaxLearner, Options, parameter_count, parameter_shapes, statistics_count
    from vefl_sim.learning.network import input_spec
    from vefl_sim.learning.samples import Shuffling
    from vefl_sim.learning.trained_model import start_model

    learning, spec = experiment.learning, input_spec(dataset.input_shape, dataset.train_inputs.dtype)
    if learning.kind == "none":
        shapes = parameter_shapes(module, spec)
        return NullLearner(parameter_count(shapes), statistics_count(shapes))
    batch_size = learning.batch_size
    if getattr(scheme, "trains_centrally", False):
        shards, batch_size = {EVERYTHING: np.arange(len(dataset.train_targets))}, batch_size or BATCH_SIZE
    start = experiment.model.start and start_model(experiment.model.start, experiment.model.factory, module, spec)
    shuffling = Shuffling(batch_size, streams.seed_for("batches")) if batch_size else None
    return JaxLearner(
        dataset,
        shards,
        module,
        learning_rate=learning.learning_rate,
        proximal_mu=getattr(scheme, "proximal_mu", learning.proximal_mu),  # optional for user-defined schemes
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
            getattr(scheme, "local_term", None),
        ),
    )
