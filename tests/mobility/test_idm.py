import math

import numpy as np
import pytest

from vefl_sim.mobility.idm import IdmParams, acceleration, follow, speed_after_step

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


def accel(speed, gap, leader):
    return float(acceleration(np.array([speed]), np.array([gap]), np.array([leader]), DRIVER)[0])


LEADER = ((0, 15), (10, 15), (16, 3), (26, 3), (38, 15), (58, 15), (61.75, 0), (80, 0), (92, 18), (160, 18))
"""(time in s, speed in m/s): the leader's speed is linear in between."""
SUMO = (
    (20.1, 1, 704.2961, 3.0485),
    (20.1, 5, 644.4066, 9.8657),
    (20.1, 9, 538.2768, 14.8172),
    (40.1, 1, 841.6082, 14.5177),
    (40.1, 5, 745.3679, 9.1291),
    (40.1, 9, 683.1178, 4.7005),
    (60.1, 1, 1140.1664, 11.3566),
    (60.1, 5, 1024.4644, 15.2262),
    (60.1, 9, 905.9672, 15.0212),
    (80.1, 1, 1161.6664, 0.0),
    (80.1, 5, 1133.8037, 0.0),
    (80.1, 9, 1105.9235, 0.0313),
    (100.1, 1, 1372.1393, 18.111),
    (100.1, 5, 1226.8916, 13.7438),
    (100.1, 9, 1136.5954, 7.3162),
    (120.1, 1, 1735.9953, 18.1224),
    (120.1, 5, 1563.1035, 17.689),
    (120.1, 9, 1415.4724, 16.7084),
    (140.1, 1, 2097.4437, 18.0378),
    (140.1, 5, 1919.8527, 17.9367),
    (140.1, 9, 1757.7563, 17.4011),
)
"""(time in s, vehicle, position in m, speed in m/s) of a platoon behind that leader in SUMO 1.28 (IDM, ballistic)."""


def test_agrees_with_sumo():
    """Ten vehicles start at 15 m/s in equilibrium, the leader at 500 m; SUMO's first step is at 0.1 s."""
    dt, first_s, steps = 0.1, 0.1, round((SUMO[-1][0] - 0.1) / 0.1)
    lead = np.interp(first_s + dt * np.arange(steps + 1), *np.array(LEADER).T)
    front = 500.0 + np.concatenate(([0], np.cumsum((lead[1:] + lead[:-1]) / 2 * dt)))
    spacing = 24.058437670306034 + DRIVER.length_m
    start = front[0] - spacing * np.arange(1, 10), np.full(9, 15.0)
    positions, speeds = follow((front, lead), start, DRIVER, dt)
    for time_s, vehicle, position_m, speed_mps in SUMO:
        step = round((time_s - first_s) / dt)
        assert positions[step, vehicle - 1] == pytest.approx(position_m, abs=1e-3)
        assert speeds[step, vehicle - 1] == pytest.approx(speed_mps, abs=1e-3)


def test_follow_is_its_literal_twin():
    leader = stop_and_go()
    start = np.array([280.0, 240.0, 233.5]), np.array([9.0, 15.0, 0.0])
    fast = follow(leader, start, DRIVER, 0.1)
    slow = follow_literally(leader, start, DRIVER, 0.1)
    np.testing.assert_allclose(fast[0], slow[0], atol=1e-9)
    np.testing.assert_allclose(fast[1], slow[1], atol=1e-9)


def test_free_road():
    assert accel(0.0, np.inf, 0.0) == 1.5
    assert accel(20.12, np.inf, 0.0) == pytest.approx(0, abs=1e-12)


def test_equilibrium_gap_keeps_the_speed():
    gap = (2 + 15 * 1.2) / math.sqrt(1 - (15 / 20.12) ** 4)
    assert gap == pytest.approx(24.058437670306034)  # SUMO's figure for the reference platoon
    assert accel(15.0, gap, 15.0) == pytest.approx(0, abs=1e-12)


def test_a_much_faster_leader_does_not_push():
    # s* is clipped to s_saf = 2 m; unclipped it would be −28 m, which brakes by 10 m/s².
    assert accel(5.0, 10.0, 30.0) == pytest.approx(1.5 * (1 - (5 / 20.12) ** 4 - 0.04))


def test_the_desired_speed_is_not_overshot_in_a_long_step():
    slow = IdmParams(1.5, 2.0, 1.2, 2.0, desired_speed_mps=0.45, length_m=5.0)
    assert speed_after_step(np.array([0.0]), np.array([1.5]), slow, 1.0)[0] == 0.45


def test_nobody_reverses():
    assert speed_after_step(np.array([1.0]), np.array([-9.0]), DRIVER, 1.0)[0] == 0.0
