"""The TOML tables of the streets and the vehicles: [roads], [mobility], [sumo] and [traffic]."""

import math
from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import Blocks, OneOf, Place, Point, Share, Table
from vefl_sim.experiment.kinds import MOBILITY


class RoadsTable(Table):
    """The street grid, with the gNB at its centre."""

    block_m: Annotated[float, Field(ge=20, le=10_000)] = 128.0
    """Side of a square block (downtown Raleigh: 420 ft)."""
    blocks: Blocks = 8
    """Blocks along each side of the grid, or [along x, along y] for a rectangle, whose streets may end within
    coverage."""
    exits: Literal["all", "outside"] = "all"
    """Streets by which vehicles enter and leave: all that lead out of the grid, or only those that end outside
    coverage, so that no trip begins or ends within coverage."""
    signals: Literal["fixed", "none"] = "fixed"
    """"fixed": traffic lights with a fixed cycle at every junction; "none": vehicles cross in the order of arrival."""
    green_s: Annotated[float, Field(ge=1, le=600)] = 20.0
    """Green time of a signal per direction; amber follows, for the time needed to stop from u_max, at least 3 s."""

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

    kind: Annotated[str, OneOf(MOBILITY)] = "idm"
    """"idm": the intelligent driver model on the grid; "playback": a recording; "sumo": SUMO on a map; or
    `module:Class`."""
    file: str = ""
    """"playback": a run directory or its mobility.parquet, or SUMO's floating car data as .xml, .xml.gz or .parquet, in
    metres and not in degrees. "sumo": a .sumocfg, or a map as .net.xml, .osm or .osm.xml, which may end in .gz.
    A relative path starts at the folder of the experiment file or, if it does not exist there, at the current
    directory."""
    origin_m: Point | None = None
    """Position of the gNB in the coordinates of the recording ("playback"; if not given, [0, 0]) or of the road net
    ("sumo"; if not given, its centre)."""
    origin_deg: Place | None = None
    """Position of the gNB as latitude and longitude ("sumo"), instead of `origin_m`."""
    start_s: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    """Time in the recording or in SUMO at which the run begins ("playback", "sumo"); if not given, the first time of
    the recording or configuration or, on a map, the time when the traffic has settled (`traffic.warm_start`)."""
    step_s: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Time between two computed positions of a vehicle; positions in between are interpolated."""
    max_speed_mps: Annotated[float, Field(ge=0.01, le=100)] = 20.12
    """u_max: desired speed of the driver model and the server's worst case for the sojourn bound."""
    max_accel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 1.5
    """ū₁, the largest acceleration of the driver model."""
    comfort_decel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 2.0
    """ū₂, the comfortable deceleration of the driver model."""
    headway_s: Annotated[float, Field(ge=0.01, le=60)] = 1.2
    """t_dst, the desired time headway."""
    min_gap_m: Annotated[float, Field(ge=0.01, le=100)] = 2.0
    """s_saf, the gap at standstill."""
    length_m: Annotated[float, Field(ge=0.5, le=50)] = 5.0
    """Length of a vehicle."""
    driver_spread: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    """Variation between drivers: ū₁, ū₂, t_dst and s_saf differ by up to this share up or down, desired speeds only
    down."""
    sojourn: Literal["axis", "radial"] = "axis"
    """Distance to the coverage circle for the sojourn bound: smallest along an axis (the paper), or radial."""


class SumoTable(Table):
    """Settings of SUMO (`mobility.kind = "sumo"`)."""

    client: Literal["libsumo", "traci"] = "libsumo"
    """SUMO runs within the simulator's process (libsumo). "traci", with which older versions ran it in a process of its
    own, means the same."""
    lane_limits: bool = True
    """Whether drivers obey the speed limits of lanes and slow down for turns; false: only u_max limits them, as on the
    built-in grid."""
    fringe_factor: Annotated[float, Field(ge=1, le=10_000)] = 10.0
    """How many times more trips begin and end at the edge of the map than elsewhere, per street."""


class TrafficTable(Table):
    """How many vehicles drive and where they go."""

    mean_in_coverage: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Target for the mean number of vehicles in coverage; sets the arrival rate. 35 if neither this nor
    `arrivals_per_s` is given."""
    arrivals_per_s: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Rate of the Poisson arrivals at the border, instead of `mean_in_coverage`."""
    warm_start: bool = True
    """Whether the run starts with vehicles on the streets."""
    cv_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the vehicles that are connected (CVs); the others only take part in the traffic."""
    through_share: Share = 0.0
    """Share of the vehicles that take a shortest route to another point on the border; the others turn at random."""
    leaving_weight: Annotated[float, Field(gt=0, le=1)] = 0.25
    """For vehicles that turn at random: the weight of a turn that leaves the grid against the same turn inside it."""
