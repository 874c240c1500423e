"""Draw docs/pictures/mobility.png: the grid with vehicles, lights and coverage; the CCDF of the sojourn bound.

python docs/pictures/mobility.py
"""

from ending import SMALL

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from vefl_sim.analysis.references.mobility import SPEEDS_MPS, default_traffic
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, RunTable
from vefl_sim.mobility.coverage import sojourn_bound_s
from vefl_sim.mobility.grid.junctions import light
from vefl_sim.mobility.grid.roads import STEP_X, STEP_Y
from vefl_sim.mobility.grid.traffic import IdmTraffic

DARK, LIGHT, RED = "#22303c", "#7aa0cf", "#c0392b"
LIGHTS = ("#2e9e5b", "#e0a100", RED)
SHADES = ("#c3d4ea", "#7aa0cf", "#3f6aa3", DARK)


def streets(axes: Axes) -> None:
    """Draw one instant of the default traffic."""
    experiment = Experiment(run=RunTable(name="picture"))
    traffic = IdmTraffic(experiment, Streams(1))
    for _ in range(300):
        scene = traffic.advance()
    grid, fleet = traffic.streets.grid, traffic.streets.fleet
    step_x, step_y = STEP_X[grid.heading], STEP_Y[grid.heading]
    axes.plot(
        [grid.start_x_m, grid.start_x_m + grid.block_m * step_x],
        [grid.start_y_m, grid.start_y_m + grid.block_m * step_y],
        color="#e3e8ec", lw=9, zorder=0, solid_capstyle="butt",
    )  # fmt: skip
    radius_m = experiment.radio.coverage_radius_m
    axes.add_patch(Circle((0, 0), radius_m, fill=False, color=DARK, lw=1.2, ls="--", label="coverage"))
    inner = np.flatnonzero(~grid.leads_out)
    colours = [light(traffic.streets.signals, grid.junction[e], grid.heading[e], scene.time_ns) for e in inner]
    side = 8.0  # m to the right of the centre line, so that both directions are distinguishable
    x_m, y_m = grid.xy(inner, np.full(inner.size, grid.stop_line_m - 9))
    axes.scatter(x_m + side * step_y[inner], y_m - side * step_x[inner], s=9, c=[LIGHTS[c] for c in colours], lw=0)
    heading = grid.heading[fleet.edge]
    x_m, y_m = scene.x_m + side * STEP_Y[heading], scene.y_m - side * STEP_X[heading]
    inside = np.hypot(scene.x_m, scene.y_m) <= radius_m
    for which, colour in ((inside, DARK), (~inside, LIGHT)):
        axes.quiver(
            x_m[which], y_m[which], STEP_X[heading][which], STEP_Y[heading][which], color=colour, pivot="tip",
            scale=60, width=0.007, headwidth=2.6, headlength=2.6, headaxislength=2.6,
            label="vehicle in coverage" if colour == DARK else "vehicle outside",
        )  # fmt: skip
    for colour, name in zip(LIGHTS, ("green", "amber", "red"), strict=True):
        axes.scatter([], [], s=14, color=colour, label=name)
    axes.plot(0, 0, marker="^", color=RED, ms=7)
    axes.annotate("gNB", (0, 0), (14, 16), color=RED, fontsize=9)
    axes.set(title=f"{inside.sum()} of {fleet.size} vehicles in coverage, 30 s after the start", aspect="equal")
    axes.set(xlabel="x, m", ylabel="y, m", xlim=(-660, 660), ylim=(-660, 660))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=6, frameon=False, fontsize=8, handlelength=1.2)


def sojourn(axes: Axes) -> None:
    """Draw P(t_soj > t) at four speeds, the two values in the paper, and the CCDF of a uniform disc."""
    for speed_mps, colour in [*zip(SPEEDS_MPS, SHADES, strict=True)][: 1 if SMALL else None]:
        bound_s = default_traffic(speed_mps, seed=1).sojourn_s
        axes.step(bound_s, 1 - np.arange(bound_s.size) / bound_s.size, color=colour, label=f"u_max = {speed_mps:g} m/s")
    rng = np.random.default_rng(1)
    radius_m, angle = 500 * np.sqrt(rng.random(100_000)), 2 * np.pi * rng.random(100_000)
    disc_s = sojourn_bound_s(radius_m * np.cos(angle), radius_m * np.sin(angle), radius_m=500.0, max_speed_mps=26.82)
    axes.plot(np.sort(disc_s), 1 - np.arange(disc_s.size) / disc_s.size, color=RED, lw=1, ls=":",
              label="uniform disc, 26.82 m/s")  # fmt: skip
    axes.plot([5.0, 2.5], [0.72, 0.87], "o", color=RED, label="the paper, 26.82 m/s")
    axes.set(title="CCDF of the sojourn bound", xlabel="t, s", ylabel="P(bound > t)", xlim=(0, 30), ylim=(0, 1.01))
    axes.grid(color="#e8ecef")
    axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.96))


def main() -> None:
    """Draw two panels with the default parameters."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained", width_ratios=(1.15, 1))
    streets(left)
    sojourn(right)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
