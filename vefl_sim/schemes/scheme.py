"""The interface of a learning scheme, with rounds and without: it plans orders, and weights the delivered updates."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Local, LocalLoss, Model
from vefl_sim.learning.trees import minus
from vefl_sim.schemes.observation import Observation

# Groups of keys that several schemes declare as unused
RULE_KEYS = ("aggregation.sojourn_weight", "aggregation.p_suc", "aggregation.normalize")
SUM_KEYS = ("aggregation.form", "aggregation.weights_over")
PROBLEM_KEYS = ("vefl.method", "vefl.sojourn_weight", "vefl.min_local_iterations", "vefl.upload_share")
BYZANTINE_KEYS = ("aggregation.byzantine_share",)
KEYS_WITHOUT_ROUNDS = ("aggregation.buffer", "aggregation.server_rate", "server.retry_s", "scheme.rounds")


@dataclass(frozen=True)
class Plan:
    """The orders of one planning decision; arrays have one entry per ordered CV."""

    cv: Ints
    iterations: Ints  # l
    cpu_hz: Floats  # η
    cost: float | None = None  # worst-case cost of all orders
    objective: float | None = None  # Σ Θ_v·l_v
    gap: float | None = None  # relative gap between objective and bound
    status: str = "planned"  # column `plan_status` of the rounds table
    ineligible: dict[int, str] = field(default_factory=dict)  # CV -> the constraint that rules out an order
    max_iterations: dict[int, int] = field(default_factory=dict)  # CV -> hi_v, the most it could do; for the trace
    bound: float | None = None  # proved upper bound on the objective of any plan
    dropped: bool = False  # FDPC: the budget is too small for all eligible CVs, so some got no order
    limited: bool = True  # C1 applies: at most |C_k| CVs may be ordered; False for schemes that order all CVs
    bypasses_network: bool = False  # without constraints: updates are delivered without using the radio


class AnyScheme:
    """What all schemes have: members that a scheme may leave out, with their defaults. Each works without the rest.

    A missing abstract method is reported in one sentence by the program, so this is no `ABC`.
    """

    proximal_mu: float | None = None  # μ of F_v(ω) + (μ/2)·‖ω − ω_k‖²; 0: no such term; None: `learning.proximal_mu`
    buffer: int | None = None  # number of received updates that the server aggregates; None: it has rounds
    memory: dict[str, Any] | None = None  # what the scheme remembers, in numbers and arrays; kept in checkpoints
    models_per_update: int = 1  # how many times the size of a model an update has
    trains_centrally: bool = False  # the server trains on all data, and no CV gets an order
    selects: bool = False  # at most `scheme.selected` CVs get an order (C1), instead of all that are eligible
    wall_s_per_s: float = 1 / 15  # wall time per simulated second without learning, for estimates
    local: Callable[[int], Local] | None = None
    """local(cv): what a CV minimises besides F_v and μ; asked when the CV gets its order."""
    local_term: Callable[[Any, Any], Any] | None = None
    """local_term(local, start): a further term of the objective, the same for all CVs: JAX code, from ω and ω_k."""
    aggregate_updates: "Callable[[Sequence[LocalUpdate], Model], Model | Aggregated | None] | None" = None
    """aggregate_updates(updates, model): the next model; None: add the updates up with their weights."""
    begin: Callable[[Model], None] | None = None
    """begin(model): called once before the first round, or the first one after a checkpoint, with the model then."""
    resumable: bool = True  # False: what it remembers cannot be saved, so that no checkpoint is written
    theorem2_sum: Callable[[Observation, Plan], float | None] | None = None
    """theorem2_sum(observation, plan): the sum in Theorem 2 of the paper, for the rounds table."""

    def __init__(self, experiment: Experiment | None = None) -> None:
        """A scheme is created from the experiment, anew for every run."""
        if experiment is not None:
            self._experiment = experiment


class Scheme(AnyScheme):
    """A scheme with rounds; both methods are pure."""

    @abstractmethod
    def plan(self, observation: Observation) -> Plan:
        """Decide which CVs train, how many iterations, and at what CPU frequency."""

    @abstractmethod
    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Weights of the delivered updates, in the order of `delivered` (CV numbers, ascending)."""


@dataclass(frozen=True)
class Received:
    """The updates of a full buffer, in the order in which they were received; one array entry per update."""

    cv: Ints
    iterations: Ints  # l
    samples: Ints  # D
    staleness: Ints  # server steps since the model version that the CV trained from


class AsynchronousScheme(AnyScheme):
    """A scheme without rounds, recognized by its `buffer`; both methods are pure."""

    @abstractmethod
    def plan(self, observation: Observation) -> Plan:
        """Plan for the CVs of the observation, which request an order now: iterations and CPU frequency of each."""

    @abstractmethod
    def weights(self, received: Received) -> Floats:
        """Weights of the updates: the next model is ω + Σ weight·(update − the model that its CV trained from)."""


@dataclass(frozen=True)
class LocalUpdate:
    """A delivered update, as `aggregate_updates` sees it; models are trees of numpy arrays (`vefl_sim.trees`)."""

    cv: int
    model: Model  # trained by the CV, as the server has decoded it
    start: Model  # model that the CV trained from
    weight: float  # as `aggregate` or `weights` returned it
    samples: int  # D
    iterations: int  # l
    staleness: int  # server steps since the CV got its model; 0 with rounds
    delay_s: float  # from the order until the update was received
    losses: Callable[[Model], LocalLoss] = field(repr=False)  # of a model, on the samples of the CV

    @cached_property
    def change(self) -> Model:
        """model − start."""
        return minus(self.model, self.start)

    @cached_property
    def loss_before(self) -> LocalLoss:
        """Loss on the CV's samples before training; it is computed when it is asked for."""
        return self.losses(self.start)

    @cached_property
    def loss_after(self) -> LocalLoss:
        """Loss on the CV's samples after training; it is computed when it is asked for."""
        return self.losses(self.model)


@dataclass(frozen=True)
class Aggregated:
    """What `aggregate_updates` returns if the weights that it applied are not those of `aggregate` or `weights`."""

    model: Model
    weights: Floats  # of each update, for the trace; 0: it was not used
