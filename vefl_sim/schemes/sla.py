"""Service level agreements: what each CV offers and charges, constant during the run."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import SlaTable


@dataclass(frozen=True)
class Agreement:
    """The terms of one CV."""

    energy_budget_j: float  # e_bud, per round
    cycles_per_bit: float  # c
    price_per_joule: float  # φ
    base_fee: float  # φ̄
    cpu_min_hz: float  # η_min
    cpu_max_hz: float  # η_max


def draw_agreement(cv: int, sla: SlaTable, streams: Streams) -> Agreement:
    """Draw the terms of a CV from its own random stream, so that they do not depend on other CVs."""
    rng = streams.generator("slas", cv)
    return Agreement(**{term.name: float(rng.uniform(*getattr(sla, term.name))) for term in fields(Agreement)})


def column(agreements: list[Agreement], term: str) -> NDArray[np.float64]:
    """One term of all agreements, as an array."""
    return np.array([getattr(agreement, term) for agreement in agreements], dtype=np.float64)
