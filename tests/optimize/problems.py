"""Random RAT problems that resemble the slots of a run; benchmarks/bench_rat.py uses them, too."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.fuzz.problems import Fields
from vefl_sim.experiment.kinds import RAT_METHODS
from vefl_sim.experiment.plugins import load_part
from vefl_sim.optimize.rat.problem import RatProblem

SLOT_S = 5e-4
PAYLOAD_BITS = 720_720.0  # the paper's CNN

COMPILED = [name for name in RAT_METHODS if load_part("rat.method", name).code is not None]
"""The methods for the RAT sub-problem that are compiled, without those that call CVXPY."""


def random_problem(cvs: int, prbs: int, seed: int, *, tightness: float = 1.0) -> RatProblem:
    """V CVs with a spread of 40 dB in path loss, 4-antenna Rayleigh fading, random backlogs and deadlines."""
    rng = np.random.default_rng(seed)
    bits_left = PAYLOAD_BITS * rng.uniform(0.01, 1.0, cvs)
    slots_left = np.ceil(rng.uniform(200, 3000, cvs) / tightness)
    return RatProblem(
        snr_per_watt=rng.gamma(4.0, size=(cvs, prbs)) * 10 ** rng.uniform(0.5, 4.5, (cvs, 1)),
        max_power_w=np.full(cvs, 0.2),
        bits_left=bits_left,
        floor_bps=bits_left / SLOT_S / slots_left,
        mean_bps=rng.uniform(0, 1e7, cvs),
        slot_s=SLOT_S,
        bandwidth_hz=(1.8e6 if prbs <= 12 else 360e3) * 13 / 14,  # bundles of five pRBs, or single pRBs at 30 kHz
        tradeoff=float(rng.choice([0.0, 0.1, 1.0, 10.0])) * SLOT_S * PAYLOAD_BITS,
        efficiency=float(rng.choice([0.0, 1e7, 1e8, 4e8])),
    )


def saved_problems(attack: str) -> Iterator[Fields]:
    """The problems in the corpus of this attack."""
    for file in sorted((Path(__file__).parents[1] / "fuzz" / "corpus" / attack).glob("*/*.jsonl")):
        yield from map(json.loads, file.read_text().splitlines())
