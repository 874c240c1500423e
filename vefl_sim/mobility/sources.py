"""The built-in sources of traffic (`mobility.kind`): the keys that they use, and what these must satisfy.

The code of a source is slow to import and is loaded when the traffic starts.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import Kind, Unused
from vefl_sim.mobility.scene import Mobility

_MILLISECOND_NS = 1_000_000

# Groups of keys that several sources declare as unused
_GRID_KEYS = ("roads.block_m", "roads.blocks", "roads.exits", "roads.signals", "roads.green_s")
_DEMAND_KEYS = ("traffic.mean_in_coverage", "traffic.arrivals_per_s", "traffic.warm_start")
_ROUTE_KEYS = ("traffic.through_share", "traffic.leaving_weight")
_DRIVER_KEYS = (
    *("mobility.max_accel_mps2", "mobility.comfort_decel_mps2", "mobility.headway_s"),
    *("mobility.min_gap_m", "mobility.length_m"),
)
_SUMO_KEYS = ("sumo.client", "sumo.lane_limits", "sumo.fringe_factor")


@dataclass(frozen=True)
class MobilityKind(Kind):
    """A built-in source of traffic; `make(experiment, streams)` starts it and returns a Mobility."""

    drives_ahead: bool = False
    """Instead, `make(experiment, folder)` drives the whole traffic of a run before its first round, into a folder,
    unless it is there; and returns a function that plays it back."""
    kept: bool = False
    """Whether it is started and driven only once for a run, which keeps its scenes (`mobility/kept.py`)."""
    fault: Callable[[Path], str | None] | None = None
    """What is wrong with the traffic in the folder; None if it is complete and unchanged."""
    packages: tuple[str, ...] = ()
    """Packages whose versions can change the traffic."""
    file_digest: Callable[[str], str] | None = None
    """Digest of what `mobility.file` names; if not given, of that file."""
    no_cv_message: Callable[[Experiment], str] | None = None
    """What to correct if no CV comes into coverage; if not given, a run without CVs is accepted."""


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function or class of vefl_sim.mobility that is imported when it is first called."""
    return lambda *arguments: getattr(import_module(f"vefl_sim.mobility.{module}"), name)(*arguments)


def _unused_by_idm(e: Experiment) -> Iterator[Unused]:
    if e.roads.signals == "none":
        yield 'roads.signals = "none"', ("roads.green_s",)
    if e.roads.nearest_end_m >= e.radio.coverage_radius_m:
        yield "streets that all end outside coverage (roads.blocks)", ("roads.exits",)
    if e.traffic.through_share == 1:
        yield "traffic.through_share = 1", ("traffic.leaving_weight",)


def _contradictions_of_idm(e: Experiment) -> Iterator[str]:
    longest_m, needed_m = e.roads.block_m * max(e.roads.blocks_xy), 2 * e.radio.coverage_radius_m
    if longest_m < needed_m:
        yield (
            f"The grid of roads.blocks × roads.block_m = {longest_m:g} m does not cover 2 × radio.coverage_radius_m = "
            f"{needed_m:g} m: give it a side of at least {math.ceil(needed_m / e.roads.block_m)} blocks, or shrink the "
            "radius."
        )


IDM = MobilityKind(
    _later("grid.traffic", "IdmTraffic"),
    unused_keys=("mobility.file", "mobility.origin_m", "mobility.origin_deg", "mobility.start_s", *_SUMO_KEYS),
    unused_when=_unused_by_idm,
    contradictions=_contradictions_of_idm,
    kept=True,
)


def _contradictions_of_playback(e: Experiment) -> Iterator[str]:
    if not e.mobility.file:
        yield 'mobility.kind = "playback" needs mobility.file: name a run directory or a recording.'


def _no_cv(e: Experiment) -> str:
    return (
        f'mobility.file = "{e.mobility.file}": no CV comes within radio.coverage_radius_m = '
        f"{e.radio.coverage_radius_m:g} of the gNB in {to_s(e.duration_ns):g} s: give the position of the gNB in the "
        "coordinates of the file (mobility.origin_m), make the run longer, or start it later (mobility.start_s)."
    )


PLAYBACK = MobilityKind(
    _later("recorded.playback", "Playback"),
    unused_keys=(
        *(*_GRID_KEYS, *_DEMAND_KEYS, *_ROUTE_KEYS, *_DRIVER_KEYS, *_SUMO_KEYS),
        *("mobility.driver_spread", "mobility.origin_deg"),
    ),
    contradictions=_contradictions_of_playback,
    no_cv_message=_no_cv,
)


def is_sumo_configuration(experiment: Experiment) -> bool:
    """Whether `mobility.file` is a .sumocfg, which also defines the demand, and not only a map."""
    return experiment.mobility.file.lower().endswith(".sumocfg")


def _drive_sumo(experiment: Experiment, folder: Path) -> Callable[[], Mobility]:
    from vefl_sim.mobility.sumo.traffic import drive, driven_trajectory

    return partial(driven_trajectory, drive(experiment, folder), experiment)


def _unused_by_sumo(e: Experiment) -> Iterator[Unused]:
    if is_sumo_configuration(e):
        keys = (*_DEMAND_KEYS, *_DRIVER_KEYS, "sumo.lane_limits", "sumo.fringe_factor")
        yield f'mobility.file = "{e.mobility.file}", which sets it itself', keys


def _contradictions_of_sumo(e: Experiment) -> Iterator[str]:
    if not e.mobility.file:
        yield 'mobility.kind = "sumo" needs mobility.file: name a .sumocfg, a .net.xml or an .osm.'
    if e.mobility.origin_m is not None and e.mobility.origin_deg is not None:
        yield "mobility.origin_m and mobility.origin_deg both set the position of the gNB: keep one of them."
    for key, value_s in (("step_s", e.mobility.step_s), ("start_s", e.mobility.start_s or 0.0)):
        if to_ns(value_s) % _MILLISECOND_NS:
            yield f"mobility.{key} = {value_s:.10g} is not a whole number of milliseconds, as SUMO needs: round it."
    if e.mobility.start_s is not None and not e.traffic.warm_start:
        yield (
            "mobility.start_s lets the traffic settle before the run, but traffic.warm_start = false starts on empty "
            "streets: keep one of them."
        )


SUMO = MobilityKind(
    _drive_sumo,
    unused_keys=(*_GRID_KEYS, *_ROUTE_KEYS, "mobility.driver_spread"),
    unused_when=_unused_by_sumo,
    contradictions=_contradictions_of_sumo,
    drives_ahead=True,
    fault=_later("sumo.traffic", "fault"),
    packages=("eclipse-sumo", "libsumo"),
    file_digest=_later("sumo.inputs", "map_digest"),
    no_cv_message=_no_cv,
)
