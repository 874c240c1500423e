"""Compares our radio model with published values of the same 3GPP model; `python -m vefl_sim check radio` prints them.

The references are values from the test suites of ns-3 (which uses c = 3e8 m/s) and of Sionna 1.2.1, and values from
TS 38.211; for fading and power they are formulas. Fading is measured on one antenna before combining, over many CVs:
its correlation over time against J₀(2πf_D·t), how often it crosses a level against √(2π)·f_D·ρ·e^(−ρ²), and its
correlation over frequency against the delay profile.
"""

from collections.abc import Iterator, Sequence
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.analysis.references.sheet import Check, published
from vefl_sim.core.arrays import Floats
from vefl_sim.core.clock import SlotGrid
from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.radio.delay_profile import DelayProfile, uma_delay_spread_s
from vefl_sim.radio.link import Link, prb_bandwidth_hz, subcarrier_spacing_hz
from vefl_sim.radio.scattering import Propagation, bessel_j0
from vefl_sim.radio.uma import SPEED_OF_LIGHT_MPS, los_probability, pathloss_db

_SIGHT = {True: "LOS", False: "NLOS"}
CARRIER_GHZ = 3.5
WAVELENGTH_M = SPEED_OF_LIGHT_MPS / (CARRIER_GHZ * 1e9)
SPEEDS_MPS = (5.0, 11.18, 20.12)
_CVS, _ANTENNAS = 100, 8
_LAGS_S = (0.5e-3, 2e-3, 10e-3)  # one slot of numerology 1, four, and twenty
_LEVELS = (0.3, 1.0)  # of the amplitude, relative to its root mean square
_STEP_S, _STEPS = 1e-4, 4000
_PLACES_M = np.arange(10, dtype=np.float64) * 3.7


def radio_sheet() -> Iterator[Check]:
    """All comparisons of the radio model."""
    values = published("radio")
    for source, tolerance in (("ns-3", 0.01), ("Sionna", 1e-6)):
        for los, d2d_m, height_m, carrier_ghz, reference in values[source]:
            ours = float(pathloss_db(d2d_m, los=los, carrier_ghz=carrier_ghz, h_ut_m=height_m))
            what = f"path loss, {_SIGHT[los]}, {d2d_m:g} m, {carrier_ghz:g} GHz, {height_m:g} m high"
            yield Check(what, source, reference, ours, tolerance, "dB")
    for source, d2d_m, height_m, reference in values["los"]:
        ours = float(los_probability(d2d_m, h_ut_m=height_m))
        yield Check(f"P(line of sight), {d2d_m:g} m, {height_m:g} m high", source, reference, ours, 1e-8, "")
    for numerology, (spacing, slots) in enumerate(values["numerologies"]):
        ours = subcarrier_spacing_hz(numerology)
        yield Check(f"subcarrier spacing, numerology {numerology}", "38.211", spacing, ours, 0.0, "Hz")
        ours = 1e6 / SlotGrid.of_numerology(numerology).slot_ns
        yield Check(f"slots per millisecond, numerology {numerology}", "38.211", slots, ours, 0.0, "")
    yield Check("pRB, numerology 1", "38.211", 360e3, prb_bandwidth_hz(1), 0.0, "Hz")
    noise_dbm = 10 * log10(Link.of(RadioTable()).noise_w) + 30
    yield from _fading_checks(values)
    yield Check("noise in 1.8 MHz, figure 5 dB", "−174 dBm/Hz", -174 + 5 + 62.552725, noise_dbm, 1e-5, "dBm")


