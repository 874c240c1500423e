"""How a driver in the streets chooses its next speed: IDM, within what is safe whatever the others do.

IDM alone keeps no promises at long time steps or before a junction. Two limits do, both of the form "after
this step I can still stop before that":

- the vehicle ahead, should it brake with all it has (EMERGENCY_DECEL_MPS2, as in SUMO);
- the last stop line up to which the way is clear, at STOP_DECEL_MPS2.

Why nobody ever overlaps: let S(u) be the distance in which a vehicle stops from speed u when it brakes by
b·dt in each step. While x + S(u) ≤ x_ahead + S(u_ahead), front bumper against back bumper, braking fully
keeps it so, because the one ahead brakes by at most b·dt as well; and so does any speed up to `safe_speed`,
which uses u²/2b ≤ S(u) ≤ u²/2b + b·dt²/8. In ordinary driving both limits are far away and the motion is
IDM's.
"""

import numpy as np

from vefl_sim.experiment import Mobility
from vefl_sim.mobility.arrays import BoolArray, FloatArray
from vefl_sim.mobility.fleet import Fleet
from vefl_sim.mobility.idm import IdmParams, acceleration, next_speed
from vefl_sim.mobility.lanes import Lanes
from vefl_sim.mobility.roads import NONE, StreetGrid

EMERGENCY_DECEL_MPS2 = 9.0
STOP_DECEL_MPS2 = 4.5


def driver(mobility: Mobility) -> IdmParams:
    """The driver of an experiment."""
    return IdmParams(
        max_accel_mps2=mobility.max_accel_mps2,
        comfort_decel_mps2=mobility.comfort_decel_mps2,
        headway_s=mobility.headway_s,
        min_gap_m=mobility.min_gap_m,
        desired_speed_mps=mobility.max_speed_mps,
        length_m=mobility.length_m,
    )


def safe_speed(
    gap_m: FloatArray, speed_mps: FloatArray, leader_mps: FloatArray | float, decel_mps2: float, dt_s: float
) -> FloatArray:
    """Highest speed after this step from which one can stop within the gap and the leader's braking distance.

    Solves (u + u')·dt/2 + u'²/2b + b·dt²/8 = gap + u_leader²/2b for u'; 0 where even that is too fast.
    """
    reach = (2 * decel_mps2) * gap_m + leader_mps * leader_mps - (decel_mps2 * dt_s) * speed_mps
    return np.maximum(np.sqrt(np.maximum(reach, 0.0)) - decel_mps2 * dt_s / 2, 0.0)


def safe_start_speed(gap_m: FloatArray, leader_mps: FloatArray | float, decel_mps2: float, dt_s: float) -> FloatArray:
    """Highest speed now from which one can stop: u²/2b + b·dt²/8 = gap + u_leader²/2b."""
    reach = (2 * decel_mps2) * gap_m + leader_mps * leader_mps - (decel_mps2 * dt_s / 2) ** 2
    return np.sqrt(np.maximum(reach, 0.0))


def easy_speed(gap_m: FloatArray, leader_mps: FloatArray, params: IdmParams) -> FloatArray:
    """Speed at which a vehicle can be put behind another without having to brake hard.

    The highest u up to the desired speed that keeps the headway, u·t_dst ≤ gap − s_saf, and leaves room to
    slow down comfortably with the leader, u·t_dst + u²/2ū₂ ≤ gap − s_saf + u_leader²/2ū₂.
    """
    room_m = np.maximum(gap_m - params.min_gap_m, 0.0)
    half = params.comfort_decel_mps2 * params.headway_s
    slowing = np.sqrt(half**2 + leader_mps**2 + 2 * params.comfort_decel_mps2 * room_m) - half
    return np.minimum(np.minimum(room_m / params.headway_s, slowing), params.desired_speed_mps)


class Driving:
    """The driver model on a grid, with its step."""

    def __init__(self, grid: StreetGrid, params: IdmParams, dt_s: float) -> None:
        self.grid, self.params, self.dt_s = grid, params, dt_s
        self.stop_decel_mps2 = max(STOP_DECEL_MPS2, params.comfort_decel_mps2)
        self.emergency_decel_mps2 = max(EMERGENCY_DECEL_MPS2, self.stop_decel_mps2)

    def next_speeds(self, fleet: Fleet, lanes: Lanes) -> FloatArray:
        """Speed of everybody at the end of this step."""
        speed, decel, dt_s = fleet.speed_mps, self.emergency_decel_mps2, self.dt_s
        gap_m, leader_mps = self.ahead(fleet, lanes)
        accel = np.minimum(*acceleration(speed, gap_m, leader_mps, self.params))
        wanted = next_speed(speed, accel, self.params, dt_s)
        safe = np.minimum(*safe_speed(gap_m, speed, leader_mps, decel, dt_s))
        limited = np.minimum(np.minimum(wanted, safe), self.stopping_speed(fleet))
        return np.maximum(limited, speed - decel * dt_s)

    def ahead(self, fleet: Fleet, lanes: Lanes) -> tuple[FloatArray, FloatArray]:
        """Gaps and speeds of shape (2, vehicles): ahead in the lane, and last on the edge to turn into.

        The second counts only for those who are cleared to go there. Without anybody the gap is infinite.
        """
        gap_m, leader_mps = np.empty((2, 2, len(fleet)))
        last, back_m = lanes.last_on(np.where(fleet.cleared, fleet.next_edge, NONE))
        gap_m[0], leader_mps[0] = lanes.gap_m, fleet.speed_mps[lanes.leader]
        gap_m[1], leader_mps[1] = back_m + (self.grid.block_m - fleet.position_m), fleet.speed_mps[last]
        return gap_m, leader_mps

    def stopping_speed(self, fleet: Fleet) -> FloatArray:
        """Highest speed after this step from which one can stop where the clear way ends."""
        way_m = fleet.limit_m - fleet.position_m
        return safe_speed(way_m, fleet.speed_mps, 0.0, self.stop_decel_mps2, self.dt_s)

    def must_ask(self, fleet: Fleet) -> BoolArray:
        """Who would have to hold back in this step for the stop line ahead."""
        fastest = fleet.speed_mps + self.params.max_accel_mps2 * self.dt_s
        held_back = self.stopping_speed(fleet) < np.minimum(fastest, self.params.desired_speed_mps)
        return held_back & ~fleet.cleared
