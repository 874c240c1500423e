"""What a strategy of Flower sees: CVs in the place of clients, models as lists of arrays, and updates as their results.

Flower is imported when it is used, so that an experiment can be read, and refused in a sentence, without it.
"""

import random
from collections.abc import Sequence
from typing import Any

from vefl_sim.core.errors import RunFailed
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import leaves, tree_map
from vefl_sim.schemes.scheme import LocalUpdate


class Client:
    """A CV in the place of a client; it has a number and cannot be called, because the simulator trains for it."""

    def __init__(self, cv: int) -> None:
        self.cv, self.cid, self.node_id = cv, str(cv), cv
        self.properties: dict[str, Any] = {}

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("it calls a client, and CVs are trained by the simulator")

    fit = evaluate = get_parameters = get_properties = reconnect = _refuse


class ClientManager:
    """The CVs that can get an order now; nobody joins or leaves while the strategy is asked."""

    def __init__(self, cvs: Sequence[int], *, samples_all: bool) -> None:
        """`samples_all`: whoever asks for some CVs gets all of them."""
        self._clients, self._samples_all = {str(cv): Client(cv) for cv in cvs}, samples_all

    def __len__(self) -> int:
        return len(self._clients)

    def num_available(self) -> int:
        """Number of CVs."""
        return len(self)

    def all(self) -> dict[str, Client]:
        """The CVs by their numbers as text."""
        return self._clients

    def wait_for(self, num_clients: int, timeout: int = 0) -> bool:
        """Whether there are so many CVs: waiting brings no more."""
        return len(self) >= num_clients

    def sample(self, num_clients: int, min_num_clients: int | None = None, criterion: Any = None) -> list[Client]:
        """Draw CVs that meet the criterion like Flower's SimpleClientManager; none if there are too few."""
        eligible = [one for one in self._clients.values() if criterion is None or criterion.select(one)]
        if self._samples_all:
            return eligible
        enough = self.wait_for(num_clients if min_num_clients is None else min_num_clients)
        return random.sample(eligible, num_clients) if enough and num_clients <= len(eligible) else []


def parameters_of(model: Model | None) -> Any:
    """A model as Flower's Parameters: its arrays in the order of their names; None: no arrays."""
    from flwr.common import ndarrays_to_parameters

    return ndarrays_to_parameters([] if model is None else [array for _, array in leaves(model)])


def model_of(parameters: Any, like: Model) -> Model:
    """The model that Parameters hold, with the structure of another one."""
    from flwr.common import parameters_to_ndarrays

    arrays, wanted = parameters_to_ndarrays(parameters), len([*leaves(like)])
    if len(arrays) != wanted:
        raise RunFailed(f"flower.strategy: aggregate_fit returns {len(arrays)} arrays for a model of {wanted}.")
    following = iter(arrays)
    return tree_map(lambda _: next(following), like)


def results_of(updates: Sequence[LocalUpdate]) -> list[tuple[Client, Any]]:
    """The updates as the results of a round of Flower: each model that a CV sent, with its number of samples."""
    from flwr.common import Code, FitRes, Status

    done = Status(Code.OK, "")
    return [(Client(one.cv), FitRes(done, parameters_of(one.model), one.samples, {})) for one in updates]
