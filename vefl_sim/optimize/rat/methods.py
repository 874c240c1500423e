"""The methods for the RAT sub-problem (`rat.method`) and what they declare; their code is slow to import."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import nothing

if TYPE_CHECKING:
    from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem


class AllocationMethod(IntEnum):
    """Codes of the compiled methods; they are fast enough for every slot of a run, and run in bursts of slots."""

    AUTO = 0  # an exact method where one applies, else LARGE
    EXACT = 1
    ASSIGNMENT = 2
    LARGE = 3
    EQUAL = 4
    MAX_SNR = 5
    PROPORTIONAL_FAIR = 6


@dataclass(frozen=True)
class RatMethod:
    """A built-in method for the RAT sub-problem: its name, its compiled code, and what it declares."""

    name: str
    code: AllocationMethod | None  # None: the paper's Algorithm 4 with CVXPY, for comparison; a few slots per second
    unused_keys: tuple[str, ...] = ()
    contradictions: Callable[[Experiment], Iterator[str]] = nothing

    def __call__(self, problem: "RatProblem") -> "RatAllocation":
        """Allocate the pRBs and powers of one slot."""
        from vefl_sim.optimize.rat.problem import solve

        return solve(problem, self.name)


def _too_many_prbs(experiment: Experiment) -> Iterator[str]:
    from vefl_sim.optimize.rat.problem import EXACT_PRBS

    if experiment.radio.prbs > EXACT_PRBS:
        yield f'rat.method = "exact" supports at most {EXACT_PRBS} pRBs (radio.prbs): use "auto" or "large".'


_EFFICIENCY_KEYS = ("rat.efficiency_weight", "rat.circuit_power_w")

AUTO = RatMethod("auto", AllocationMethod.AUTO)
EXACT = RatMethod("exact", AllocationMethod.EXACT, contradictions=_too_many_prbs)
ASSIGNMENT = RatMethod("assignment", AllocationMethod.ASSIGNMENT)
LARGE = RatMethod("large", AllocationMethod.LARGE)
EQUAL = RatMethod("equal", AllocationMethod.EQUAL, unused_keys=_EFFICIENCY_KEYS)
MAX_SNR = RatMethod("max-snr", AllocationMethod.MAX_SNR, unused_keys=_EFFICIENCY_KEYS)
PROPORTIONAL_FAIR = RatMethod("proportional-fair", AllocationMethod.PROPORTIONAL_FAIR, unused_keys=_EFFICIENCY_KEYS)
SCA = RatMethod("sca", None)
SCA_PERSPECTIVE = RatMethod("sca-perspective", None)
