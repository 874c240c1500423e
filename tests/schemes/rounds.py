"""Observations for tests, built by hand."""

from dataclasses import replace

import numpy as np

from vefl_sim.core.clock import SlotGrid
from vefl_sim.experiment.experiment import Experiment, RadioTable
from vefl_sim.experiment.toml import from_tables
from vefl_sim.radio.link import Link
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants, observe
from vefl_sim.schemes.sla import Agreement

TYPICAL = Agreement(
    energy_budget_j=20.0, cycles_per_bit=25.0, price_per_joule=10.0, base_fee=10.0, cpu_min_hz=1e3, cpu_max_hz=2e9
)
LINK = Link.of(RadioTable(antennas=1))
CONSTANTS = RoundConstants(
    grid=SlotGrid(500_000), link=LINK, round_ns=5 * 10**9, budget=1000.0,
    payload_bits=330, bits_per_sample=1_000_000, cpu_capacitance=2e-28, min_iterations=1, max_iterations=20,
    max_selected=2, sojourn_weight=0.5, share_among_selected=False,
)  # fmt: skip


def observed(samples, sojourn_s, agreements=None, success=None, snapshot=None, **constants) -> Observation:
    """Observation of the CVs 1, 4, 9, … with good channels, where 330 bits take at most one slot."""
    count = len(samples)
    typical = CoverageSnapshot(
        round=3, time_ns=10**10, cv=np.arange(1, count + 1) ** 2, distance_m=np.full(count, 100.0),
        sojourn_s=np.array(sojourn_s, float), snr_per_watt=np.full(count, 1e6),
        worst_rate_bps=np.full(count, LINK.rate_bps(2e5)), samples=np.array(samples, np.int64),
        agreements=agreements or [TYPICAL] * count, success=np.ones(count) if success is None else np.array(success),
    )  # fmt: skip
    return observe(replace(typical, **snapshot or {}), replace(CONSTANTS, **constants))


def experiment(**tables) -> Experiment:
    """An experiment with these tables, and defaults for the rest."""
    return from_tables({"run": {"name": "x"}} | tables)
