"""The interface of a learning scheme, with rounds and without: it plans orders, and weights the delivered updates."""

from dataclasses import dataclass, field
from typing import Protocol

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.schemes.observation import Observation

# Groups of keys that several schemes declare as unused
RULE_KEYS = ("aggregation.sojourn_weight", "aggregation.p_suc", "aggregation.normalize")
SUM_KEYS = ("aggregation.form", "aggregation.weights_over")
PROBLEM_KEYS = ("vefl.method", "vefl.sojourn_weight", "vefl.min_local_iterations", "vefl.upload_share")
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
