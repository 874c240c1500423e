"""Strategies of a user, for the tests; this module needs Flower."""

import threading
from typing import Any

import numpy as np
from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam, FedAvg, FedAvgM


class AdamAsPublished(FedAdam):
    """Flower corrects the moments for their start with one round too many; this one does not."""

    def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
        return super().aggregate_fit(server_round - 1, results, failures)


def private(**arguments: Any) -> DifferentialPrivacyServerSideFixedClipping:
    """A strategy in a strategy, which draws its noise from the global generator of numpy."""
    return DifferentialPrivacyServerSideFixedClipping(FedAvg(fraction_fit=0.5), num_sampled_clients=3, **arguments)


class Drawing(FedAvgM):
    """Remembers a generator of its own, and values of many kinds."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(server_momentum=0.5, **arguments)
        self.rng, self.mean, self.seen = np.random.default_rng(5), np.float32(0.5), {"clients": (1, [2.0, "three"])}

    def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
        self.seen[server_round] = [client.cid for client, _ in results]
        kept = [result for result in results if self.rng.random() < 0.8] or results
        return super().aggregate_fit(server_round, kept, failures)


class Locked(FedAvg):
    """Holds something that no checkpoint can hold."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Half(FedAvg):
    """Returns too few arrays."""

    def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
        for _, result in results:
            result.parameters.tensors = result.parameters.tensors[:1]
        return super().aggregate_fit(server_round, results, failures)


class Calling(FedAvg):
    """Calls a client, which here is none."""

    def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
        return results[0][0].fit(None, timeout=None, group_id=None)


class Refusing(FedAvg):
    """Returns no model."""

    def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
        return None, {}
