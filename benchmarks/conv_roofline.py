"""Where the time of a training step goes: each kernel of the CNN by itself, and the least time that the CPU allows it.

    python benchmarks/conv_roofline.py [--base DIR]

One block of 32 samples, one thread, CPU time per sample, the best of 25 turns. "products": multiplications that the
result needs (backward only those of patches that pass a gradient on; about 0.9 and 0.8 of them do here). "FMA": vector
instructions of eight products. "memory": vectors that the inner loop reads or writes. "bound": the least time for these
on a CPU with two multiply-adds, two reads and one write per cycle. A vector that crosses a cache line counts twice, as
7 of 16 do unless they hold one sample per lane. A cycle is taken from the machine's matrix product, 32 floating-point
operations. `--base DIR` adds the times of another checkout, measured in a process of its own.
"""

from script import SMALL, answer_help

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(os.environ.get("ROOFLINE_ROOT", Path(__file__).parents[1]))
sys.path[:0] = [str(ROOT), str(ROOT / "models")]

import jax
import jax.numpy as jnp
import numpy as np

from vefl_models.cnn import cnn
from vefl_sim.learning.conv import pooled_conv as layer
from vefl_sim.learning.jax_learner import configure_jax
from vefl_sim.learning.losses import CROSS_ENTROPY
from vefl_sim.learning.model_card import PIXELS

BLOCK, LANES, TILE, GROUP = 32, 8, 5, 5
CROSSING = 1 + 7 / 16


class Task(NamedTuple):
    """A part of the step: how to run it, what it needs, and the cycles that bound it."""

    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    products: float
    fma: float = 0.0
    memory: float = 0.0
    cycles: float = 0.0


def microseconds(task: Task) -> float:
    """CPU time per sample, the best turn."""
    run = jax.jit(task.run)
    jax.block_until_ready(run(*task.arguments))
    best = np.inf
    turns, calls = (1, 2) if SMALL else (25, 40)
    for _ in range(turns):
        began = time.process_time()
        for _ in range(calls):
            result = run(*task.arguments)
        jax.block_until_ready(result)
        best = min(best, (time.process_time() - began) / calls)
    return 1e6 * best / BLOCK


def forward(x: jax.Array, w: jax.Array, bias: jax.Array) -> Task:
    """All four positions of a window; per tap and TILE filters 4·TILE multiply-adds, 4 reads and TILE weights."""
    windows = (x.shape[1] - w.shape[0] + 1) // 2 * ((x.shape[2] - w.shape[1] + 1) // 2)
    products = 4.0 * windows * w.size
    fma, memory = products / LANES, products / LANES * (4 + TILE) / (4 * TILE)
    return Task(lambda *a: layer._forward(*a)[0], (x, w, bias), products, fma, memory, max(fma, memory) / 2)


