"""Local training: ours compared with PyTorch and with the straightforward JAX version, which all take turns.

    pip install -r benchmarks/requirements-learning.txt
    python benchmarks/bench_learning.py [--quick]

Eight clients of 30-480 samples, 8-20 iterations of full-batch descent with a proximal term, the CNN of
`vefl_models.cnn` on images of 28×28×1 and of 32×32×3. The competitors do the same mathematics: PyTorch eager loops over
clients, also with channels last in memory; so does "torch.compile", whose program is compiled once per size of a
client; "torch.func.vmap" and "vmap of nn.Conv" (plain flax layers under `jax.vmap`) train all clients at once, padded
to the largest and to the most iterations. Each shape and number of threads has its own process, in which the
competitors take turns; figures are medians, of CPU time with one thread, so that other processes disturb less, and of
wall time with two. GFLOPS count the products of a dense forward and backward pass, whether or not they are needed, so
they may exceed those of the machine's matrix product. The last line is the evaluation of 10,000 images, which has one
thread.
"""

from script import SMALL, answer_help

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "models")]
QUICK = SMALL or "--quick" in sys.argv
THREADS = int(os.environ.get("BENCH_THREADS", "0"))
if THREADS and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # no competitor gets more cores than threads
SIZES = (30, 48, 60, 35, 10, 26, 14, 20) if SMALL else (30, 480, 60, 350, 100, 260, 140, 200)
ITERATIONS = (8, 20, 14, 10, 18, 12, 9, 16)
RATE, MU = 0.05, 0.01
WORK = sum(size * l for size, l in zip(SIZES, ITERATIONS, strict=True))
SIDE, CHANNELS = (int(number) for number in os.environ.get("BENCH_SHAPE", "28 1").split())
FIRST, SECOND = SIDE - 4, (SIDE - 4) // 2 - 4  # sides of the convolutions' results before pooling
HIDDEN = 20 * (SECOND // 2) ** 2
FLOPS = 2 * (2 * FIRST**2 * 10 * 25 * CHANNELS + 3 * SECOND**2 * 20 * 250 + 3 * (HIDDEN * 50 + 50 * 10))  # per sample

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import nn

    from vefl_sim.learning.jax_learner import JaxLearner

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (sum(SIZES), SIDE, SIDE, CHANNELS)).astype(np.uint8)
LABELS = RNG.integers(0, 10, sum(SIZES)).astype(np.int32)
SHARDS = {cv: np.arange(sum(SIZES[:cv]), sum(SIZES[: cv + 1])) for cv in range(len(SIZES))}


def learner(test_inputs: int) -> "JaxLearner":
    from vefl_models.cnn import cnn
    from vefl_sim.learning.datasets.dataset import Dataset
    from vefl_sim.learning.jax_learner import JaxLearner, Options

    tested = np.resize(np.arange(len(LABELS)), test_inputs)
    data = Dataset("noise", IMAGES, LABELS, IMAGES[tested], LABELS[tested], 10)
    options = Options(threads=THREADS)
    return JaxLearner(data, SHARDS, cnn(10), learning_rate=RATE, proximal_mu=MU, seed=1, options=options)


def ours() -> Callable[[], object]:
    from vefl_sim.learning.learner import LocalJob

    jax_learner = learner(100)
    start = jax_learner.initial_model()
    jobs = [LocalJob(cv, l) for cv, l in enumerate(ITERATIONS)]
    return lambda: jax_learner.train([start] * len(jobs), jobs)


def torch_network() -> "nn.Module":
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(HIDDEN, 50), nn.ReLU(), nn.Linear(50, 10),
    )  # fmt: skip


def torch_samples(numbers: np.ndarray) -> "tuple[torch.Tensor, torch.Tensor]":
    """Scaled images, channels first, and labels."""
    import torch

    images = np.ascontiguousarray(np.moveaxis((IMAGES[numbers] / np.float32(255) - 0.5) / 0.25, -1, -3))
    return torch.tensor(images, dtype=torch.float32), torch.tensor(LABELS[numbers], dtype=torch.int64)


