"""The learner that trains neural networks, with JAX and flax."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from numpy.typing import NDArray

from vefl_sim.core.arrays import NamedArrays
from vefl_sim.core.files import cache_directory, ensure_writable
from vefl_sim.core.memory import cores
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import Evaluation, Learner, LocalJob, LocalLoss, Model
from vefl_sim.learning.local import Descent, LocalTraining, Shuffling, StepMethod, Term
from vefl_sim.learning.losses import CROSS_ENTROPY, Loss
from vefl_sim.learning.network import initialize, input_spec
from vefl_sim.learning.objective import Evaluator, Objective
from vefl_sim.learning.trees import minus, plus, split, tree_map


@dataclass(frozen=True)
class Options:
    """Options that differ from the paper's training, and the number of threads."""

    optimizer: str = "sgd"  # name of a function in optax
    shuffling: Shuffling | None = None  # None: every step takes all samples
    threads: int | None = None  # CVs trained at the same time; None: one per core
    iterations_per_step: int = 1  # n: this many iterations on all samples are computed as one step of n·δ
    loss: Loss = CROSS_ENTROPY
    dropout_seed: int = 0
    momentum: float = 0.0
    term: Term | None = None  # further term of the local objective


class JaxLearner(Learner):
    """Trains a flax network on the samples that each CV holds.

    A model is the pytree that the network's `init` returns; its leaves may also be numpy arrays, as read
    from a checkpoint.
    """

    def __init__(
        self,
        dataset: Dataset,
        shards: Mapping[int, NDArray[np.int64]],
        module: nn.Module,
        *,
        learning_rate: float,
        proximal_mu: float,
        seed: int,
        start: Model | None = None,
        options: Options = Options(),  # noqa: B008 (frozen)
    ) -> None:
        """`shards`: numbers of the training samples that each CV holds; `seed`: 32-bit seed of ω_0, unless `start`."""
        self._threads = options.threads or cores()
        configure_jax(self._threads)
        self._spec = input_spec(dataset.input_shape, dataset.train_inputs.dtype)
        self._shapes = parameter_shapes(module, self._spec)
        super().__init__(*sizes(self._shapes))
        self._module, self._seed, self._start = module, seed, start
        self._local = LocalTraining(
            StepMethod(module, options.optimizer, options.loss, options.momentum, options.term),
            (dataset.train_inputs, dataset.train_targets),
            shards,
            Descent(learning_rate, proximal_mu, options.iterations_per_step),
            options.shuffling,
            options.dropout_seed,
        )
        test_set = dataset.test_inputs, dataset.test_targets
        self._evaluator = Evaluator(Objective(module, options.loss), test_set, dataset.classes)
        self._smallest = min(shards, key=lambda cv: len(shards[cv]), default=None)  # CV with the fewest samples

    def rehearse(self) -> None:
        """Compile all programs, as the first round would: one iteration on few samples, and one evaluation."""
        if self._smallest is not None:
            model = self.initial_model()
            updates = self.train([model], [LocalJob(self._smallest, iterations=1)])
            self.evaluate(self.combine(model, [model], updates, [1.0]))

    def initial_model(self) -> Model:
        """Initial model ω_0: that from a file (`model.start`), or drawn with the seed."""
        if self._start is not None:
            return self._start
        return initial_model(self._module, self._spec, self._seed)

    def train(self, starts: Sequence[Model], jobs: Sequence[LocalJob]) -> list[Model]:
        """Train the CVs of all jobs, one per thread at a time; a result depends only on its job, not on the threads."""
        longest_first = sorted(range(len(jobs)), key=lambda i: -jobs[i].iterations * self._local.size(jobs[i].cv))
        pool = ThreadPoolExecutor(self._threads)
        try:
            trained = {i: pool.submit(self._train_one, starts[i], jobs[i]) for i in longest_first}
            return [trained[i].result() for i in range(len(jobs))]
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C the others are not needed

    def _train_one(self, model: Model, job: LocalJob) -> Model:
        return jax.block_until_ready(self._local.train(model, job))  # type: ignore[no-untyped-call]

    def local_loss(self, model: Model, cv: int) -> LocalLoss:
        """Loss of a model on the samples that a CV holds."""
        return self._local.losses(model, cv)

    def combine(
        self, model: Model, starts: Sequence[Model], updates: Sequence[Model], weights: Sequence[float]
    ) -> Model:
        """model + Σ weight · (update − start), summed in the given order.

        Statistics (BatchNorm's) are averaged with the same weights: model · (1 − Σ weight) + Σ weight · update, where
        the weights are scaled to sum to at most one. So a variance is never negative, whatever the scheme.
        """
        combined, statistics = split(model)
        for start, update, weight in zip(starts, updates, weights, strict=True):
            combined = _add_update(combined, split(start)[0], split(update)[0], weight)
        if not statistics:
            return combined
        total = float(np.sum(weights))
        scale = 1 / max(1.0, total)
        averaged = jax.tree.map(lambda value: value * (1 - scale * total), statistics)
        for update, weight in zip(updates, weights, strict=True):
            averaged = _add_scaled(averaged, split(update)[1], scale * weight)
        return {**combined, **averaged}

    def average(self, updates: Sequence[Model], weights: Sequence[float]) -> Model:
        """Σ weight · update, summed in the given order."""
        nothing = jax.tree.map(jnp.zeros_like, updates[0])
        return self.combine(nothing, [nothing] * len(updates), updates, weights)

    def evaluate(self, model: Model) -> Evaluation:
        """Accuracy and loss on the whole test set."""
        return self._evaluator.evaluate(model)

    def arrays_of(self, model: Model) -> NamedArrays:
        """Arrays of a model by their path, such as params.Conv_0.kernel."""
        return {array_name(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(model)}

    def model_of(self, arrays: NamedArrays) -> Model:
        """Rebuild the model from the arrays that `arrays_of` returned."""
        # numpy's files store bfloat16 and other JAX types as raw bytes; a view restores the type
        return jax.tree.map_with_path(
            lambda path, leaf: jnp.asarray(arrays[array_name(path)].view(leaf.dtype)), self._shapes
        )


@jax.jit
def _add_update(combined: Model, start: Model, update: Model, weight: jax.Array) -> Model:
    return jax.tree.map(lambda c, w, u: c + weight * (u - w), combined, start, update)


@jax.jit
def _add_scaled(total: Model, model: Model, weight: jax.Array) -> Model:
    return jax.tree.map(lambda t, m: t + weight * m, total, model)


def optimizer_step(
    model: Model, gradient: Model, state: Sequence[np.ndarray], optimizer: str, rate: float, **options: float
) -> tuple[Model, list[np.ndarray]]:
    """ω − rate · direction(gradient) and the next state; an empty state is the initial one.

    The direction is that of an optax function with these options, such as "scale_by_adam". Statistics follow the mean
    change.
    """
    parameters, statistics = split(model)
    slope, change = split(gradient)
    transformation = getattr(optax, optimizer)(**options)
    initial, structure = jax.tree.flatten(transformation.init(parameters))
    direction, moments = transformation.update(slope, jax.tree.unflatten(structure, state or initial), parameters)
    stepped = plus(parameters, tree_map(np.asarray, direction), -rate)
    return {**stepped, **minus(statistics, change)}, [np.asarray(leaf) for leaf in jax.tree.leaves(moments)]


def parameter_shapes(module: nn.Module, spec: jax.ShapeDtypeStruct) -> Any:
    """Shape and type of each array of a model, in the structure of the model; traces the network, computes nothing."""
    return jax.eval_shape(partial(initialize, module, spec=spec), np.uint32(0))


def sizes(shapes: Any) -> tuple[int, int]:
    """M, the number of parameters of a model with these array shapes, and how many are statistics (BatchNorm's)."""
    parameters, statistics = (sum(leaf.size for leaf in jax.tree.leaves(tree)) for tree in (shapes, split(shapes)[1]))
    return parameters, statistics


def initial_model(module: nn.Module, spec: jax.ShapeDtypeStruct, seed: int) -> Model:
    """Initial model ω_0. Compiled without optimization: it runs once, and XLA would take 5 s to optimize it."""
    number = np.uint32(seed)
    lowered = jax.jit(partial(initialize, module, spec=spec)).lower(number)
    return lowered.compile(compiler_options={"xla_backend_optimization_level": "0"})(number)


def array_name(path: Sequence[Any]) -> str:
    """The name of an array in files, such as params.Conv_0.kernel, from its path in the model."""
    return jax.tree_util.keystr(tuple(path), simple=True, separator=".")


_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def configure_jax(threads: int) -> None:
    """Turn JAX's compilation cache on, unless the user has already chosen one or our folder cannot be written.

    XLA would split sums over its threads: the last digits, and soon the accuracies, would depend on the number of
    cores. So each XLA program runs on one thread, and XLA's pool has one thread per program that runs at the same time
    (NPROC; threads of a larger pool would busy-wait), but at least two: with one, XLA compiles sums differently, and
    programs would wait for each other. Both settings take effect at the first use of JAX in a process.
    """
    os.environ.setdefault("NPROC", str(max(2, threads)))
    if "xla_cpu_multi_thread_eigen" not in (flags := os.environ.get("XLA_FLAGS", "")):
        os.environ["XLA_FLAGS"] = f"{flags} {_ONE_THREAD}".strip()
    directory = cache_directory(os.environ) / "jax"
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None and ensure_writable(directory):
        config.update("jax_compilation_cache_dir", str(directory))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
