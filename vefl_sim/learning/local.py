"""Local training: l_v iterations of descent on F_v(ω) + (μ/2)·‖ω − ω_k‖².

F_v is the mean loss over the CV's samples. An iteration is one pass over them, as the CPU model charges it:
one step on all samples (the paper), or one step per mini-batch. `train_plain` in tests/learning is the plain twin.
To save time, n iterations on all samples may be computed as one step of n·δ (`Descent.iterations_per_step`).

One compilation serves all CVs: a gradient is summed over blocks of BLOCK samples, and the numbers of blocks, steps and
iterations are arguments. The sums run in the order of the samples, so no result depends on which other CVs train.
A network with batch statistics computes them over such a block: a mini-batch, if `learning.batch_size` is given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from jax import lax
from numpy.typing import NDArray

from vefl_sim.learning.datasets.dataset import Inputs, Targets
from vefl_sim.learning.learner import LocalJob, LocalLoss, Model
from vefl_sim.learning.losses import CROSS_ENTROPY, Loss
from vefl_sim.learning.network import Statistics, initialize, input_spec, takes_train, training_outputs
from vefl_sim.learning.objective import Objective, Samples, padded, padded_length, read_block
from vefl_sim.learning.trees import split

BLOCK = 32
_LARGEST_BLOCK = 1024  # samples of a mini-batch over which a network can compute statistics in one piece


Term = Callable[[Model, Model], Any]
"""A term of the local objective besides F_v and μ: a number, computed from ω and ω_k."""


class Descent(NamedTuple):
    """Numeric parameters of local training; changing them needs no new compilation."""

    learning_rate: float  # δ
    proximal_mu: float  # μ
    iterations_per_step: int = 1  # n: this many iterations on all samples are computed as one step of n·δ


@dataclass(frozen=True)
class Shuffling:
    """Random order of samples in each pass; it depends on (seed, CV, training order, iteration), not on past calls."""

    batch_size: int
    seed: int

    def order(self, job: LocalJob, iteration: int, size: int) -> NDArray[np.int64]:
        """A permutation of 0 … size − 1 for one iteration of a job."""
        return np.random.Generator(np.random.PCG64(order_seed(self.seed, job, iteration))).permutation(size)


def order_seed(seed: int, job: LocalJob, iteration: int) -> np.random.SeedSequence:
    """Seed of the random numbers of one iteration of a training order."""
    return np.random.SeedSequence(seed, spawn_key=(job.cv, job.number, iteration))


class StepMethod(NamedTuple):
    """Network, optimizer and loss of a step; each combination is compiled separately."""

    module: nn.Module
    optimizer: str = "sgd"  # name of a function in optax that takes the learning rate
    loss: Loss = CROSS_ENTROPY
    momentum: float = 0.0  # of "sgd"
    term: Term | None = None  # further term of the objective
    block: int = BLOCK  # samples whose gradient is computed at once


class TrainingState(NamedTuple):
    """State of one CV's local training."""

    local: Model  # ω, without statistics
    start: Model  # ω_k, without statistics
    optimizer_state: Any  # reset for every training order
    statistics: Statistics  # of the network, such as BatchNorm's running averages; mostly empty
    slope: Model = None  # added to every gradient; None: nothing is
    drift: Model = None  # every step moves by −δ·drift, besides the optimizer's step; None: it does not


class Work(NamedTuple):
    """Samples and iterations of one call of the descent."""

    numbers: NDArray[np.int32]  # of the CV's samples, in the order of use; padded with zeros
    size: int  # D_v
    batch: int  # samples per step
    iterations: int  # passes over the samples
    seed: np.uint32 | None = None  # of dropout; None for networks that do not distinguish training from evaluation


class Sums(NamedTuple):
    """What is added up over the blocks of a step."""

    gradient: Model  # of the summed loss
    statistics: Statistics  # after the last block


