"""Local training: l_v iterations of descent on F_v(ω) + (μ/2)·‖ω − ω_k‖².

F_v is the mean cross-entropy over the CV's samples. An iteration is one pass over them, as the CPU model charges it:
one step on all samples (the paper), or one step per mini-batch. `plain.train_plain` says it in the plainest way. To
save time, n iterations on all samples may be computed as one step of n·δ (`Descent.iterations_per_step`).

One compilation serves all CVs: a gradient is summed over blocks of BLOCK samples, and the numbers of blocks, steps and
iterations are arguments. The sums run in the order of the samples, so no result depends on who else trains.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import lax
from numpy.typing import NDArray

from vefl_sim.learning.learner import LocalJob, Model
from vefl_sim.learning.objective import cross_entropy, logits
from vefl_sim.learning.samples import Samples, Shuffling, on_device, padded, read_block, room_for

BLOCK = 32


class Descent(NamedTuple):
    """The numbers of local training; changing one compiles nothing."""

    learning_rate: float  # δ
    proximal_mu: float  # μ
    iterations_per_step: int = 1  # n: so many iterations on all samples are computed as one step of n·δ


class StepMethod(NamedTuple):
    """How a step is made; part of the compiled program."""

    module: nn.Module
    optimizer: str = "sgd"  # a function of optax that takes the learning rate


class TrainingState(NamedTuple):
    """Where one CV's training is."""

    local: Model  # ω
    start: Model  # ω_k
    state: Any  # what the optimizer remembers; every order starts afresh


class Work(NamedTuple):
    """What one CV goes through."""

    numbers: NDArray[np.int32]  # of its samples, in the order in which they are used; filled up
    size: int  # D_v
    batch: int  # samples per step
    iterations: int  # passes over the samples


Loop = Callable[[Any, Callable[[Any, Any], Any], Any], Any]
"""`loop(n, body, value)`: value = body(i, value) for i = 0 … n − 1."""


class LocalTraining:
    """Trains any CV, given who holds which samples."""

    def __init__(
        self,
        method: StepMethod,
        samples: tuple[NDArray[np.uint8], NDArray[np.int32]],
        shards: Mapping[int, NDArray[np.int64]],
        descent: Descent,
        shuffling: Shuffling | None = None,
    ) -> None:
        """`samples`: images and labels; `shards`: which of them each CV holds; `shuffling`: for mini-batches."""
        self._method, self._descent, self._shards, self._shuffling = method, descent, shards, shuffling
        self._samples = on_device(*samples)
        self._room = room_for(max(map(len, shards.values()), default=1), BLOCK)
        by_calls = jax.default_backend() == "cpu" and has_convolution(method.module, samples[0].shape[1:])
        self._descend = _descend_by_calls if by_calls else _descend_in_one

    def train(self, model: Model, job: LocalJob) -> Model:
        """ω_{v,k+1} of one CV, from ω_k = `model`."""
        progress = TrainingState(model, model, _remember(self._method, model, self._descent))
        for work in self._work(job):
            progress = self._descend(self._method, progress, self._samples, work, self._descent)
        return progress.local

    def size(self, cv: int) -> int:
        """D_v."""
        return len(self._shards[cv])

    def _work(self, job: LocalJob) -> list[Work]:
        shard, shuffling = self._shards[job.cv], self._shuffling
        if shuffling is None or shuffling.batch_size >= len(shard):
            return [Work(padded(shard, self._room), len(shard), max(1, len(shard)), job.iterations)]
        orders = (shard[shuffling.order(job, i, len(shard))] for i in range(job.iterations))
        return [Work(padded(order, self._room), len(shard), shuffling.batch_size, 1) for order in orders]


def has_convolution(module: nn.Module, image_shape: tuple[int, ...]) -> bool:
    """Whether the model convolves with XLA.

    XLA rewrites convolutions into the form that its fast CPU kernel takes only at the top level of a program; in
    the body of a loop their gradients run four to five times slower. So such models are called once per block.
    """

    def initialize() -> Model:
        return module.init(jax.random.key(0), jnp.zeros((1, *image_shape)))

    return "conv_general_dilated" in str(jax.make_jaxpr(initialize)())


def _descend(
    loop: Loop, method: StepMethod, progress: TrainingState, samples: Samples, work: Work, descent: Descent
) -> TrainingState:
    """All iterations of some work."""

    def step(merged: jax.Array, i: jax.Array, progress: TrainingState) -> TrainingState:
        first = i * work.batch
        count = jnp.minimum(work.batch, work.size - first)

        def add(b: jax.Array, total: Model) -> Model:
            done = b * BLOCK
            return _add_block(method, progress.local, total, samples, work.numbers, first + done, count - done)

        total = loop(_parts(count, BLOCK), add, _zeros(progress.local))
        return _step(method, progress, total, count, descent, merged)  # type: ignore[no-any-return]

    def iterate(i: jax.Array, progress: TrainingState) -> TrainingState:
        merged = jnp.minimum(descent.iterations_per_step, work.iterations - i * descent.iterations_per_step)
        return loop(_parts(work.size, work.batch), partial(step, merged), progress)  # type: ignore[no-any-return]

    return loop(_parts(work.iterations, descent.iterations_per_step), iterate, progress)  # type: ignore[no-any-return]


def _compiled_loop(count: Any, body: Callable[[Any, Any], Any], value: Any) -> Any:
    return lax.fori_loop(0, count, body, value)


def _python_loop(count: Any, body: Callable[[Any, Any], Any], value: Any) -> Any:
    for i in range(int(count)):
        value = body(i, value)
    return value


_descend_in_one = jax.jit(partial(_descend, _compiled_loop), static_argnums=0)
_descend_by_calls = partial(_descend, _python_loop)


def _parts(whole: Any, part: Any) -> Any:
    """How many parts of this size, the last one maybe smaller."""
    return (whole + part - 1) // part


@partial(jax.jit, static_argnums=0)
def _add_block(
    method: StepMethod,
    local: Model,
    total: Model,
    samples: Samples,
    numbers: jax.Array,
    first: jax.Array,
    left: jax.Array,
) -> Model:
    """`total` plus the gradient of the summed loss over one block."""
    block = read_block(samples, numbers, first, left, BLOCK)

    def loss(w: Model) -> jax.Array:
        return jnp.dot(block.weights, cross_entropy(logits(method.module, w, block.images), block.labels))

    return jax.tree.map(jnp.add, total, jax.grad(loss)(local))


@partial(jax.jit, static_argnums=0)
def _step(
    method: StepMethod, progress: TrainingState, total: Model, count: jax.Array, descent: Descent, merged: jax.Array
) -> TrainingState:
    """A step of the optimizer along ∇F + μ·(ω − ω_k), for so many iterations; "sgd": ω − merged·δ·that."""
    local, start, state = progress
    gradient = jax.tree.map(lambda g, w, w_k: g / count + descent.proximal_mu * (w - w_k), total, local, start)
    updates, state = _optimizer(method, merged * descent.learning_rate).update(gradient, state, local)
    return TrainingState(optax.apply_updates(local, updates), start, state)


@partial(jax.jit, static_argnums=0)
def _remember(method: StepMethod, model: Model, descent: Descent) -> Any:
    return _optimizer(method, descent.learning_rate).init(model)


def _optimizer(method: StepMethod, learning_rate: Any) -> optax.GradientTransformation:
    return getattr(optax, method.optimizer)(learning_rate)


@jax.jit
def _zeros(model: Model) -> Model:
    return jax.tree.map(jnp.zeros_like, model)
