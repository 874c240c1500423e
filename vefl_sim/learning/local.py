"""Local training: l_v iterations of descent on F_v(ω) + (μ/2)·‖ω − ω_k‖².

F_v is the mean cross-entropy over the CV's samples. An iteration is one pass over them, as the CPU model charges it:
one step on all samples (the paper), or one step per mini-batch. `plain.train_plain` is the simple reference version.
To save time, n iterations on all samples may be computed as one step of n·δ (`Descent.iterations_per_step`).

One compilation serves all CVs: a gradient is summed over blocks of BLOCK samples, and the numbers of blocks, steps and
iterations are arguments. The sums run in the order of the samples, so no result depends on which other CVs train.
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
from vefl_sim.learning.samples import Samples, Shuffling, on_device, padded, padded_length, read_block

BLOCK = 32


class Descent(NamedTuple):
    """Numeric parameters of local training; changing them needs no new compilation."""

    learning_rate: float  # δ
    proximal_mu: float  # μ
    iterations_per_step: int = 1  # n: this many iterations on all samples are computed as one step of n·δ


class StepMethod(NamedTuple):
    """Network and optimizer of a step; each combination is compiled separately."""

    module: nn.Module
    optimizer: str = "sgd"  # name of a function in optax that takes the learning rate


class TrainingState(NamedTuple):
    """State of one CV's local training."""

    local: Model  # ω
    start: Model  # ω_k
    optimizer_state: Any  # reset for every training order


class Work(NamedTuple):
    """Samples and iterations of one call of the descent."""

    numbers: NDArray[np.int32]  # of the CV's samples, in the order of use; padded with zeros
    size: int  # D_v
    batch: int  # samples per step
    iterations: int  # passes over the samples


Loop = Callable[[Any, Callable[[Any, Any], Any], Any], Any]
"""`loop(n, body, value)`: value = body(i, value) for i = 0 … n − 1."""


class LocalTraining:
    """Local training of any CV on the samples that it holds."""

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
        self._length = padded_length(max(map(len, shards.values()), default=1), BLOCK)
        in_python = jax.default_backend() == "cpu" and has_convolution(method.module, samples[0].shape[1:])
        self._descend = _descend_in_python if in_python else _descend_in_one_program

    def train(self, model: Model, job: LocalJob) -> Model:
        """Trained model ω_{v,k+1} of the job's CV, starting from ω_k = `model`."""
        state = TrainingState(model, model, _initial_optimizer_state(self._method, model, self._descent))
        for work in self._work(job):
            state = self._descend(self._method, state, self._samples, work, self._descent)
        return state.local

    def size(self, cv: int) -> int:
        """D_v, the number of samples that the CV holds."""
        return len(self._shards[cv])

    def _work(self, job: LocalJob) -> list[Work]:
        shard, shuffling = self._shards[job.cv], self._shuffling
        if shuffling is None or shuffling.batch_size >= len(shard):
            return [Work(padded(shard, self._length), len(shard), max(1, len(shard)), job.iterations)]
        orders = (shard[shuffling.order(job, i, len(shard))] for i in range(job.iterations))
        return [Work(padded(order, self._length), len(shard), shuffling.batch_size, 1) for order in orders]


def has_convolution(module: nn.Module, image_shape: tuple[int, ...]) -> bool:
    """Whether the model uses XLA's convolutions.

    XLA rewrites convolutions into the form of its fast CPU kernel only at the top level of a program; in
    the body of a loop their gradients run four to five times slower. So such models are called once per block.
    """

    def initialize() -> Model:
        return module.init(jax.random.key(0), jnp.zeros((1, *image_shape)))

    return "conv_general_dilated" in str(jax.make_jaxpr(initialize)())


def _descend(
    loop: Loop, method: StepMethod, state: TrainingState, samples: Samples, work: Work, descent: Descent
) -> TrainingState:
    """Run all iterations of `work` and return the state after them."""

    def step(merged: jax.Array, i: jax.Array, state: TrainingState) -> TrainingState:
        first = i * work.batch
        count = jnp.minimum(work.batch, work.size - first)

        def add(b: jax.Array, total: Model) -> Model:
            done = b * BLOCK
            return _add_block(method, state.local, total, samples, work.numbers, first + done, count - done)

        total = loop(_ceil_div(count, BLOCK), add, _zeros(state.local))
        return _step(method, state, total, count, descent, merged)  # type: ignore[no-any-return]

    def iterate(i: jax.Array, state: TrainingState) -> TrainingState:
        merged = jnp.minimum(descent.iterations_per_step, work.iterations - i * descent.iterations_per_step)
        return loop(_ceil_div(work.size, work.batch), partial(step, merged), state)  # type: ignore[no-any-return]

    return loop(_ceil_div(work.iterations, descent.iterations_per_step), iterate, state)  # type: ignore[no-any-return]


def _compiled_loop(count: Any, body: Callable[[Any, Any], Any], value: Any) -> Any:
    return lax.fori_loop(0, count, body, value)


def _python_loop(count: Any, body: Callable[[Any, Any], Any], value: Any) -> Any:
    for i in range(int(count)):
        value = body(i, value)
    return value


_descend_in_one_program = jax.jit(partial(_descend, _compiled_loop), static_argnums=0)
_descend_in_python = partial(_descend, _python_loop)


def _ceil_div(total: Any, size: Any) -> Any:
    """Number of pieces of this size that make up the total; the last piece may be smaller."""
    return (total + size - 1) // size


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
    method: StepMethod, state: TrainingState, total: Model, count: jax.Array, descent: Descent, merged: jax.Array
) -> TrainingState:
    """One optimizer step along g = ∇F + μ·(ω − ω_k) for `merged` iterations; with "sgd": ω − merged·δ·g."""
    local, start, optimizer_state = state
    gradient = jax.tree.map(lambda g, w, w_k: g / count + descent.proximal_mu * (w - w_k), total, local, start)
    optimizer = _optimizer(method, merged * descent.learning_rate)
    updates, optimizer_state = optimizer.update(gradient, optimizer_state, local)
    return TrainingState(optax.apply_updates(local, updates), start, optimizer_state)


@partial(jax.jit, static_argnums=0)
def _initial_optimizer_state(method: StepMethod, model: Model, descent: Descent) -> Any:
    return _optimizer(method, descent.learning_rate).init(model)


def _optimizer(method: StepMethod, learning_rate: Any) -> optax.GradientTransformation:
    return getattr(optax, method.optimizer)(learning_rate)


@jax.jit
def _zeros(model: Model) -> Model:
    return jax.tree.map(jnp.zeros_like, model)