def _fading_checks(values: dict[str, Any]) -> Iterator[Check]:
    """All comparisons of correlated fading, delay spread and power."""
    for speed_mps in SPEEDS_MPS:
        doppler_hz = speed_mps / WAVELENGTH_M
        for lag_s in _LAGS_S:
            what = f"correlation after {1e3 * lag_s:g} ms at {speed_mps:g} m/s"
            reference = bessel_j0(2 * np.pi * doppler_hz * lag_s)
            yield Check(what, "J₀(2πf_D·t)", reference, correlation(speed_mps * lag_s), 0.015, "")
        for level, ours in zip(_LEVELS, crossings_hz(speed_mps), strict=True):
            reference = float(np.sqrt(2 * np.pi) * doppler_hz * level * np.exp(-(level**2)))
            what = f"crossings per s of level {level:g} at {speed_mps:g} m/s"
            yield Check(what, "√2π·f_D·ρe^−ρ²", reference, ours, 0.03 * reference, "Hz")
    for los, lg_s in values["spreads"]:
        spread_s, sight = uma_delay_spread_s(CARRIER_GHZ, sight=los), _SIGHT[los]
        yield Check(f"lg of the delay spread, {sight}, 3.5 GHz", "38.901", lg_s, float(np.log10(spread_s)), 1e-6, "")
        for apart in (1, 2, 5):
            reference = float(1 / np.hypot(1, 2 * np.pi * spread_s * 1.8e6 * apart))
            what = f"correlation over {1.8 * apart:g} MHz, {sight}"
            yield Check(what, "1/(1+j2πΔfτ)", reference, coherence(spread_s, apart), 0.015, "")
    radio = RadioTable(power="open-loop")
    link = Link.of(radio)
    assert link.open_loop is not None
    for loss_db, reference in values["open_loop"]:
        watts = float(link.open_loop.prb_watts(link.snr_per_watt(np.array([loss_db])))[0])
        ours = 10 * float(np.log10(watts)) + 30
        yield Check(f"open-loop power at {loss_db:g} dB", "38.213", reference, ours, 1e-4, "dBm")


def antenna_gains(cv: int, driven_m: Floats, spread_s: float | None = None, prbs: int = 1) -> NDArray[np.complex128]:
    """Complex gains of the antennas of one CV; shape (distances, antennas, pRBs)."""
    profile = DelayProfile(spread_s, CARRIER_GHZ, prbs, 1.8e6)
    turns, real, imag = Propagation(25, prbs, _ANTENNAS, WAVELENGTH_M, 0.0, profile).paths(cv, sight=False)
    phases = np.exp(2j * np.pi * np.multiply.outer(driven_m, turns))
    gains: NDArray[np.complex128] = (phases @ (real + 1j * imag)).reshape(len(driven_m), _ANTENNAS, prbs)
    return gains


def correlation(lag_m: float) -> float:
    """Correlation of an antenna's gain at two places, mean over places, antennas and CVs."""
    places_m = np.append(_PLACES_M, _PLACES_M + lag_m)
    gains = np.array([antenna_gains(cv, places_m)[:, :, 0] for cv in range(4 * _CVS)])
    here, there = gains[:, : len(_PLACES_M)], gains[:, len(_PLACES_M) :]
    return float((here * there.conj()).mean().real)


def crossings_hz(speed_mps: float, levels: Sequence[float] = _LEVELS) -> list[float]:
    """How often the amplitude of an antenna rises through each of the levels, per second."""
    driven_m = speed_mps * _STEP_S * np.arange(_STEPS, dtype=np.float64)
    counts = np.zeros(len(levels))
    for cv in range(_CVS):
        amplitude = np.abs(antenna_gains(cv, driven_m)[:, :, 0])
        counts += [((amplitude[:-1] < level) & (amplitude[1:] >= level)).sum() for level in levels]
    rates: list[float] = (counts / (_CVS * _ANTENNAS * _STEP_S * (_STEPS - 1))).tolist()
    return rates


def coherence(spread_s: float, apart: int) -> float:
    """Magnitude of the correlation of two pRBs, mean over places, antennas and CVs."""
    gains = np.array([antenna_gains(cv, _PLACES_M, spread_s, apart + 1) for cv in range(4 * _CVS)])
    return float(np.abs((gains[..., 0] * gains[..., apart].conj()).mean()))
