import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mobility.grid.makers import drivers
from vefl_sim.mobility.grid.car_following import easy_speed, idm_accel, safe_speed, safe_start_speed, stopping_distance
from vefl_sim.mobility.idm import IdmParams, acceleration

DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 20.0, 5.0)
STEPS = st.sampled_from([0.05, 0.1, 0.5, 1.0])
SPEEDS = st.floats(0, 30)
B = 9.0


def brake(x, u, dt):
    """One step of full braking."""
    slower = max(0.0, u - B * dt)
    return x + (u + slower) / 2 * dt, slower


def stopping_point(x, u, dt):
    while u > 0:
        x, u = brake(x, u, dt)
    return x


@given(dt=STEPS, speed=SPEEDS, gap=st.floats(0, 200), leader=SPEEDS)
def test_after_a_step_at_the_safe_speed_one_can_still_stop_behind_a_braking_leader(dt, speed, gap, leader):
    chosen = safe_speed(gap, speed, leader, B, dt)
    if chosen > 0:
        x, u = (speed + chosen) / 2 * dt, chosen
        assert stopping_point(x, u, dt) <= stopping_point(gap, leader, dt) + 1e-9


@given(dt=STEPS, gap=st.floats(0, 200), leader=SPEEDS, data=st.data())
def test_never_a_collision_whatever_the_leader_does(dt, gap, leader, data):
    """With any leader that brakes by at most B, and a follower that always drives as fast as allowed."""
    x, u, back, v = 0.0, safe_start_speed(gap, leader, B, dt), gap, leader
    u = min(u, 40.0)
    for change in data.draw(st.lists(st.floats(-B, 5), min_size=30, max_size=30)):
        safe = safe_speed(back - x, u, v, B, dt)
        faster = max(min(u + 5 * dt, safe, 40.0), u - B * dt, 0.0)
        ahead = max(0.0, v + change * dt)
        x, u, back, v = x + (u + faster) / 2 * dt, faster, back + (v + ahead) / 2 * dt, ahead
        assert x <= back + 1e-9


@given(gap=st.floats(2, 500), leader=st.floats(0, 20))
def test_easy_speed_is_the_highest_that_keeps_headway_and_room_to_slow_down(gap, leader):
    easy = easy_speed(drivers(DRIVER), 0, gap, leader)
    headway = gap - 2 - easy * 1.2
    slack = min(headway, headway + (leader**2 - easy**2) / 4, 20.0 - easy)
    assert slack == pytest.approx(0, abs=1e-6)


@given(dt=STEPS, speed=SPEEDS)
def test_stopping_distance_by_braking_step_by_step(dt, speed):
    assert stopping_distance(speed, B, dt) == pytest.approx(stopping_point(0.0, speed, dt), abs=1e-9)
    assert speed**2 / (2 * B) - 1e-9 <= stopping_distance(speed, B, dt) <= speed**2 / (2 * B) + B * dt**2 / 8 + 1e-9


@given(speed=SPEEDS, gap=st.floats(1e-4, 500) | st.just(math.inf), leader=SPEEDS)
def test_the_compiled_driver_model_is_idm(speed, gap, leader):
    assert idm_accel(drivers(DRIVER), 0, speed, gap, leader) == pytest.approx(
        float(acceleration(speed, gap, leader, DRIVER)), rel=1e-12, abs=1e-12
    )
