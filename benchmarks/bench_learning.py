"""Local training: ours compared with PyTorch and with the straightforward JAX version, which all take turns.

    pip install -r benchmarks/requirements-learning.txt
    python benchmarks/bench_learning.py [--quick]

Eight clients of 30-480 samples at 28×28, 8-20 iterations of full-batch descent with a proximal term, the CNN of 21,840
parameters. The competitors do the same mathematics: PyTorch eager loops over clients; "vmap of nn.Conv" is the CNN of
plain flax layers under `jax.vmap`, clients padded to the largest and to the most iterations. Each number of threads
has its own process, in which the competitors take turns; figures are medians. GFLOPS count the products of a dense
forward and backward pass, whether or not they are needed, so they may exceed those of the machine's matrix product.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "models")]
QUICK = "--quick" in sys.argv
THREADS = int(os.environ.get("BENCH_THREADS", "0"))
if THREADS and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # no competitor gets more cores than threads
SIZES = (30, 480, 60, 350, 100, 260, 140, 200)
ITERATIONS = (8, 20, 14, 10, 18, 12, 9, 16)
RATE, MU = 0.05, 0.01
WORK = sum(size * l for size, l in zip(SIZES, ITERATIONS, strict=True))
FLOPS = 2 * (2 * 24 * 24 * 10 * 25 + 3 * 8 * 8 * 20 * 250 + 3 * (320 * 50 + 50 * 10))  # per sample and iteration

import numpy as np

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (sum(SIZES), 28, 28, 1)).astype(np.uint8)
LABELS = RNG.integers(0, 10, sum(SIZES)).astype(np.int32)
SHARDS = {cv: np.arange(sum(SIZES[:cv]), sum(SIZES[: cv + 1])) for cv in range(len(SIZES))}


def ours() -> Callable[[], object]:
    from vefl_models.cnn import cnn
    from vefl_sim.learning.datasets.dataset import Dataset
    from vefl_sim.learning.jax_learner import JaxLearner, Options
    from vefl_sim.learning.learner import LocalJob

    data = Dataset("noise", IMAGES, LABELS, IMAGES[:100], LABELS[:100], 10)
    learner = JaxLearner(
        data, SHARDS, cnn(10), learning_rate=RATE, proximal_mu=MU, seed=1, options=Options(threads=THREADS)
    )
    start = learner.initial_model()
    jobs = [LocalJob(cv, l) for cv, l in enumerate(ITERATIONS)]
    return lambda: learner.train([start] * len(jobs), jobs)


def pytorch() -> Callable[[], object]:
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    images = torch.tensor((IMAGES.transpose(0, 3, 1, 2) / np.float32(255) - 0.5) / 0.25, dtype=torch.float32)
    labels = torch.tensor(LABELS, dtype=torch.int64)
    clients = [(images[shard].contiguous(), labels[shard]) for shard in SHARDS.values()]
    network = nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10),
    )  # fmt: skip
    assert sum(p.numel() for p in network.parameters()) == 21_840
    start = [p.detach().clone() for p in network.parameters()]

    def train_one(x: torch.Tensor, y: torch.Tensor, iterations: int) -> None:
        parameters = list(network.parameters())
        with torch.no_grad():
            for p, w in zip(parameters, start, strict=True):
                p.copy_(w)
        for _ in range(iterations):
            gradients = torch.autograd.grad(nn.functional.cross_entropy(network(x), y), parameters)
            with torch.no_grad():
                for p, w, g in zip(parameters, start, gradients, strict=True):
                    p -= RATE * (g + MU * (p - w))

    def train() -> None:
        for (x, y), iterations in zip(clients, ITERATIONS, strict=True):
            train_one(x, y, iterations)

    return train


def vmap() -> Callable[[], object]:
    import jax
    import jax.numpy as jnp

    from tests.learning.plain_cnn import PlainCnn
    from vefl_sim.learning.jax_learner import initial_model
    from vefl_sim.learning.objective import cross_entropy, logits
    from vefl_sim.learning.samples import scaled

    module, most = PlainCnn(10), max(SIZES)
    start = initial_model(module, (28, 28, 1), 1)
    padded = np.stack([np.resize(shard, most) for shard in SHARDS.values()])
    images, labels = jnp.asarray(IMAGES[padded]), jnp.asarray(LABELS[padded])
    weights = jnp.asarray([np.where(np.arange(most) < size, 1 / size, 0) for size in SIZES], jnp.float32)
    iterations = jnp.asarray(ITERATIONS)

    def step(w: object, x: jax.Array, y: jax.Array, share: jax.Array, left: jax.Array) -> object:
        g = jax.grad(lambda w: jnp.dot(share, cross_entropy(logits(module, w, scaled(x)), y)))(w)
        return jax.tree.map(lambda w, w_k, g: jnp.where(left > 0, w - RATE * (g + MU * (w - w_k)), w), w, start, g)

    w = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(SIZES)), start)
    arguments = (w, images, labels, weights, iterations)
    steps = jax.jit(jax.vmap(step)).lower(*arguments).compile()

    def train() -> None:
        jax.block_until_ready(steps(*arguments))

    train.share = 1 / max(ITERATIONS)  # type: ignore[attr-defined]  # only one iteration of all is run
    return train


def seconds(run: Callable[[], object]) -> float:
    """Wall time of the whole job, scaled up if only a part of its iterations is run."""
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) / getattr(run, "share", 1.0)


def peak_gflops() -> float:
    """GFLOPS of a matrix product on this machine with the same number of threads, the best of ten."""
    import torch

    a = torch.rand(1024, 1024)
    return max(2 * 1024**3 / seconds(lambda: a @ a) / 1e9 for _ in range(10))


def measure() -> None:
    """Print the table for THREADS threads; each number of threads has its own process."""
    runs = {"vefl_sim": ours(), "PyTorch eager": pytorch(), "vmap of nn.Conv": vmap()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    turns, peaks = 3 if QUICK else 9, []
    for turn in range(-1, turns):
        peaks.append(peak_gflops())
        for name, run in runs.items():
            if name != "vmap of nn.Conv" or turn == 0:
                times[name].append(seconds(run))
    for name in ("vefl_sim", "PyTorch eager"):
        del times[name][0]  # the first turn compiles and warms up
    ratios = [b / a for a, b in zip(times["vefl_sim"], times["PyTorch eager"], strict=True)]
    mine = float(np.median(times["vefl_sim"]))
    print(f"\n{THREADS} thread(s); matrix product {np.max(peaks):.0f} GFLOPS (median {np.median(peaks):.0f})")
    print(f"{'':18} {'s':>7} {'best':>7} {'µs/sample·it.':>14} {'GFLOPS':>7} {'vefl_sim is':>12}")
    for name, values in times.items():
        median = float(np.median(values))
        faster = f"{median / mine:.1f}×" if name != "vefl_sim" else ""
        print(
            f"{name:18} {median:7.2f} {min(values):7.2f} {1e6 * median / WORK:14.1f} "
            f"{FLOPS * WORK / median / 1e9:7.1f} {faster:>12}"
        )
    print(f"PyTorch over vefl_sim, turn by turn: {min(ratios):.1f}-{max(ratios):.1f}, median {np.median(ratios):.1f}")


def first_call() -> None:
    """Print how much longer the first training takes than the second; run in a new process."""
    began = time.perf_counter()
    import vefl_models.cnn  # noqa: F401
    import vefl_sim.learning.jax_learner  # noqa: F401

    imported = time.perf_counter()
    train = ours()
    train()
    wall = time.perf_counter() - imported
    print(f"{wall - seconds(train):.1f} s, and {imported - began:.1f} s of imports", flush=True)


def run_in_new_process(what: str, threads: int, **environment: str) -> None:
    variables = os.environ | {"BENCH_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)} | environment
    subprocess.run([sys.executable, __file__, what, *(["--quick"] if QUICK else [])], env=variables, check=True)


if __name__ == "__main__":
    if "--first" in sys.argv:
        first_call()
    elif "--measure" in sys.argv:
        measure()
    else:
        with tempfile.TemporaryDirectory() as empty:
            for name in ("First call, nothing compiled yet:", "First call, compiled by an earlier process:"):
                print(name, end=" ", flush=True)
                run_in_new_process("--first", 1, VEFL_SIM_CACHE=empty)
        for threads in (1, 2):
            run_in_new_process("--measure", threads)
