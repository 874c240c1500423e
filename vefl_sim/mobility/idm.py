"""The intelligent driver model: how a driver reacts to the vehicle ahead (paper eqs. idmAcce, idmDynDist).

    u̇ = ū₁·(1 − (u/u_max)⁴ − (s*/Δd)²),    s* = s_saf + max(0, u·t_dst + u·Δu/(2·√(ū₁·ū₂)))

Δd is the gap from the front bumper to the back bumper ahead, Δu = u − (speed of the vehicle ahead). The
max(0, ·) is SUMO's, not the paper's: without it a follower is pushed away by a leader that is much faster.
"""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats

Motion = tuple[Floats, Floats]
"""Positions of front bumpers in m, and speeds in m/s."""

SMALLEST_GAP_M = 1e-3  # lower bound of the gap in the formula, which would be infinite bumper to bumper


@dataclass(frozen=True)
class IdmParams:
    """Parameters of a driver and its vehicle, with the paper's symbols in brackets."""

    max_accel_mps2: float
    """(ū₁) Acceleration from standstill on a free road."""
    comfort_decel_mps2: float
    """(ū₂) Comfortable deceleration; in an emergency a driver brakes harder."""
    headway_s: float
    """(t_dst) Time headway to the vehicle ahead."""
    min_gap_m: float
    """(s_saf) Gap to the vehicle ahead at standstill."""
    desired_speed_mps: float
    """(u_max) Speed on a free road, which the driver never exceeds."""
    length_m: float
    """Length of the vehicle, from front bumper to back bumper."""


def acceleration(speed_mps: Floats, gap_m: Floats, leader_mps: Floats, params: IdmParams) -> Floats:
    """The IDM acceleration u̇ in m/s², for arrays that broadcast; an infinite gap means a free road."""
    comfort = 2.0 * (params.max_accel_mps2 * params.comfort_decel_mps2) ** 0.5
    dynamic = speed_mps * (params.headway_s + (speed_mps - leader_mps) / comfort)
    wanted_m = params.min_gap_m + np.maximum(0.0, dynamic)
    free = np.square(np.square(speed_mps / params.desired_speed_mps))
    interaction = np.square(wanted_m / np.maximum(gap_m, SMALLEST_GAP_M))
    accel_mps2: Floats = params.max_accel_mps2 * (1.0 - free - interaction)
    return accel_mps2


def follow(leader: Motion, start: Motion, params: IdmParams, dt_s: float) -> Motion:
    """Simulate a platoon that follows a leader with a prescribed motion; steps are ballistic, as in SUMO.

    leader: positions and speeds of the leader, each of shape (times,), with samples dt_s apart.
    start: positions and speeds of the followers, each of shape (followers,), the one
        next to the leader first.
    Returns positions and speeds, each of shape (times, followers); the first row is the start.
    All followers react to the state at the beginning of a step, as in SUMO.
    """
    times, followers = len(leader[0]), len(start[0])
    # Column 0 is the leader, so that "the vehicle ahead" is the column to the left.
    position, speed = np.empty((2, times, followers + 1))
    position[:, 0], speed[:, 0] = leader
    position[0, 1:], speed[0, 1:] = start
    for t in range(times - 1):
        gap = position[t, :-1] - params.length_m - position[t, 1:]
        accel = acceleration(speed[t, 1:], gap, speed[t, :-1], params)
        limit = np.maximum(speed[t, 1:], params.desired_speed_mps)  # nobody accelerates past it, or reverses
        speed[t + 1, 1:] = np.maximum(np.minimum(speed[t, 1:] + accel * dt_s, limit), 0.0)
        position[t + 1, 1:] = position[t, 1:] + 0.5 * (speed[t, 1:] + speed[t + 1, 1:]) * dt_s
    return position[:, 1:], speed[:, 1:]
