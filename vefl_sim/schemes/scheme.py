"""The interface of a learning scheme, with rounds and without: it plans orders, and weights the delivered updates.

A scheme that needs more than weights has some of these members as well; each alone is enough:

local(cv) -> Local               what a CV minimises besides F_v and μ; asked when the CV gets its order
local_term(local, start)         a further term of the objective, the same for all CVs: JAX code, from ω and ω_k
aggregate_updates(updates, model)  the next model, from the updates themselves; None: add them up with their weights
memory                           a dict of numbers and arrays, by CV if need be: what it remembers, kept in checkpoints
models_per_update                how many times the size of a model an update has; 1 if not given
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.learning.learner import LocalLoss, Model
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


class Scheme(Protocol):
    """A scheme with rounds. It is created once per run from the experiment; both methods are pure."""

    proximal_mu: float
    """μ of the local objective F_v(ω) + (μ/2)·‖ω − ω_k‖²; 0 means no proximal term."""

    def plan(self, observation: Observation) -> Plan:
        """Decide which CVs train, how many iterations, and at what CPU frequency."""
        ...

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Weights of the delivered updates, in the order of `delivered` (CV numbers, ascending)."""
        ...


@dataclass(frozen=True)
class Received:
    """The updates of a full buffer, in the order in which they were received; one array entry per update."""

    cv: Ints
    iterations: Ints  # l
    samples: Ints  # D
    staleness: Ints  # server steps since the model version that the CV trained from


class AsynchronousScheme(Protocol):
    """A scheme without rounds, recognized by its `buffer`. It is created once per run; both methods are pure."""

    proximal_mu: float
    """μ of the local objective, as in `Scheme`."""
    buffer: int
    """Number of received updates after which the server aggregates them."""

    def plan(self, observation: Observation) -> Plan:
        """Plan for the CVs of the observation, which request an order now: iterations and CPU frequency of each."""
        ...

    def weights(self, received: Received) -> Floats:
        """Weights of the updates: the next model is ω + Σ weight·(update − the model that its CV trained from)."""
        ...


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