Loop = Callable[[Any, Callable[[Any, Any], Any], Any], Any]
"""`loop(n, body, value)`: value = body(i, value) for i = 0 … n − 1."""


class LocalTraining:
    """Local training of any CV on the samples that it holds."""

    def __init__(
        self,
        method: StepMethod,
        samples: tuple[Inputs, Targets],
        shards: Mapping[int, NDArray[np.int64]],
        descent: Descent,
        shuffling: Shuffling | None = None,
        dropout_seed: int = 0,
    ) -> None:
        """`samples`: inputs and targets; `shards`: which of them each CV holds; `shuffling`: for mini-batches."""
        if shuffling and takes_train(method.module):
            method = method._replace(block=min(shuffling.batch_size, _LARGEST_BLOCK))
        self._method, self._descent, self._shards, self._shuffling = method, descent, shards, shuffling
        self._seed = dropout_seed if takes_train(method.module) else None
        self._samples = Samples(*map(jnp.asarray, samples))
        self._length = padded_length(max(map(len, shards.values()), default=1), method.block)
        in_python = jax.default_backend() == "cpu" and has_convolution(method.module, self._samples.inputs)
        self._descend = _descend_in_python if in_python else _descend_in_one_program

    def train(self, model: Model, job: LocalJob) -> Model:
        """Trained model ω_{v,k+1} of the job's CV, starting from ω_k = `model`."""
        start, statistics = split(model)
        optimizer_state = _initial_optimizer_state(self._method, start, self._descent)
        slope, drift = (None if tree is None else split(tree)[0] for tree in (job.local.slope, job.local.drift))
        state = TrainingState(start, start, optimizer_state, statistics, slope, drift)
        mu = job.local.proximal_mu
        descent = self._descent if mu is None else self._descent._replace(proximal_mu=mu)
        for work in self._work(job):
            state = self._descend(self._method, state, self._samples, work, descent)
        return {**state.local, **state.statistics}

    def losses(self, model: Model, cv: int) -> LocalLoss:
        """Loss of a model on the samples of a CV, as in evaluation."""
        objective = Objective(self._method.module, self._method.loss, self._method.block)
        return objective.on(self._samples, padded(self._shards[cv], self._length), self.size(cv), model)[0]

    def size(self, cv: int) -> int:
        """D_v, the number of samples that the CV holds."""
        return len(self._shards[cv])

    def _work(self, job: LocalJob) -> list[Work]:
        shard, shuffling = self._shards[job.cv], self._shuffling
        if shuffling is None or shuffling.batch_size >= len(shard):
            numbers = padded(shard, self._length)
            return [Work(numbers, len(shard), max(1, len(shard)), job.iterations, self._dropout_seed(job, 0))]
        orders = (shard[shuffling.order(job, i, len(shard))] for i in range(job.iterations))
        return [
            Work(padded(order, self._length), len(shard), shuffling.batch_size, 1, self._dropout_seed(job, i))
            for i, order in enumerate(orders)
        ]

    def _dropout_seed(self, job: LocalJob, iteration: int) -> np.uint32 | None:
        return None if self._seed is None else order_seed(self._seed, job, iteration).generate_state(1)[0]


def has_convolution(module: nn.Module, inputs: jax.Array) -> bool:
    """Whether the model uses XLA's convolutions.

    XLA rewrites convolutions into the form of its fast CPU kernel only at the top level of a program; in
    the body of a loop their gradients run four to five times slower. So such models are called once per block.
    """

    spec = input_spec(inputs.shape[1:], inputs.dtype)
    traced = jax.make_jaxpr(lambda: initialize(module, 0, spec))()
    return "conv_general_dilated" in str(traced)


