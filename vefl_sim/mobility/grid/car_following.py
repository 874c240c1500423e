"""How a driver on the grid chooses its next speed: by IDM, limited to what is safe whatever other vehicles do.

IDM alone guarantees nothing at long time steps or before a junction. Two limits do; each demands that after this
step the vehicle can still stop before

- the vehicle ahead, even if that one brakes as hard as it can (EMERGENCY_DECEL_MPS2, as in SUMO);
- the last stop line up to which the way is clear, at STOP_DECEL_MPS2.

Either deceleration is raised to the strongest comfortable braking of any driver, where that is more.

Why vehicles never overlap: let S(u) be the distance in which a vehicle stops from speed u when it brakes by
b·dt in each step (`stopping_distance`). While x + S(u) ≤ x_ahead + S(u_ahead), front bumper against back bumper,
full braking preserves the inequality, because the vehicle ahead brakes by at most b·dt as well; and so does any
speed up to `safe_speed`, which uses u²/2b ≤ S(u) ≤ u²/2b + b·dt²/8. In ordinary driving neither limit is active
and the motion is that of IDM.
"""

from math import floor, sqrt
from typing import NamedTuple

import numpy as np

from vefl_sim.core.kernel import kernel
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.idm import SMALLEST_GAP_M, IdmParams

EMERGENCY_DECEL_MPS2 = 9.0
STOP_DECEL_MPS2 = 4.5


class Rules(NamedTuple):
    """Constants that are the same for all drivers."""

    dt_s: float
    length_m: float
    inside_m: float
    """Front position on an edge up to which the rear of the vehicle is still in the junction it came from."""
    place_m: float
    """Length of street that a vehicle occupies in a queue."""
    room_m: float
    """Position up to which the edge after a junction must be free before a vehicle enters the junction."""
    stop_decel_mps2: float
    emergency_decel_mps2: float

    @classmethod
    def of(cls, grid: StreetGrid, typical: IdmParams, spread: float, dt_s: float) -> "Rules":
        """The constants for a grid, with drivers that vary by `spread` around a typical one."""
        inside_m = grid.junction_m + typical.length_m
        stop_mps2 = max(STOP_DECEL_MPS2, typical.comfort_decel_mps2 * (1 + spread))
        emergency_mps2 = max(EMERGENCY_DECEL_MPS2, stop_mps2)
        gap_m = closest_m(typical, spread, emergency_mps2, dt_s)
        return cls(
            dt_s=dt_s,
            length_m=typical.length_m,
            inside_m=inside_m,
            place_m=typical.length_m + gap_m,
            room_m=inside_m + 2 * gap_m,  # twice, because IDM closes the last centimetres only asymptotically
            stop_decel_mps2=stop_mps2,
            emergency_decel_mps2=emergency_mps2,
        )


def closest_m(typical: IdmParams, spread: float, emergency_mps2: float, dt_s: float) -> float:
    """Largest gap at which a vehicle stops behind another: s_saf, or at long steps the gap where `safe_speed` is 0."""
    return max(typical.min_gap_m * (1 + spread), emergency_mps2 * dt_s**2 / 8)


@kernel
def idm_accel(driver, i, speed_mps, gap_m, leader_mps):
    """`idm.acceleration` in m/s² for driver i; an infinite gap means a free road."""
    comfort = 2.0 * sqrt(driver.max_accel_mps2[i] * driver.comfort_decel_mps2[i])
    dynamic = speed_mps * (driver.headway_s[i] + (speed_mps - leader_mps) / comfort)
    wanted_m = driver.min_gap_m[i] + max(0.0, dynamic)
    free = (speed_mps / driver.desired_speed_mps[i]) ** 4
    return driver.max_accel_mps2[i] * (1.0 - free - (wanted_m / max(gap_m, SMALLEST_GAP_M)) ** 2)


@kernel
def safe_speed(gap_m, speed_mps, leader_mps, decel_mps2, dt_s):
    """Highest speed after this step from which a vehicle can stop within the gap plus the leader's braking distance.

    Solves (u + u')·dt/2 + u'²/2b + b·dt²/8 = gap + u_leader²/2b for u'; 0 if there is no solution above 0.
    """
    reach = 2 * decel_mps2 * gap_m + leader_mps * leader_mps - decel_mps2 * dt_s * speed_mps
    return max(sqrt(max(reach, 0.0)) - decel_mps2 * dt_s / 2, 0.0)


@kernel
def safe_start_speed(gap_m, leader_mps, decel_mps2, dt_s):
    """Highest current speed from which a vehicle can stop: u²/2b + b·dt²/8 = gap + u_leader²/2b."""
    reach = 2 * decel_mps2 * gap_m + leader_mps * leader_mps - (decel_mps2 * dt_s / 2) ** 2
    return sqrt(max(reach, 0.0))


