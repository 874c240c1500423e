"""Service level agreements: what each CV offers and charges, fixed for its life."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.scheme_tables import SlaTable


@dataclass(frozen=True)
class Agreement:
    """One CV's terms."""

    energy_budget_j: float  # e_bud, per round
    cycles_per_bit: float  # c
    price_per_joule: float  # φ
    base_fee: float  # φ̄
    cpu_min_hz: float
    cpu_max_hz: float


def draw_agreement(cv: int, sla: SlaTable, streams: Streams) -> Agreement:
    """The terms of a CV, from its own stream: the same whoever else is there."""
    rng = streams.generator("slas", cv)
    return Agreement(**{term.name: float(rng.uniform(*getattr(sla, term.name))) for term in fields(Agreement)})


def column(agreements: list[Agreement], term: str) -> NDArray[np.float64]:
    """One term of many agreements, as an array."""
    return np.array([getattr(agreement, term) for agreement in agreements], dtype=np.float64)