def _descend(
    loop: Loop, method: StepMethod, state: TrainingState, samples: Samples, work: Work, descent: Descent
) -> TrainingState:
    """Run all iterations of `work` and return the state after them."""

    def step(iteration: jax.Array, merged: jax.Array, i: jax.Array, state: TrainingState) -> TrainingState:
        first = i * work.batch
        count = jnp.minimum(work.batch, work.size - first)

        def add(b: jax.Array, sums: Sums) -> Sums:
            done = b * method.block
            key = None if work.seed is None else _key(work.seed, iteration, i, b)
            return _add_block(method, state.local, sums, samples, work.numbers, first + done, count - done, key)  # type: ignore[no-any-return]

        sums = loop(_ceil_div(count, method.block), add, Sums(_zeros(state.local), state.statistics))
        return _step(method, state, sums, count, descent, merged)  # type: ignore[no-any-return]

    def iterate(i: jax.Array, state: TrainingState) -> TrainingState:
        merged = jnp.minimum(descent.iterations_per_step, work.iterations - i * descent.iterations_per_step)
        return loop(_ceil_div(work.size, work.batch), partial(step, i, merged), state)  # type: ignore[no-any-return]

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
    sums: Sums,
    samples: Samples,
    numbers: jax.Array,
    first: jax.Array,
    left: jax.Array,
    key: jax.Array | None,
) -> Sums:
    """`sums` plus the gradient of the summed loss over one block; statistics continue from those in `sums`."""
    block = read_block(samples, numbers, first, left, method.block, repeated=bool(sums.statistics))

    def loss(w: Model) -> tuple[jax.Array, Statistics]:
        outputs, statistics = training_outputs(method.module, {**w, **sums.statistics}, block.inputs, key)
        return jnp.dot(block.weights, method.loss(outputs, block.targets)), statistics

    gradient, statistics = jax.grad(loss, has_aux=True)(local)
    return Sums(jax.tree.map(jnp.add, sums.gradient, gradient), statistics)


@partial(jax.jit, static_argnums=0)
def _step(
    method: StepMethod, state: TrainingState, sums: Sums, count: jax.Array, descent: Descent, merged: jax.Array
) -> TrainingState:
    """One optimizer step along g = ∇F + μ·(ω − ω_k) + … for `merged` iterations; with "sgd": ω − merged·δ·g."""
    local, start = state.local, state.start
    gradient = jax.tree.map(lambda g, w, w_k: g / count + descent.proximal_mu * (w - w_k), sums.gradient, local, start)
    if state.slope is not None:
        gradient = jax.tree.map(lambda g, s: g + jnp.asarray(s, g.dtype), gradient, state.slope)
    if method.term is not None:
        gradient = jax.tree.map(jnp.add, gradient, jax.grad(method.term)(local, start))
    optimizer = _optimizer(method, merged * descent.learning_rate)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer_state, local)
    moved = optax.apply_updates(local, updates)
    if state.drift is not None:
        size = merged * descent.learning_rate
        moved = jax.tree.map(lambda w, d: w - jnp.asarray(size * d, w.dtype), moved, state.drift)
    return state._replace(local=moved, optimizer_state=optimizer_state, statistics=sums.statistics)


@partial(jax.jit, static_argnums=0)
def _initial_optimizer_state(method: StepMethod, model: Model, descent: Descent) -> Any:
    return _optimizer(method, descent.learning_rate).init(model)


def _optimizer(method: StepMethod, learning_rate: Any) -> optax.GradientTransformation:
    if method.momentum:
        return optax.sgd(learning_rate, method.momentum)
    return getattr(optax, method.optimizer)(learning_rate)


@jax.jit
def _key(seed: jax.Array, iteration: jax.Array, step: jax.Array, block: jax.Array) -> jax.Array:
    """Random key of one block: the same whether training is computed in one program or block by block."""
    key = jax.random.key(seed)
    for number in (iteration, step, block):
        key = jax.random.fold_in(key, number)
    return key


@jax.jit
def _zeros(model: Model) -> Model:
    return jax.tree.map(jnp.zeros_like, model)