def backward(residual: Any, gradient: jax.Array, of_x: bool) -> Task:
    """Patches of whole vectors: for W those of every window are read; for x the active ones are read and written."""
    _, w, chosen = residual
    rows, columns, channels, filters = w.shape
    vectors = rows * -(-columns * channels // LANES)
    patches = chosen[0].size
    active = patches * float(np.mean(np.asarray(gradient != 0) & (np.asarray(layer_output(residual)) > 0)))
    products = active * w.size / filters
    if of_x:
        fma, memory = active * vectors, active * vectors * (2 + 1 / GROUP)
        cycles = active * vectors * CROSSING
    else:
        fma, memory = patches * vectors, patches * vectors * (1 + 1 / GROUP)
        cycles = patches * vectors * (CROSSING + 1 / GROUP) / 2
    part = slice(0, 1) if of_x else slice(1, 3)
    return Task(lambda r, g: layer._backward(r, g)[part], (residual, gradient), products, fma, memory, cycles)


def layer_output(residual: Any) -> jax.Array:
    x, w, _ = residual
    return layer._forward(x, w, jnp.zeros(w.shape[3], w.dtype))[0]


def _scaled(images: jax.Array) -> jax.Array:
    """Pixels as the network gets them; other checkouts have this in other files."""
    return PIXELS(images.astype(jnp.float32))


def tasks(side: int, channels: int) -> dict[str, Task]:
    """The parts of a step of the CNN on one block, and the whole."""
    rng, module = np.random.default_rng(0), cnn(10)
    images = jnp.asarray(rng.integers(0, 256, (BLOCK, side, side, channels)).astype(np.uint8))
    labels = jnp.asarray(rng.integers(0, 10, BLOCK))
    x = _scaled(images)
    model = jax.jit(module.init)(jax.random.key(1), x[:1])
    (b1, w1), (b2, w2) = ([model["params"][f"Conv_{i}"][k] for k in ("bias", "kernel")] for i in (0, 1))
    h1, first = layer._forward(x, w1, b1)
    h2, second = layer._forward(h1, w2, b2)
    g1, g2 = (jnp.asarray(rng.normal(size=h.shape), jnp.float32) for h in (h1, h2))
    dense = {name: leaves for name, leaves in model["params"].items() if name.startswith("Dense")}
    weights = sum(leaves["kernel"].size for leaves in dense.values())

    def head(dense: Any, h: jax.Array) -> jax.Array:
        z = jax.nn.relu(h.reshape(BLOCK, -1) @ dense["Dense_0"]["kernel"] + dense["Dense_0"]["bias"])
        return CROSS_ENTROPY(z @ dense["Dense_1"]["kernel"] + dense["Dense_1"]["bias"], labels).sum()

    def loss(model: Any, images: jax.Array) -> jax.Array:
        return CROSS_ENTROPY(module.apply(model, _scaled(images)), labels).sum()

    parts = {
        "forward 1": forward(x, w1, b1),
        "forward 2": forward(h1, w2, b2),
        "dW 1": backward(first, g1, of_x=False),
        "dW 2": backward(second, g2, of_x=False),
        "dx 2": backward(second, g2, of_x=True),
        "dense layers": Task(jax.grad(head, (0, 1)), (dense, h2), 3.0 * weights, cycles=3 * weights / 2 / LANES),
        "scaling": Task(_scaled, (images,), 0.0),
    }
    return parts | {"whole gradient": Task(jax.grad(loss), (model, images), sum(p.products for p in parts.values()))}


def matrix_product_gflops() -> float:
    """GFLOPS of a large matrix product on one thread."""
    a = jnp.ones((1024, 1024))
    return 2 * 1024**3 / (microseconds(Task(lambda a: a @ a, (a,), 0.0)) * BLOCK) / 1e3


def main() -> None:
    """Print the table, or with ROOFLINE_ROOT set only the times, as JSON."""
    configure_jax(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    shapes = {f"{side}×{side}×{channels}": tasks(side, channels) for side, channels in ((28, 1), (32, 3))}
    times = {shape: {name: microseconds(task) for name, task in parts.items()} for shape, parts in shapes.items()}
    if "ROOFLINE_ROOT" in os.environ:
        print(json.dumps(times))
        return
    base = json.loads(measured(sys.argv[sys.argv.index("--base") + 1])) if "--base" in sys.argv else None
    peak = matrix_product_gflops()
    print(f"matrix product: {peak:.0f} GFLOPS")
    for shape, parts in shapes.items():
        print(f"\n{shape:16} products      FMA   memory  bound µs  time µs  of bound  GFLOPS  base µs")
        for name, task in parts.items():
            spent, bound = times[shape][name], 32 * task.cycles / peak / 1e3
            share = f"{bound / spent:9.0%}" if bound else f"{'':9}"
            before = f"{base[shape][name]:8.2f}" if base else ""
            gflops = 2 * task.products / spent / 1e3
            print(f"{name:16}{task.products:9.0f}{task.fma:9.0f}{task.memory:9.0f}{bound:10.2f}{spent:9.2f} {share}"
                  f"{gflops:8.1f} {before}")  # fmt: skip


def measured(directory: str) -> str:
    """Times of another checkout, as JSON."""
    return subprocess.run(
        [sys.executable, __file__], env=os.environ | {"ROOFLINE_ROOT": directory}, check=True, capture_output=True
    ).stdout.decode()


if __name__ == "__main__":
    answer_help(__doc__)
    main()