def pytorch(compiled: bool = False, channels_last: bool = False) -> Callable[[], object]:
    import torch

    network = torch_network()
    clients = [torch_samples(shard) for shard in SHARDS.values()]
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        clients = [(x.to(memory_format=torch.channels_last), y) for x, y in clients]
    start = [p.detach().clone() for p in network.parameters()]

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(network(x), y)

    if compiled:
        torch._dynamo.config.recompile_limit = 2 * len(SIZES)
        loss = torch.compile(loss, dynamic=False)

    def train_one(x: torch.Tensor, y: torch.Tensor, iterations: int) -> None:
        parameters = list(network.parameters())
        with torch.no_grad():
            for p, w in zip(parameters, start, strict=True):
                p.copy_(w)
        for _ in range(iterations):
            gradients = torch.autograd.grad(loss(x, y), parameters)
            with torch.no_grad():
                for p, w, g in zip(parameters, start, gradients, strict=True):
                    p -= RATE * (g + MU * (p - w))

    def train() -> None:
        for (x, y), iterations in zip(clients, ITERATIONS, strict=True):
            train_one(x, y, iterations)

    return train


def torch_vmap() -> Callable[[], object]:
    import torch
    from torch.func import functional_call, grad, vmap

    network, most = torch_network(), max(SIZES)
    start = {name: p.detach() for name, p in network.named_parameters()}
    images, labels = torch_samples(np.stack([np.resize(shard, most) for shard in SHARDS.values()]))
    shares = torch.tensor(
        np.array([np.where(np.arange(most) < size, 1 / size, 0) for size in SIZES]), dtype=torch.float32
    )
    iterations = torch.tensor(ITERATIONS)

    def loss(w: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return share @ torch.nn.functional.cross_entropy(functional_call(network, w, (x,)), y, reduction="none")

    def step(w, x, y, share, left):
        g = grad(loss)(w, x, y, share)
        return {k: torch.where(left > 0, w[k] - RATE * (g[k] + MU * (w[k] - start[k])), w[k]) for k in w}

    w = {name: torch.stack([p] * len(SIZES)) for name, p in start.items()}
    steps = vmap(step)

    def train() -> None:
        steps(w, images, labels, shares, iterations)

    train()
    train.share = 1 / max(ITERATIONS)  # type: ignore[attr-defined]  # only one iteration of all is run
    return train


def vmap() -> Callable[[], object]:
    import jax
    import jax.numpy as jnp

    from tests.learning.plain import PlainCnn
    from vefl_sim.learning.jax_learner import initial_model
    from vefl_sim.learning.losses import CROSS_ENTROPY
    from vefl_sim.learning.network import outputs_of, scaled

    module, most = PlainCnn(10), max(SIZES)
    start = initial_model(module, jax.ShapeDtypeStruct((1, SIDE, SIDE, CHANNELS), np.float32), 1)
    padded = np.stack([np.resize(shard, most) for shard in SHARDS.values()])
    images, labels = jnp.asarray(IMAGES[padded]), jnp.asarray(LABELS[padded])
    weights = jnp.asarray([np.where(np.arange(most) < size, 1 / size, 0) for size in SIZES], jnp.float32)
    iterations = jnp.asarray(ITERATIONS)

    def step(w: object, x: jax.Array, y: jax.Array, share: jax.Array, left: jax.Array) -> object:
        g = jax.grad(lambda w: jnp.dot(share, CROSS_ENTROPY(outputs_of(module, w, scaled(x)), y)))(w)
        return jax.tree.map(lambda w, w_k, g: jnp.where(left > 0, w - RATE * (g + MU * (w - w_k)), w), w, start, g)

    w = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(SIZES)), start)
    arguments = (w, images, labels, weights, iterations)
    steps = jax.jit(jax.vmap(step)).lower(*arguments).compile()

    def train() -> None:
        jax.block_until_ready(steps(*arguments))

    train.share = 1 / max(ITERATIONS)  # type: ignore[attr-defined]  # only one iteration of all is run
    return train


def seconds(run: Callable[[], object]) -> float:
    """Time of the whole job, scaled up if only a part of its iterations is run."""
    clock = time.process_time if THREADS == 1 else time.perf_counter
    began = clock()
    run()
    return (clock() - began) / getattr(run, "share", 1.0)


