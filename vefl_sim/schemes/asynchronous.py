"""What a scheme without rounds is: a plan for those who ask, and weights for the updates of a full buffer."""

from dataclasses import dataclass
from typing import Protocol

from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Floats, Ints, Plan


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
