"""Draw docs/pictures/radio.png: path loss, probability of line of sight and rate against the distance from the gNB.

python docs/pictures/radio.py
"""

import ending  # noqa: F401

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.radio.fading import RayleighFading
from vefl_sim.radio.link import Link
from vefl_sim.radio.uma import los_probability, pathloss_db

DARK, LIGHT, RED = "#22303c", "#7aa0cf", "#c0392b"


def main() -> None:
    """Draw three panels with the default parameters."""
    radio, d2d_m = RadioTable(), np.linspace(10, 800, 400)
    link, worst_prb = Link.of(radio), RayleighFading(0, radio.prbs, radio.antennas).law().worst()
    loss = {sight: pathloss_db(d2d_m, los=sight, carrier_ghz=radio.carrier_ghz) for sight in (True, False)}
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained")

    left.plot(d2d_m, loss[True], color=DARK, label="line of sight")
    left.plot(d2d_m, loss[False], color=LIGHT, label="no line of sight")
    left.axvline(560, color="#c9d0d6", lw=1, ls=":")
    left.text(566, loss[True].min(), "breakpoint", color="#8a97a6", fontsize=8)
    left.set(title=f"UMa path loss at {radio.carrier_ghz:g} GHz", ylabel="dB")
    left.legend(frameon=False)

    middle.plot(d2d_m, los_probability(d2d_m), color=DARK)
    middle.set(title="P(line of sight)", ylim=(0, 1.02))

    for sight, colour in ((True, DARK), (False, LIGHT)):
        snr_per_watt = link.snr_per_watt(loss[sight])
        mean = link.rate_bps(link.max_power_w * snr_per_watt * link.antennas) / 1e6
        right.plot(d2d_m, mean, color=colour, label="mean channel" if sight else None)
        right.plot(d2d_m, link.mean_rate_bps(snr_per_watt, *worst_prb) / 1e6, color=colour, ls="--",
                   label="worst pRB of 10" if sight else None)  # fmt: skip
    right.set(title="Rate of one pRB, all power on it", ylabel="Mbit/s", ylim=(0, None))
    right.legend(frameon=False)
    for axes in (left, middle, right):
        axes.axvline(radio.coverage_radius_m, color=RED, lw=1, ls="--")
        axes.set(xlabel="horizontal distance, m", xlim=(0, 800))
        axes.grid(color="#e8ecef")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