def peak_gflops() -> float:
    """GFLOPS of a matrix product on this machine with the same number of threads, the best of ten."""
    a = RNG.random((1024, 1024), np.float32)
    if find_spec("torch"):
        import torch

        a = torch.from_numpy(a)
    return max(2 * 1024**3 / seconds(lambda: a @ a) / 1e9 for _ in range(10))


def measure() -> None:
    """Print the table for one shape and THREADS threads."""
    runs, once = {"vefl_sim": ours()}, {"vmap of nn.Conv": vmap()}
    if find_spec("torch"):
        runs |= {"PyTorch eager": pytorch(), "… channels last": pytorch(channels_last=True)}
        runs["torch.compile"] = pytorch(compiled=True)
        once = {"torch.func.vmap": torch_vmap()} | once
    else:
        print("PyTorch is not installed, so its rows are missing (benchmarks/requirements-learning.txt)")
    for run in runs.values():
        run()  # compiles and warms up
    times: dict[str, list[float]] = {name: [] for name in runs}
    peaks = []
    for _ in range(1 if SMALL else 5 if QUICK else 9):
        peaks.append(peak_gflops())
        for name, run in runs.items():
            times[name].append(seconds(run))
    times |= {name: [seconds(run)] for name, run in once.items()}
    mine = np.array(times["vefl_sim"])
    print(f"\n{SIDE}×{SIDE}×{CHANNELS}, {THREADS} thread(s); matrix product {np.max(peaks):.0f} GFLOPS")
    print(f"{'':18} {'s':>7} {'best':>7} {'µs/sample·it.':>14} {'GFLOPS':>7} {'vefl_sim is':>12}   turn by turn")
    for name, values in times.items():
        median = float(np.median(values))
        ratios = np.array(values) / (mine if len(values) == len(mine) else np.median(mine))
        faster = f"{np.median(ratios):11.1f}×   {min(ratios):.1f}-{max(ratios):.1f}" if name != "vefl_sim" else ""
        print(
            f"{name:18} {median:7.2f} {min(values):7.2f} {1e6 * median / WORK:14.1f} "
            f"{FLOPS * WORK / median / 1e9:7.1f} {faster}"
        )
    jax_learner = learner(100 if SMALL else 10_000)
    start = jax_learner.initial_model()
    jax_learner.evaluate(start)
    evaluations = [seconds(lambda: jax_learner.evaluate(start)) for _ in range(9)]
    print(f"Evaluation of 10,000 images: {np.median(evaluations):.3f} s, best {min(evaluations):.3f} s", flush=True)


def first_call() -> None:
    """Print how much longer the first training takes than the second; run in a new process."""
    began = time.perf_counter()
    import vefl_models.cnn  # noqa: F401
    import vefl_sim.learning.jax_learner  # noqa: F401

    imported = time.perf_counter()
    train = ours()
    train()
    wall = time.perf_counter() - imported
    began_again = time.perf_counter()
    train()
    once = time.perf_counter() - began_again
    print(f"{wall - once:.1f} s, and {imported - began:.1f} s of imports", flush=True)


def run_in_new_process(what: str, threads: int, **environment: str) -> None:
    variables = os.environ | {"BENCH_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)} | environment
    subprocess.run([sys.executable, __file__, what, *(["--quick"] if QUICK else [])], env=variables, check=True)


if __name__ == "__main__":
    answer_help(__doc__)
    if "--first" in sys.argv:
        first_call()
    elif "--measure" in sys.argv:
        measure()
    else:
        with tempfile.TemporaryDirectory() as empty:
            calls = ("First call, nothing compiled yet:", "First call, compiled by an earlier process:")
            for name in calls[:0] if SMALL else calls:
                print(name, end=" ", flush=True)
                run_in_new_process("--first", 1, VEFL_SIM_CACHE=empty)
        for shape in ("28 1",) if SMALL else ("28 1", "32 3"):
            for threads in (1,) if SMALL else (1, 2):
                run_in_new_process("--measure", threads, BENCH_SHAPE=shape)
