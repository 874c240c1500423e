"""What a learning scheme is, with rounds and without: a plan, and weights for the updates that came back."""

from dataclasses import dataclass, field
from typing import Protocol

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.schemes.observation import Observation


@dataclass(frozen=True)
class Plan:
    """Orders for a round; arrays have one entry per ordered CV."""

    cv: Ints
    iterations: Ints  # l
    cpu_hz: Floats  # η
    cost: float | None = None  # planned, worst case
    objective: float | None = None
    gap: float | None = None  # to the bound, relative
    status: str = "planned"
    ineligible: dict[int, str] = field(default_factory=dict)  # CV -> the constraint that binds
    max_iterations: dict[int, int] = field(default_factory=dict)  # CV -> hi_v, for the trace
    bound: float | None = None  # no plan could reach more
    dropped: bool = False  # everybody was wanted, but the budget made it a selection
    limited: bool = True  # C1 holds: at most |C_k| CVs
    bypasses_network: bool = False  # without constraints: everything is delivered, whatever the channel


class Scheme(Protocol):
    """A scheme is made once per run from the experiment; both methods are pure."""

    proximal_mu: float
    """μ of the local objective F_v(ω) + (μ/2)·‖ω − ω_k‖²; 0 leaves the data loss alone."""

    def plan(self, observation: Observation) -> Plan:
        """Decide who trains, how long and how fast."""
        ...

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Weights of the delivered updates, in the order of `delivered` (CV numbers, ascending)."""
        ...


@dataclass(frozen=True)
class Received:
    """The updates of a full buffer, in the order in which they came."""

    cv: Ints
    iterations: Ints  # l
    samples: Ints  # D
    staleness: Ints  # steps of the server since the model that the update started from


class AsynchronousScheme(Protocol):
    """A scheme with a `buffer` runs without rounds. It is made once per run; both methods are pure."""

    proximal_mu: float
    """μ of the local objective, as for other schemes."""
    buffer: int
    """The server steps whenever so many updates are in."""

    def plan(self, observation: Observation) -> Plan:
        """Decide how long and how fast those train who ask at this instant: the CVs of the observation."""
        ...

    def weights(self, received: Received) -> Floats:
        """ω + Σ weight · (update − the model that it started from) is the next model."""
        ...
