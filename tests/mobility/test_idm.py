import math

import numpy as np

from vefl_sim.mobility.idm import IdmParams, follow

DRIVER = IdmParams(
    max_accel_mps2=1.5,
    comfort_decel_mps2=2.0,
    headway_s=1.2,
    min_gap_m=2.0,
    desired_speed_mps=20.12,
    length_m=5.0,
)


def follow_literally(leader, start, p, dt):
    """`follow` written as in the equations of the paper, one vehicle and one step at a time."""
    ahead = list(zip(*leader, strict=True))
    platoon = []
    for x0, u0 in zip(*start, strict=True):
        track = [(float(x0), float(u0))]
        for x_ahead, u_ahead in ahead[:-1]:
            x, u = track[-1]
            wanted = u * p.headway_s + u * (u - u_ahead) / (2 * math.sqrt(p.max_accel_mps2 * p.comfort_decel_mps2))
            ratio = (p.min_gap_m + max(0.0, wanted)) / (x_ahead - p.length_m - x)
            accel = p.max_accel_mps2 * (1 - (u / p.desired_speed_mps) ** 4) - p.max_accel_mps2 * ratio**2
            u_next = max(0.0, u + accel * dt)
            track.append((x + (u + u_next) / 2 * dt, u_next))
        platoon.append(track)
        ahead = track
    both = np.array(platoon)
    return both[:, :, 0].T, both[:, :, 1].T


def stop_and_go(times=400, dt=0.1):
    speed = 10 + 8 * np.sin(np.arange(times) * dt / 5)
    return 300 + np.concatenate(([0], np.cumsum((speed[1:] + speed[:-1]) / 2 * dt))), speed


def test_follow_is_its_literal_twin():
    leader = stop_and_go()
    start = np.array([280.0, 240.0, 233.5]), np.array([9.0, 15.0, 0.0])
    fast = follow(leader, start, DRIVER, 0.1)
    slow = follow_literally(leader, start, DRIVER, 0.1)
    np.testing.assert_allclose(fast[0], slow[0], atol=1e-9)
    np.testing.assert_allclose(fast[1], slow[1], atol=1e-9)


def test_nobody_overshoots_the_desired_speed_in_a_long_step_or_reverses():
    slow = IdmParams(1.5, 2.0, 1.2, 2.0, desired_speed_mps=0.45, length_m=5.0)
    leader = np.array([900.0, 900.0]), np.zeros(2)
    _, speeds = follow(leader, (np.array([800.0, 794.9]), np.array([0.0, 0.4])), slow, 1.0)
    assert speeds[1].tolist() == [0.45, 0.0]
