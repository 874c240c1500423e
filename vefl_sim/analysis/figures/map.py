"""Draws an imported map: streets by expected traffic, traffic lights, the gNB and its coverage."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vefl_sim.analysis.figures.style import require_matplotlib
from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import BadInput
from vefl_sim.mobility.sumo.map_import import RADIUS_M, ImportedMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DARK, _RED, _AMBER, _EMPTY = "#22303c", "#c0392b", "#e0a100", "#b9b4ad"
_FLOW = ("#7fb8dd", "#3a7fc0", "#12519b", "#0a1f52")  # even the lightest is visible on white
_STYLE: Any = {"font.size": 9}
_WIDTH_IN = 9.0


def draw_map(imported: ImportedMap, path: Path) -> bool:
    """Write the picture; returns False if matplotlib is not installed."""
    try:
        require_matplotlib()
    except BadInput:
        return False
    import matplotlib.pyplot as plt

    low, high = imported.net.box_m
    width, height = high - low
    with plt.rc_context(_STYLE):
        tall = min(max(0.87 * _WIDTH_IN * height / width, 4.0), 12.0)  # leaves space for the colour bar next to the map
        figure, axes = plt.subplots(figsize=(_WIDTH_IN, tall + 0.7), layout="constrained")
        flow = _streets(axes, imported)
        bar = figure.colorbar(flow, ax=axes, label="vehicles per hour, each direction", shrink=0.8, pad=0.02, aspect=30)
        ticks = _ticks(flow.norm.vmin, flow.norm.vmax)
        bar.set_ticks(ticks, labels=[f"{float(f'{tick:.3g}'):g}" for tick in ticks])
        bar.ax.minorticks_off()
        bar.outline.set_visible(False)
        _coverage(axes, imported)
        _scale(axes, float(width))
        margin = 0.02 * max(width, height)
        axes.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin), aspect="equal")
        axes.set_axis_off()
        axes.set_title(_title(imported), loc="left", fontsize=11, color=_DARK)
        figure.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.15)
        plt.close(figure)
    return True


def _title(imported: ImportedMap) -> str:
    net = imported.net
    return (
        f"{imported.source.name}: {net.junctions} junctions, {len(net.signals_m)} with traffic lights, "
        f"{net.length_m / 1e3:.0f} km of streets"
    )


def _streets(axes: "Axes", imported: ImportedMap) -> Any:
    """Draw streets without traffic in grey and the others coloured by expected traffic, the busiest on top."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    net, streets = imported.net, imported.net.streets
    lines, lanes = [net.joined_m(street) for street in streets], np.array([street.lanes for street in streets])
    per_hour = 3600 * imported.calibration.rate_per_s * imported.routes.per_street()
    empty, used = np.flatnonzero(per_hour == 0), np.flatnonzero(per_hour > 0)
    used = used[np.argsort(per_hour[used], kind="stable")]
    if empty.size:
        wide = 0.5 + 0.4 * lanes[empty]
        axes.add_collection(LineCollection([lines[i] for i in empty], colors=_EMPTY, linewidths=wide, zorder=1))
        axes.plot([], [], color=_EMPTY, lw=1.5, label="streets without traffic")
    most = float(per_hour.max())
    flow = LineCollection(
        [lines[i] for i in used], array=per_hour[used], cmap=LinearSegmentedColormap.from_list("traffic", _FLOW),
        norm=LogNorm(max(float(per_hour[used].min()), 0.01 * most) / 1.001, most), linewidths=_widths(per_hour[used]),
        capstyle="round", joinstyle="round", zorder=2,
    )  # fmt: skip
    axes.add_collection(flow)
    return flow


def _widths(per_hour: Floats) -> Floats:
    """Line widths in points; streets with little traffic stay visible."""
    widths: Floats = 1.0 + 2.2 * np.sqrt(per_hour / per_hour.max())
    return widths


def _ticks(low: float, high: float) -> list[float]:
    """Ticks 1, 2, 5, 10, 20, … between the ends; the ends themselves if there are fewer than two."""
    digits = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [tick for digit in digits for step in (1, 2, 5) if low <= (tick := step * 10.0**digit) <= high]
    return ticks if len(ticks) > 1 else [low, high]


def _coverage(axes: "Axes", imported: ImportedMap) -> None:
    """Draw the traffic lights, the gNB and its coverage, and the legend."""
    from matplotlib.patches import Circle

    signals = imported.net.signals_m
    if len(signals):
        axes.scatter(
            signals[:, 0],
            signals[:, 1],
            s=14,
            color=_AMBER,
            edgecolors="white",
            lw=0.5,
            zorder=4,
            label="traffic lights",
        )
    axes.add_patch(Circle(imported.gnb_m, RADIUS_M, facecolor=_RED, alpha=0.06, zorder=0))
    axes.add_patch(Circle(imported.gnb_m, RADIUS_M, fill=False, color=_RED, lw=1.4, ls="--", zorder=5))
    axes.plot([], [], color=_RED, lw=1.4, ls="--", label=f"coverage, {imported.vehicles:g} vehicles on average")
    axes.scatter(*imported.gnb_m, marker="^", s=90, color=_RED, edgecolors="white", lw=0.8, zorder=6, label="gNB")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, frameon=False, fontsize=8)


def _scale(axes: "Axes", width_m: float) -> None:
    """Draw a scale bar of a round length at the lower left."""
    length_m = max(metres for metres in (50, 100, 200, 500, 1000, 2000, 5000) if metres <= max(width_m / 4, 50))
    transform = axes.get_xaxis_transform()
    left = axes.dataLim.x0 if np.isfinite(axes.dataLim.x0) else 0.0
    axes.plot(
        [left, left + length_m], [0.02, 0.02], color=_DARK, lw=3, solid_capstyle="butt", transform=transform, zorder=7
    )
    axes.text(left + length_m / 2, 0.028, f"{length_m} m", ha="center", color=_DARK, transform=transform, zorder=7)