@kernel
def stopping_distance(speed_mps, decel_mps2, dt_s):
    """S(u): n whole steps of braking by b·dt, and a last step in which the remaining speed drops to 0."""
    loss_mps = decel_mps2 * dt_s
    steps = floor(speed_mps / loss_mps)
    return dt_s * (steps * speed_mps - loss_mps * steps**2 / 2 + (speed_mps - steps * loss_mps) / 2)


@kernel
def easy_speed(driver, i, gap_m, leader_mps):
    """Speed at which driver i can be placed behind another vehicle without having to brake hard.

    The highest u up to the desired speed that keeps the headway, u·t_dst ≤ gap − s_saf, and leaves room to
    slow down comfortably with the leader, u·t_dst + u²/2ū₂ ≤ gap − s_saf + u_leader²/2ū₂.
    """
    room_m = max(gap_m - driver.min_gap_m[i], 0.0)
    half = driver.comfort_decel_mps2[i] * driver.headway_s[i]
    slowing = sqrt(half**2 + leader_mps**2 + 2 * driver.comfort_decel_mps2[i] * room_m) - half
    return min(room_m / driver.headway_s[i], slowing, driver.desired_speed_mps[i])


@kernel
def start_speed(driver, i, gap_m, leader_mps, rules):
    """Speed at which driver i may be placed on a street behind another vehicle: comfortable and safe."""
    safe = safe_start_speed(gap_m, leader_mps, rules.emergency_decel_mps2, rules.dt_s)
    return min(easy_speed(driver, i, gap_m, leader_mps), safe)


@kernel
def stopping_speed(fleet, i, rules):
    """Highest speed after this step from which vehicle i can stop where its clear way (`limit_m`) ends."""
    way_m = fleet.limit_m[i] - fleet.position_m[i]
    return safe_speed(way_m, fleet.speed_mps[i], 0.0, rules.stop_decel_mps2, rules.dt_s)


@kernel
def ahead_in_lane(fleet, lanes, i):
    """Gap to the vehicle ahead in the same lane, and its speed."""
    leader = lanes.leader[i]
    return lanes.gap_m[i], (fleet.speed_mps[leader] if leader >= 0 else 0.0)


@kernel
def ahead_after_turn(fleet, lanes, ways, i):
    """Gap to the last vehicle on the next edge, and its speed; infinite if vehicle i is not cleared to go there."""
    if not fleet.cleared[i]:
        return np.inf, 0.0
    target = fleet.next_edge[i]
    last = lanes.last[target]
    gap_m = lanes.back_m[target] + (ways.block_m - fleet.position_m[i])
    return gap_m, (fleet.speed_mps[last] if last >= 0 else 0.0)


@kernel
def next_speed(fleet, lanes, ways, rules, i):
    """Speed of vehicle i at the end of this step."""
    driver, speed, dt_s, decel = fleet.driver, fleet.speed_mps[i], rules.dt_s, rules.emergency_decel_mps2
    near_m, near_mps = ahead_in_lane(fleet, lanes, i)
    turn_m, turn_mps = ahead_after_turn(fleet, lanes, ways, i)
    accel = min(idm_accel(driver, i, speed, near_m, near_mps), idm_accel(driver, i, speed, turn_m, turn_mps))
    wanted = min(speed + accel * dt_s, max(speed, driver.desired_speed_mps[i]))
    safe = min(safe_speed(near_m, speed, near_mps, decel, dt_s), safe_speed(turn_m, speed, turn_mps, decel, dt_s))
    return max(min(wanted, safe, stopping_speed(fleet, i, rules)), speed - decel * dt_s, 0.0)


@kernel
def ease(fleet, lanes, ways, rules):
    """Lower speeds to what the speeds of the vehicles ahead allow; return whether any had to be lowered."""
    allowed, lowered = np.empty(fleet.edge.size), False
    for i in range(allowed.size):
        near_m, near_mps = ahead_in_lane(fleet, lanes, i)
        turn_m, turn_mps = ahead_after_turn(fleet, lanes, ways, i)
        near = start_speed(fleet.driver, i, near_m, near_mps, rules)
        allowed[i] = min(fleet.speed_mps[i], near, start_speed(fleet.driver, i, turn_m, turn_mps, rules))
    for i in range(allowed.size):
        lowered |= allowed[i] < fleet.speed_mps[i] - 1e-9
        fleet.speed_mps[i] = allowed[i]
    return lowered
