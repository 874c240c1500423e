"""The TOML tables of the streets and of the vehicles on them: [roads], [mobility], [sumo] and [traffic]."""

import math
from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import (
    Blocks,
    Pair,
    PartName,
    Positive,
    Share,
    Table,
)


class RoadsTable(Table):
    """The street grid around the gNB, which stands in its middle."""

    block_m: Annotated[float, Field(ge=20, le=10_000)] = 128.0
    """Side of a square block (downtown Raleigh: 420 ft)."""
    blocks: Blocks = 8
    """Blocks along each side of the grid, or [along x, along y]: a rectangle, whose streets may end within coverage."""
    exits: Literal["all", "outside"] = "all"
    """Over which streets vehicles come in and leave: all that lead out of the grid, or only those that end outside
    coverage, so that no trip begins or ends within."""
    signals: Literal["fixed", "none"] = "fixed"
    """"fixed": traffic lights with a fixed cycle at every junction; "none": first come, first served."""
    green_s: Annotated[float, Field(ge=1, le=600)] = 20.0
    """Green of a signal, each way; amber follows, for as long as it takes to stop from u_max, at least 3 s."""

    @property
    def blocks_xy(self) -> tuple[int, int]:
        """Blocks along x and along y."""
        return (self.blocks, self.blocks) if isinstance(self.blocks, int) else self.blocks

    @property
    def nearest_end_m(self) -> float:
        """Distance from the gNB to the nearest end of a street that leads out of the grid."""
        sides = [self.blocks_xy, self.blocks_xy[::-1]]
        return min(self.block_m * math.hypot(along / 2 + 1, across % 2 / 2) for along, across in sides)


class MobilityTable(Table):
    """How vehicles move."""

    kind: Literal["idm", "playback", "sumo"] | PartName = "idm"
    """"idm": the intelligent driver model on the grid; "playback": a recording; "sumo": SUMO on a map; or
    `module:Class`."""
    file: str = ""
    """"playback": a run directory or its mobility.parquet, or SUMO's floating car data as .xml, .xml.gz or .parquet, in
    metres and not in degrees. "sumo": a .sumocfg, or a map as .net.xml, .osm or .osm.xml, which may end in .gz.
    It starts at the folder of the experiment's file, or, if there is no such file, where you are."""
    origin_m: Pair | None = None
    """Where the gNB stands in the coordinates of the recording ("playback"; if not given, [0, 0]) or of the net
    ("sumo"; if not given, its centre)."""
    origin_deg: Pair | None = None
    """The same as latitude and longitude ("sumo")."""
    start_s: float | None = None
    """Time in the recording or in SUMO at which the run begins ("playback", "sumo"); if not given, the recording's or
    configuration's first, or, on a map, when the traffic has settled (`traffic.warm_start`)."""
    step_s: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Time between two positions; in between they are interpolated."""
    max_speed_mps: Annotated[float, Field(ge=0.01, le=100)] = 20.12
    """u_max: desired speed of the driver model and the server's worst case for the sojourn bound."""
    max_accel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 1.5
    """ū₁ of the driver model."""
    comfort_decel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 2.0
    """ū₂ of the driver model."""
    headway_s: Annotated[float, Field(ge=0.01, le=60)] = 1.2
    """t_dst, the desired time headway."""
    min_gap_m: Annotated[float, Field(ge=0.01, le=100)] = 2.0
    """s_saf, the gap at standstill."""
    length_m: Annotated[float, Field(ge=0.5, le=50)] = 5.0
    """Length of a vehicle."""
    driver_spread: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    """How different drivers are: ū₁, ū₂, t_dst, s_saf are off by up to this share either way, desired speeds below."""
    sojourn: Literal["axis", "radial"] = "axis"
    """Sojourn bound by the smallest axis distance to the circle (the paper) or by the radial distance."""


class SumoTable(Table):
    """How SUMO is run (`mobility.kind = "sumo"`)."""

    client: Literal["libsumo", "traci"] = "libsumo"
    """"libsumo": within our process; "traci": as a process of its own. It changes no result and no run's name."""
    lane_limits: bool = True
    """Drivers keep to the speed limits and slow down for turns; false: only to u_max, as on our grid."""
    fringe_factor: Annotated[float, Field(ge=1, le=10_000)] = 10.0
    """How much more trips begin and end where the map ends than elsewhere, per street."""


class TrafficTable(Table):
    """How many vehicles there are."""

    mean_in_coverage: Positive | None = None
    """Target for the mean number of vehicles in coverage; sets the arrival rate. 35 if neither is given."""
    arrivals_per_s: Positive | None = None
    """Rate of the Poisson arrivals at the border, instead of `mean_in_coverage`."""
    warm_start: bool = True
    """Start with the streets populated."""
    cv_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the vehicles that are connected (CVs); the others only take part in the traffic."""
    through_share: Share = 0.0
    """Share of the vehicles that pass to another place on the border by a shortest way; the others wander."""
    leaving_weight: Annotated[float, Field(gt=0, le=1)] = 0.25
    """How readily who wanders leaves at the border: the weight of a way out against the same turn inside."""
