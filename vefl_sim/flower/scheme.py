"""The scheme that asks a strategy of Flower: who trains (if it shall decide it), and what the next model is."""

import inspect
import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.errors import ExperimentError, RunFailed, first_line
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import State
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import load_part, nothing
from vefl_sim.flower import attributes
from vefl_sim.flower.clients import Client, ClientManager, model_of, parameters_of, results_of
from vefl_sim.learning.learner import Local, Model
from vefl_sim.learning.trees import cast_like
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import equal_share, ineligible_cvs, unconstrained_plan
from vefl_sim.schemes.scheme import SUM_KEYS, Aggregated, LocalUpdate, Plan

_KIND = "vefl_sim.flower:Strategy"


class Strategy(FedAvg):
    """The strategy `flower.strategy` aggregates; orders are those of FedAvg, or of the CVs that it chooses.

    In each round, as by Flower's server, its `configure_fit` is called before the orders, and `aggregate_fit` with the
    delivered updates. `server_round` counts aggregations, because a round without a delivery has none.
    """

    label = "Flower"
    uses_table = "flower"
    unused_keys = (*FedAvg.unused_keys, *SUM_KEYS)
    unused_environment = FedAvg.unused_environment
    unused_when = staticmethod(nothing)

    @staticmethod
    def contradictions(experiment: Experiment) -> Iterator[str]:
        """Yield a sentence if Flower is missing, or no strategy is named."""
        if find_spec("flwr") is None:
            yield f"scheme.kind = \"{_KIND}\" needs Flower: pip install 'vefl_sim[flower]'."
        elif experiment.flower.strategy is None:
            yield 'flower.strategy names no strategy: set flower.strategy = "flwr.server.strategy:FedAvg", for example.'

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._table, self._streams = experiment.flower, Streams(experiment.run.seed)
        self._model: Model | None = None  # ω_k; None if nothing is learnt
        self._steps, self._observed_ns = 0, -1  # aggregations so far; time of the last observation
        self._chosen: dict[int, dict[str, Any]] = {}  # CVs that the strategy chose, with what it sends them
        self._is_resumed = False
        self._strategy = self._made()  # wrong arguments are reported now

    def begin(self, model: Model) -> None:
        """Make the strategy with the first model, as some compute with it; a resumed one has computed already."""
        self._model = model
        if not self._is_resumed:
            self._strategy = self._made()

    def plan(self, observation: Observation) -> Plan:
        """Ask the strategy who trains, in equal shares of the budget; without `flower.select` all CVs train."""
        self._configure(observation)
        if not self._table.select:
            return super().plan(observation)
        rows = np.flatnonzero(np.isin(observation.cv, [*self._chosen]))
        if not self._experiment.scheme.constrained:
            return unconstrained_plan(observation, rows)
        observation = observation.at_most(self._experiment.vefl.budget)
        plan = equal_share(observation, rows, shares=len(rows))
        ineligible = ineligible_cvs(observation, observation.problem()) | plan.ineligible
        return replace(plan, ineligible=ineligible, limited=False)

    def local(self, cv: int) -> Local:
        """The proximal term that the strategy asks the CV for (FedProx of Flower); other entries mean nothing here."""
        return Local(proximal_mu=self._chosen.get(cv, {}).get("proximal_mu"))

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Shares of the samples, which the tables show; the strategy gets the numbers of samples and decides itself."""
        if observation.snapshot.time_ns != self._observed_ns:  # the plan came from outside
            self._configure(observation)
        return super().aggregate(observation, plan, delivered)

    def aggregate_updates(self, updates: Sequence[LocalUpdate], model: Model) -> Model | Aggregated:
        """The model that the strategy returns; if it returns none, the model stays.

        Lost updates are not reported to it as failures: some strategies would then not aggregate at all.
        """
        self._steps += 1
        parameters = self._ask("aggregate_fit", self._steps, results_of(updates), [])[0]
        if parameters is None:
            return Aggregated(model, np.zeros(len(updates)))
        returned = model_of(parameters, model)
        self._model = cast_like(returned, self._model)  # the next round starts from what the server keeps
        return returned

    @property
    def resumable(self) -> bool:  # type: ignore[override]  # it changes with what the strategy remembers
        """Whether all that the strategy remembers can be saved."""
        try:
            return bool(self.state())
        except attributes.NotSaved:
            return False

    def state(self) -> State:
        """The number of aggregations, and the attributes of the strategy."""
        return {"steps": self._steps, "strategy": attributes.saved(self._strategy)}

    def restore(self, state: State) -> None:
        """Continue from a checkpoint."""
        self._steps, self._is_resumed = state["steps"], True
        attributes.restore(self._strategy, state["strategy"])

    def _configure(self, observation: Observation) -> None:
        """Call `configure_fit` with the CVs that can do an iteration, and note which ones it chooses.

        Unless it selects, it is given all CVs, whatever number it asks for.
        """
        cvs = observation.cv
        if self._experiment.scheme.constrained:
            cvs = cvs[observation.problem().most > 0]
        manager = ClientManager(cvs.tolist(), samples_all=not self._table.select)
        self._observed_ns, self._round = observation.snapshot.time_ns, observation.snapshot.round
        chosen = self._ask("configure_fit", self._steps + 1, parameters_of(self._model), manager)
        self._chosen = {client.cv: dict(sent.config) for client, sent in chosen if isinstance(client, Client)}

    def _made(self) -> Any:
        """The strategy, with the model as its initial parameters if it takes them."""
        name, arguments = self._table.strategy, dict(self._table.arguments or {})
        factory = load_part("flower.strategy", str(name))
        known = ", ".join(inspect.signature(factory).parameters)
        try:
            if _takes(factory, "initial_parameters"):
                arguments.setdefault("initial_parameters", parameters_of(self._model))
            with _undisturbed(0):
                strategy = factory(**arguments)
        except Exception as error:
            why = f"{type(error).__name__}: {first_line(error)}"
            sentence = f'flower.arguments do not fit flower.strategy = "{name}": {why}; its arguments are {known}.'
            raise ExperimentError(sentence) from error
        if not attributes.is_strategy(strategy):
            raise ExperimentError(
                f'flower.strategy = "{name}" is not a strategy, because it lacks configure_fit or aggregate_fit: name '
                "one of flwr.server.strategy (those of flwr.serverapp.strategy have other methods)."
            )
        return strategy

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the strategy; what it draws depends only on the seed, the round and the method."""
        seed = self._streams.generator(f"flower {method}", self._round).integers(2**32)
        try:
            with _undisturbed(int(seed)):
                return getattr(self._strategy, method)(*arguments)
        except Exception as error:
            why = f"{type(error).__name__}: {first_line(error)}"
            raise RunFailed(f'flower.strategy = "{self._table.strategy}" fails in {method}: {why}.') from error


def _takes(factory: Any, argument: str) -> bool:
    """Whether a function or class takes an argument; **named arguments of a class are those of the class above it."""
    for maker in getattr(factory, "__mro__", (factory,)):
        parameters = inspect.signature(maker).parameters
        if argument in parameters or all(one.kind is not one.VAR_KEYWORD for one in parameters.values()):
            return argument in parameters
    return False


@contextmanager
def _undisturbed(seed: int) -> Iterator[None]:
    """Seed the global generators, from which strategies draw clients and noise; silence Flower's notes on each call."""
    log, before = logging.getLogger("flwr"), (random.getstate(), np.random.get_state())
    level = log.level
    random.seed(seed)
    np.random.seed(seed)
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        log.setLevel(level)
