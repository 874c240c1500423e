"""FedAvg, FedProx, SCAFFOLD and FedNova on CIFAR-10 without a radio, in the set-up of flower's baseline niid_bench.

    python benchmarks/niid_bench.py FOLDER [--rounds 50] [--schemes fedavg fedprox scaffold fednova] [--out runs/niid]

FOLDER holds cifar-10-binary.tar.gz. 10 parked cars, each with a part of the data (Dirichlet 0.5 by label, no car
with more than about a tenth); 10 local epochs per round, batches of 64, SGD with δ = 0.01 and momentum 0.9; two 5×5
convolutions of 6 and 16 channels; pixels from 0 to 1; random crops and flips of the training images. All is done in
every round and delivered (`scheme.constrained = false`), so that only the learning is compared. The baseline also has a
weight decay of 1e-5, which vefl_sim has not. A run that was stopped is resumed. One round takes about 20 s on one core.
"""

import script  # noqa: F401 (how it ends)

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

import vefl_sim
from vefl_models.cnn import PooledConv
from vefl_sim.learning.datasets.cifar10 import CIFAR10

CLIENTS, ALPHA, LEAST = 10, 0.5, 10
README = {"fedavg": 63.4, "fedprox": 65.6, "scaffold": 68.0, "fednova": 65.0}
"""Accuracies in % that flower's README states for CIFAR-10 and Dirichlet (0.5)."""


class ParkedCars:
    """Ten cars that stand around the gNB."""

    def __init__(self, experiment, streams) -> None:
        self.step_ns = round(experiment.mobility.step_s * 1e9)
        self._time_ns = 0

    def scene(self):
        angle, nothing = np.linspace(0, 2 * np.pi, CLIENTS, endpoint=False), np.zeros(CLIENTS)
        x_m, y_m = 100 * np.cos(angle), 100 * np.sin(angle)
        return vefl_sim.Scene(self._time_ns, np.arange(1, CLIENTS + 1), x_m, y_m, nothing, np.ones(CLIENTS, np.bool_))

    def advance(self):
        self._time_ns += self.step_ns
        return self.scene()


def silos(experiment, streams):
    """CIFAR-10, each training image with the car that holds it."""
    data = CIFAR10(experiment, streams)
    rng, owner = streams.generator("silos"), np.zeros(len(data.train_targets), np.int64)
    while np.bincount(owner, minlength=CLIENTS + 1)[1:].min() < LEAST:
        owner[:] = 0
        for label in range(data.classes):
            _assign(owner, rng.permutation(np.flatnonzero(data.train_targets == label)), rng)
    inputs, test = (array.astype(np.float16) / np.float16(255) for array in (data.train_inputs, data.test_inputs))
    return vefl_sim.Dataset(
        "silos", inputs, data.train_targets, test, data.test_targets, classes=data.classes,
        class_names=data.class_names, train_vehicles=owner,
    )  # fmt: skip


def _assign(owner, samples, rng) -> None:
    """Divide the samples of a class among the cars that hold less than a tenth of all."""
    share = rng.dirichlet(np.full(CLIENTS, ALPHA)) * (
        np.bincount(owner, minlength=CLIENTS + 1)[1:] < len(owner) / CLIENTS
    )
    cuts = (np.cumsum(share / share.sum()) * len(samples)).astype(int)[:-1]
    for car, piece in enumerate(np.split(samples, cuts), start=1):
        owner[piece] = car


class LeNet(nn.Module):
    """Two convolutions and three dense layers; in training the images are cropped and flipped at random."""

    classes: int

    @nn.compact
    def __call__(self, images, train: bool):
        x = augmented(images, self.make_rng("dropout")) if train else images
        for i, channels in enumerate((6, 16)):
            x = PooledConv(channels, name=f"Conv_{i}")(x)
        x = x.reshape(len(x), -1)
        for width in (120, 84):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.classes)(x)


def augmented(images, key):
    """Each image shifted by up to four pixels, with its border mirrored, and flipped with a probability of one half."""
    shift, flip = jax.random.split(key)
    corners = jax.random.randint(shift, (len(images), 2), 0, 9)
    padded = jnp.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")

    def crop(image, corner):
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), images.shape[1:])

    cropped = jax.vmap(crop)(padded, corners)
    flipped = jax.random.bernoulli(flip, shape=(len(images), 1, 1, 1))
    return jnp.where(flipped, cropped[:, :, ::-1], cropped)


def lenet(classes: int) -> nn.Module:
    return LeNet(classes)


def experiment(kind: str, folder: str, rounds: int) -> vefl_sim.Experiment:
    return vefl_sim.from_tables(
        {
            "run": {"name": f"niid-{kind}", "rounds": rounds, "checkpoint_every": 1},
            "mobility": {"kind": "benchmarks.niid_bench:ParkedCars", "step_s": 1.0},
            "vefl": {"max_local_iterations": 10, "round_s": 1.0},
            "scheme": {"kind": kind, "constrained": False},
            "data": {"kind": "benchmarks.niid_bench:silos", "dir": folder, "partition": "own"},
            "model": {"factory": "benchmarks.niid_bench:lenet"},
            "learning": {
                "learning_rate": 0.01,
                "momentum": 0.9,
                "batch_size": 64,
                "threads": 1,
                **({"proximal_mu": 0.01 if kind == "fedprox" else 0.0} if kind in ("fedprox", "fednova") else {}),
            },
        }
    )


class Lines(vefl_sim.RunWatcher):
    """Prints the accuracy of every round."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def round(self, report) -> None:
        print(f"{self._kind:10}{report.round:4}  {report.evaluation.accuracy:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of cifar-10-binary.tar.gz")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--schemes", nargs="+", choices=README, default=[*README])
    parser.add_argument("--out", type=Path, default=Path("runs/niid"))
    arguments = parser.parse_args()
    for kind in arguments.schemes:
        run = vefl_sim.simulate(
            experiment(kind, str(Path(arguments.folder).absolute()), arguments.rounds),
            out=arguments.out,
            watcher=Lines(kind),
        )
        last = run.rounds["accuracy"].iloc[-1]
        print(f"{kind:10}{len(run.rounds)} rounds: {100 * last:.1f} %, README after 50: {README[kind]} %", flush=True)


if __name__ == "__main__":
    main()
