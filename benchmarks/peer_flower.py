"""Federated averaging in a Flower simulation with PyTorch clients, for benchmarks/peers.py; prints JSON.

The CNN, clients, samples, iterations and step size are those of bench_learning.py; one client trains at a time, on one
thread. The round that is timed is the second, because Ray starts its actors in the first.
"""

from script import answer_help

import os

answer_help(__doc__)  # before the imports of packages that may be missing
os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # the default of 15 would make clients wait for any other process
    "OMP_NUM_THREADS": "1",
}

import json
import logging
import time
from contextlib import suppress
from pathlib import Path

import torch
from bench_learning import IMAGES, ITERATIONS, LABELS, MU, RATE, SHARDS
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn

client, server = ClientApp(), ServerApp()
clocks: list[tuple[float, float]] = []
"""Wall time and CPU time before the first round, and after each."""


def cnn() -> nn.Module:
    network = nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10),
    )  # fmt: skip
    assert sum(p.numel() for p in network.parameters()) == 21_840
    return network


@client.train()
def train(message: Message, context: Context) -> Message:
    """Full-batch descent with a proximal term on the samples of this client."""
    torch.set_num_threads(1)
    number, network = int(context.node_config["partition-id"]), cnn()
    network.load_state_dict(message.content["arrays"].to_torch_state_dict())
    images = torch.tensor((IMAGES[SHARDS[number]].transpose(0, 3, 1, 2) / 255 - 0.5) / 0.25, dtype=torch.float32)
    labels = torch.tensor(LABELS[SHARDS[number]], dtype=torch.int64)
    parameters = list(network.parameters())
    start = [p.detach().clone() for p in parameters]
    for _ in range(ITERATIONS[number]):
        gradients = torch.autograd.grad(nn.functional.cross_entropy(network(images), labels), parameters)
        with torch.no_grad():
            for p, w, g in zip(parameters, start, gradients, strict=True):
                p -= RATE * (g + MU * (p - w))
    metrics = MetricRecord({"num-examples": len(labels)})
    return Message(RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics}), reply_to=message)


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Two rounds in which all clients train; nothing is evaluated."""
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=len(SHARDS), min_available_nodes=len(SHARDS))
    strategy.start(grid, ArrayRecord(cnn().state_dict()), num_rounds=2, evaluate_fn=note_time)


def note_time(number: int, arrays: ArrayRecord) -> None:
    """Called before the first round and after each."""
    clocks.append((time.perf_counter(), family_cpu_s()))


def family_cpu_s() -> float:
    """CPU seconds of this process and of all processes below it, which are Ray's (Linux)."""
    parent, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = file.read_text().rpartition(")")[2].split()
            number = int(file.parent.name)
            parent[number], ticks[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while below := {number for number, of in parent.items() if of in family} - family:
        family |= below
    return sum(ticks[number] for number in family) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    logging.disable()
    one_cpu = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 1, "include_dashboard": False}}
    run_simulation(server, client, num_supernodes=len(SHARDS), backend_config=one_cpu)
    wall_s, cpu_s = (after - before for before, after in zip(*clocks[-2:], strict=True))
    print(json.dumps({"CPU, s": cpu_s, "wall, s": wall_s}))
