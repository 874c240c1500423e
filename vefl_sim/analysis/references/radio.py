"""Compares our radio model with published values of the same 3GPP model.

The references are values from the test suites of ns-3 (which uses c = 3e8 m/s) and of Sionna 1.2.1, and values from
TS 38.211; for fading and power they are formulas (fading.py). `python -m vefl_sim check radio` prints the sheet.
"""

from collections.abc import Iterator
from math import log10

from vefl_sim.analysis.references.fading import fading_checks
from vefl_sim.analysis.references.sheet import Check
from vefl_sim.core.clock import SlotGrid
from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.radio.link import Link, prb_bandwidth_hz, subcarrier_spacing_hz
from vefl_sim.radio.uma import los_probability, pathloss_db

# (line of sight, horizontal distance in m, height of the CV in m, carrier in GHz, path loss in dB)
_NS3_PATHLOSS = (
    (True, 10.0, 1.5, 5.0, 72.9380), (True, 100.0, 1.5, 5.0, 86.2362), (True, 1000.0, 1.5, 5.0, 109.7252),
    (True, 5000.0, 1.5, 5.0, 137.6794), (False, 10.0, 1.5, 5.0, 82.5131), (False, 100.0, 1.5, 5.0, 106.1356),
    (False, 1000.0, 1.5, 5.0, 144.7641), (False, 5000.0, 1.5, 5.0, 172.0753),
)  # fmt: skip
_SIONNA_PATHLOSS = (
    (True, 10.0, 1.5, 0.9, 58.043405), (True, 150.0, 1.5, 0.9, 75.380587), (True, 500.0, 1.5, 0.9, 96.104287),
    (True, 5000.0, 1.5, 0.9, 136.085313), (False, 10.0, 1.5, 0.9, 67.618501), (False, 150.0, 1.5, 0.9, 97.872268),
    (False, 500.0, 1.5, 0.9, 118.119323), (False, 5000.0, 2.0, 0.9, 156.880778), (True, 250.0, 2.0, 0.9, 79.879795),
)  # fmt: skip
# (distance, height of the CV, probability)
_LOS = (
    ("ns-3", 50.0, 15.0, 0.65590519), ("ns-3", 100.0, 15.0, 0.36762776), ("Sionna", 18.0, 1.5, 1.0),
    ("Sionna", 35.0, 1.5, 0.79296595), ("Sionna", 75.0, 1.5, 0.47109809), ("Sionna", 150.0, 1.5, 0.20136698),
    ("Sionna", 250.0, 1.5, 0.08954515), ("Sionna", 450.0, 1.5, 0.04075887),
)  # fmt: skip
_SPACING_HZ = (15e3, 30e3, 60e3, 120e3, 240e3)  # TS 38.211, table 4.2-1
_SLOTS_PER_MS = (1, 2, 4, 8, 16)  # TS 38.211, table 4.3.2-1


def radio_sheet() -> Iterator[Check]:
    """All comparisons of the radio model."""
    for source, rows, tolerance in (("ns-3", _NS3_PATHLOSS, 0.01), ("Sionna", _SIONNA_PATHLOSS, 1e-6)):
        for los, d2d_m, height_m, carrier_ghz, reference in rows:
            ours = float(pathloss_db(d2d_m, los=los, carrier_ghz=carrier_ghz, h_ut_m=height_m))
            sight = "LOS" if los else "NLOS"
            what = f"path loss, {sight}, {d2d_m:g} m, {carrier_ghz:g} GHz, {height_m:g} m high"
            yield Check(what, source, reference, ours, tolerance, "dB")
    for source, d2d_m, height_m, reference in _LOS:
        ours = float(los_probability(d2d_m, h_ut_m=height_m))
        yield Check(f"P(line of sight), {d2d_m:g} m, {height_m:g} m high", source, reference, ours, 1e-8, "")
    for numerology, (spacing, slots) in enumerate(zip(_SPACING_HZ, _SLOTS_PER_MS, strict=True)):
        ours = subcarrier_spacing_hz(numerology)
        yield Check(f"subcarrier spacing, numerology {numerology}", "38.211", spacing, ours, 0.0, "Hz")
        ours = 1e6 / SlotGrid.of_numerology(numerology).slot_ns
        yield Check(f"slots per millisecond, numerology {numerology}", "38.211", slots, ours, 0.0, "")
    yield Check("pRB, numerology 1", "38.211", 360e3, prb_bandwidth_hz(1), 0.0, "Hz")
    noise_dbm = 10 * log10(Link.of(RadioTable()).noise_w) + 30
    yield from fading_checks()
    yield Check("noise in 1.8 MHz, figure 5 dB", "−174 dBm/Hz", -174 + 5 + 62.552725, noise_dbm, 1e-5, "dBm")
