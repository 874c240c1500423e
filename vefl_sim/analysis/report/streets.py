"""The streets of a run as lines, relative to the gNB: of the grid, of SUMO's network, or where vehicles drove."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.analysis.report.source import Source
from vefl_sim.analysis.report.tracks import UNIT_M, Track
from vefl_sim.core.arrays import Floats
from vefl_sim.core.errors import VeflError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.identity import Identity, require_same

_MAX_LINES = 20_000
_NETS = (".net.xml", ".net.xml.gz")


def streets_of(source: Source, tracks: Sequence[Track]) -> dict[str, Any]:
    """Lines in decimetres, each x, y, x, y, …, and `kind`: "grid", "net" or "driven" (where vehicles drove)."""
    experiment = source.experiment
    if experiment.mobility.kind == "idm":
        return {"kind": "grid", "lines": _embedded(_grid_lines(experiment))}
    if experiment.mobility.kind == "sumo" and (lines := _net_lines(source)):
        return {"kind": "net", "lines": _embedded(lines)}
    return {"kind": "driven", "lines": [track.points[:, 1:].ravel().tolist() for track in tracks[:_MAX_LINES]]}


def _embedded(lines: Sequence[Floats]) -> list[list[int]]:
    return [np.rint(line / UNIT_M).astype(int).ravel().tolist() for line in lines[:_MAX_LINES]]


def _grid_lines(experiment: Experiment) -> list[Floats]:
    """The streets of the grid; those that end outside lead one block further, if vehicles may use them there."""
    roads, radius_m = experiment.roads, experiment.radio.coverage_radius_m
    closed_m = radius_m if roads.exits == "outside" else 0.0
    lines = []
    for axis, (across, along) in enumerate((roads.blocks_xy[::-1], roads.blocks_xy)):
        half_m = along * roads.block_m / 2
        for place in np.arange(across + 1) * roads.block_m - across * roads.block_m / 2:
            end_m = half_m + roads.block_m if np.hypot(half_m + roads.block_m, place) >= closed_m else half_m
            line = np.array([[-end_m, place], [end_m, place]])
            lines.append(line[:, ::-1] if axis else line)
    return lines


def _net_lines(source: Source) -> list[Floats]:
    """The streets of SUMO's network around the gNB; empty if it is not at hand, or another one than that of the run."""
    from vefl_sim.mobility.sumo.inputs import gnb_m
    from vefl_sim.mobility.sumo.net import read_net

    experiment = source.experiment
    try:
        path = _net_path(source)
        if path is None:
            return []
        net = read_net(path, str(path))
        origin_m, reach_m = np.array(gnb_m(experiment, net)), 2.0 * experiment.radio.coverage_radius_m
        lines = [net.joined_m(street) - origin_m for street in net.streets]
        return [line for line in lines if (np.abs(line) <= reach_m).all(axis=1).any()]
    except (VeflError, OSError, ValueError, ImportError):
        return []


def _net_path(source: Source) -> Path | None:
    """The network in the run directory or, if it is provably that of the run, the file that `mobility.file` names.

    A run may come from a stranger, and must not make us read files that he only guesses; the digest of the
    configuration covers the content of the file.
    """
    own = source.run.path / "traffic" / "map.net.xml.gz"
    if own.is_file():
        return own
    named = Path(source.experiment.mobility.file)
    if not str(named).endswith(_NETS) or not named.is_file():
        return None
    parts = source.versions.get("parts", {})
    require_same(source.run.path, Identity.recorded(source.experiment, parts))
    return named


def bounds_of(lines: Sequence[Sequence[int]], radius_m: float) -> list[float]:
    """Left, lower, right and upper border of the map in m: the streets near the circle, and all of the circle."""
    points_m = np.array([place for line in lines for place in line], float).reshape(-1, 2) * UNIT_M
    near_m = points_m[(np.abs(points_m) <= 1.35 * radius_m).all(axis=1)]
    circle_m = np.array([[-radius_m, -radius_m], [radius_m, radius_m]])
    shown_m = np.vstack([circle_m, near_m])
    return [round(side, 1) for side in (*shown_m.min(axis=0).tolist(), *shown_m.max(axis=0).tolist())]
