"""Draw docs/pictures/fading.png: correlated fading over the distance driven, its correlation, and its level crossings.

python docs/pictures/fading.py
"""

import ending  # noqa: F401

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import j0

from vefl_sim.analysis.references.radio import WAVELENGTH_M, antenna_gains, coherence, correlation, crossings_hz
from vefl_sim.radio.delay_profile import uma_delay_spread_s

DARK, LIGHT, RED = "#22303c", "#7aa0cf", "#c0392b"


def main() -> None:
    """Draw four panels."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (gain, over_distance, levels, over_frequency) = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")

    driven_m = np.linspace(0, 1.0, 1000)
    power = np.abs(antenna_gains(3, driven_m)[:, :4, 0]) ** 2
    gain.plot(driven_m, 10 * np.log10(power[:, 0]), color=LIGHT, label="one antenna")
    gain.plot(driven_m, 10 * np.log10(power.sum(axis=1)), color=DARK, label="four, combined")
    gain.set(title="Gain of a CV", xlabel="distance driven, m", ylabel="dB", ylim=(-25, 12))
    gain.legend(frameon=False)

    lags = np.linspace(0, 3, 31)
    exact = np.linspace(0, 3, 301)
    over_distance.plot(exact, j0(2 * np.pi * exact), color=RED, lw=1, label="J₀(2πΔx/λ)")
    over_distance.plot(lags, [correlation(lag * WAVELENGTH_M) for lag in lags], "o", ms=3, color=DARK, label="measured")
    over_distance.set(title="Correlation over distance", xlabel="Δx/λ")
    over_distance.legend(frameon=False)

    rho = np.linspace(0.05, 2.2, 100)
    levels.plot(rho, np.sqrt(2 * np.pi) * rho * np.exp(-(rho**2)), color=RED, lw=1, label="√(2π)·ρ·e^(−ρ²)")
    points = np.arange(0.1, 2.2, 0.15)
    measured = np.array(crossings_hz(20.12, tuple(points.tolist()))) / (20.12 / WAVELENGTH_M)
    levels.plot(points, measured, "o", ms=3, color=DARK, label="measured")
    levels.set(title="Level crossings per wavelength", xlabel="level ρ", ylim=(0, None))
    levels.legend(frameon=False)

    apart = np.arange(1, 10)
    for sight, colour in ((True, DARK), (False, LIGHT)):
        spread_s = uma_delay_spread_s(3.5, sight=sight)
        formula = 1 / np.hypot(1, 2 * np.pi * spread_s * 1.8e6 * np.linspace(0, 9, 100))
        over_frequency.plot(1.8 * np.linspace(0, 9, 100), formula, color=RED, lw=1)
        label = f"{'' if sight else 'no '}line of sight, {1e9 * spread_s:.0f} ns"
        over_frequency.plot(
            1.8 * apart, [coherence(spread_s, n) for n in apart.tolist()], "o", ms=3, color=colour, label=label
        )
    over_frequency.set(title="Correlation over frequency", xlabel="Δf, MHz", ylim=(0, 1.02))
    over_frequency.legend(frameon=False)
    for axes in (gain, over_distance, levels, over_frequency):
        axes.grid(color="#e8ecef")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
