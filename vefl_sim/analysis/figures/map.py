"""Draws an imported map: streets by expected traffic, traffic lights, the gNB and its coverage."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import LogFormatter

from vefl_sim.analysis.files import picture, write_file
from vefl_sim.mobility.sumo.map_import import RADIUS_M, ImportedMap

_DARK, _RED, _AMBER, _EMPTY = "#22303c", "#c0392b", "#e0a100", "#b9b4ad"
_FLOW = LinearSegmentedColormap.from_list("traffic", ("#7fb8dd", "#3a7fc0", "#12519b", "#0a1f52"))
"""Even its lightest colour is visible on white."""
_WIDTH_IN = 9.0


def draw_map(imported: ImportedMap, path: Path) -> None:
    """Write the picture."""
    net = imported.net
    width, height = net.box_m[1] - net.box_m[0]
    tall = min(max(0.87 * _WIDTH_IN * height / width, 4.0), 12.0)  # leaves space for the colour bar next to the map
    with rc_context({"font.size": 9}):
        figure = Figure(figsize=(_WIDTH_IN, tall + 0.7), layout="constrained")
        axes = figure.subplots()
        flow = _draw_streets(axes, imported)
        bar = figure.colorbar(flow, ax=axes, label="vehicles per hour, each direction", format="{x:g}", aspect=30)
        bar.ax.yaxis.set_minor_formatter(LogFormatter())  # plain numbers at few ticks
        _draw_coverage(axes, imported)
        axes.set(aspect="equal", xlabel="m", ylabel="m")
        axes.margins(0.02)
        axes.spines[:].set_visible(False)
        axes.set_title(
            f"{imported.source.name}: {len(net.junctions_m)} junctions, {len(net.signals_m)} with traffic lights, "
            f"{net.length_m / 1e3:.0f} km of streets",
            loc="left", fontsize=11, color=_DARK,
        )  # fmt: skip
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        write_file(path, picture(figure, ".png"))


def _draw_streets(axes: Axes, imported: ImportedMap) -> Any:
    """Draw streets without traffic in grey and the others coloured by expected traffic, the busiest on top."""
    lines = [imported.net.joined_m(street) for street in imported.net.streets]
    per_hour = 3600 * imported.calibration.rate_per_s * imported.routes.per_street()
    order = np.argsort(per_hour, kind="stable")
    empty, used = order[per_hour[order] == 0], order[per_hour[order] > 0]
    if empty.size:
        label = "streets without traffic"
        axes.add_collection(LineCollection([lines[i] for i in empty], colors=_EMPTY, lw=1.2, zorder=1, label=label))
    own, most = per_hour[used], float(per_hour.max())
    flow = LineCollection(
        [lines[i] for i in used], array=own, cmap=_FLOW, norm=LogNorm(max(own[0], 0.01 * most) / 1.001, most),
        linewidths=1.0 + 2.2 * np.sqrt(own / most), capstyle="round", joinstyle="round", zorder=2,
    )  # fmt: skip
    axes.add_collection(flow)
    return flow


def _draw_coverage(axes: Axes, imported: ImportedMap) -> None:
    """Draw the traffic lights, the gNB and its coverage."""
    signals = imported.net.signals_m
    edge: dict[str, Any] = {"edgecolors": "white", "lw": 0.5}
    if len(signals):
        axes.scatter(signals[:, 0], signals[:, 1], s=14, color=_AMBER, zorder=4, label="traffic lights", **edge)
    label = f"coverage, {imported.vehicles:g} vehicles on average"
    axes.add_patch(Circle(imported.gnb_m, RADIUS_M, facecolor=_RED, alpha=0.06, zorder=0))
    axes.add_patch(Circle(imported.gnb_m, RADIUS_M, fill=False, color=_RED, lw=1.4, ls="--", zorder=5, label=label))
    axes.scatter(*imported.gnb_m, marker="^", s=90, color=_RED, zorder=6, label="gNB", **edge)
