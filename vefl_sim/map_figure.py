"""The picture of an imported map: streets by expected traffic, signals, the gNB and its coverage."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vefl_sim.map_import import RADIUS_M, ImportedMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DARK, _RED, _AMBER, _STREET = "#22303c", "#c0392b", "#e0a100", "#d5dce2"
_STYLE: Any = {"font.size": 9}
_WIDTH_IN = 9.0


def draw(imported: ImportedMap, path: Path) -> bool:
    """Write the picture, if matplotlib is there."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    low, high = imported.net.box_m
    width, height = high - low
    with plt.rc_context(_STYLE):
        tall = min(max(0.87 * _WIDTH_IN * height / width, 4.0), 12.0)  # a colour bar is beside the map
        figure, axes = plt.subplots(figsize=(_WIDTH_IN, tall + 0.7), layout="constrained")
        flow = _streets(axes, imported)
        bar = figure.colorbar(flow, ax=axes, label="vehicles per hour, each direction", shrink=0.8, pad=0.02, aspect=30)
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter(LogFormatter())  # plain numbers, and not too many
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
        f"{imported.source.name}: {net.junctions} junctions, {len(net.signals_m)} with signals, "
        f"{net.length_m / 1e3:.0f} km of streets"
    )


def _streets(axes: "Axes", imported: ImportedMap) -> Any:
    """All of them in grey, and over it those that are used, the busiest on top."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    streets = imported.net.streets
    lines, lanes = [street.points_m for street in streets], np.array([street.lanes for street in streets])
    per_hour = 3600 * imported.calibration.rate_per_s * imported.routes.per_street()
    axes.add_collection(LineCollection(lines, colors=_STREET, linewidths=0.8 + 0.5 * lanes, capstyle="round", zorder=1))
    used = np.flatnonzero(per_hour > 0)
    used = used[np.argsort(per_hour[used])]
    norm = LogNorm(max(per_hour[used].min(), 0.01 * per_hour.max()), per_hour.max())
    flow = LineCollection(
        [lines[i] for i in used], array=per_hour[used], cmap="YlGnBu", norm=norm,
        linewidths=0.6 + 2.4 * np.sqrt(per_hour[used] / per_hour.max()), capstyle="round", zorder=2,
    )  # fmt: skip
    axes.add_collection(flow)
    return flow


def _coverage(axes: "Axes", imported: ImportedMap) -> None:
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
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=8)


def _scale(axes: "Axes", width_m: float) -> None:
    """A bar of a round length, lower left."""
    length_m = max(metres for metres in (50, 100, 200, 500, 1000, 2000, 5000) if metres <= max(width_m / 4, 50))
    transform = axes.get_xaxis_transform()
    left = axes.dataLim.x0 if np.isfinite(axes.dataLim.x0) else 0.0
    axes.plot(
        [left, left + length_m], [0.02, 0.02], color=_DARK, lw=3, solid_capstyle="butt", transform=transform, zorder=7
    )
    axes.text(left + length_m / 2, 0.028, f"{length_m} m", ha="center", color=_DARK, transform=transform, zorder=7)
