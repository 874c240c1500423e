import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, from_tables
from vefl_sim.gym import SlotEnv

THREE = from_tables(EXPERIMENT | {"rat": {}, "trace": {}})
FADING = from_tables(
    EXPERIMENT | {"rat": {}, "trace": {}, "radio": EXPERIMENT["radio"] | {"fading": "rayleigh", "prbs": 4}}
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("action", ["owners", "levels"])
def test_gymnasium_finds_nothing_to_complain_about(action):
    check_env(SlotEnv(THREE, action=action, max_cvs=4), skip_render_check=True)


def test_the_example_worked_out_by_hand():
    """With full power on one pRB each, an update takes twelve slots of 2959.9 bits (tests/protocol/test_golden.py).

    CV 3, whose update takes sixteen slots of 2141.3 bits there, does not leave in this environment.
    """
    env = SlotEnv(THREE, action="levels", levels=1, max_cvs=3)
    seen, _ = env.reset(seed=1)
    over = False
    while not over:
        scheduled = np.flatnonzero(seen["mask"]) + 1
        owners = np.resize(scheduled, 2) * ([1, 1] if len(scheduled) == 2 else [1, 0])  # one pRB each
        seen, _, terminated, truncated, _ = env.step(np.array([*owners, 1, 1]))
        over = terminated or truncated
    assert env._state.queues["slots"].tolist() == [12, 12, 16]
    assert terminated
    assert not truncated


@pytest.mark.parametrize("action", ["owners", "levels"])
def test_bits_and_powers_of_a_literal_twin(action):
    """Every slot is computed again from Shannon's formula, with the powers that were sent."""
    env = SlotEnv(FADING, action=action, max_cvs=3, reward={"bits": 1.0, "joules": 1e6})
    env.action_space.seed(1)
    env.reset(seed=1)
    payload, over, arrived = env._payload, False, 0.0
    while not over:
        action_taken = env.action_space.sample()
        before, slot, order = env._state.queues["bits_left"].copy(), env._slot, env._order[: env._scheduled].copy()
        _, reward, terminated, truncated, info = env.step(action_taken)
        owners, watts = action_taken[:4] - 1, env._watts.copy()
        watts_of = np.array([watts[owners == v].sum() if v in order else 0.0 for v in range(3)])
        assert (watts_of <= 0.2 * (1 + 1e-9)).all()
        gain = slot.fading * slot.snr_per_watt[:, None]
        capacity = [
            sum(360e3 * 13 / 14 * np.log2(1 + watts[z] * gain[v, z]) for z in range(4) if owners[z] == v and v in order)
            for v in range(3)
        ]
        sent = before - env._state.queues["bits_left"]
        if action == "levels":
            assert sent == pytest.approx(np.minimum(before, np.array(capacity) * 0.5e-3), rel=1e-9, abs=1e-5)
        assert (sent <= np.array(capacity) * 0.5e-3 * (1 + 1e-9) + 1e-5).all()
        assert reward == pytest.approx(sent.sum() + 1e6 * watts_of.sum() * 0.5e-3)
        assert info["cuts"] == sum(v >= 0 and v not in order for v in owners)
        arrived += sent.sum()
        over = terminated or truncated
    assert arrived == pytest.approx(env._state.queues["bits_drained"].sum())
    assert arrived > payload


def test_the_reward_of_the_paper():
    """−U = Σ r·(C + κQ) − C·β·ΣP over the square of the payload, for the slots of an episode."""
    env = SlotEnv(FADING, max_cvs=3)
    seen, _ = env.reset(seed=1)
    over = False
    while not over:
        bits, sums, config = env._state.queues["bits_left"].copy(), env._state.efficiency.copy(), env._config
        beta = sums[0] / sums[1] if sums[1] > 0 else sums[2]
        owners = (seen["gains"] + 2 * seen["mask"][:, None]).argmax(axis=0) + 1
        seen, reward, terminated, truncated, _ = env.step(owners)
        rate, watts = env._state.log.rate_bps[0], env._watts.sum()
        utility = (rate * (config.tradeoff + config.slot_s * bits)).sum() - config.tradeoff * beta * watts
        assert reward == pytest.approx(utility / env._payload**2)
        over = terminated or truncated


def test_actions_that_hold_and_rewards_at_the_end():
    env = SlotEnv(THREE, max_cvs=3, slots_per_step=5, reward={"received": 1.0, "late": -1.0})
    env.reset(seed=1)
    assert env.action_masks().reshape(2, 4).sum(axis=1).tolist() == [1 + env._scheduled] * 2
    number, over, total = env._number, False, 0.0
    env.step(np.array([0, 0]))
    assert env._number == number + 5
    while not over:  # nobody sends
        _, reward, terminated, truncated, _ = env.step(np.array([0, 0]))
        total, over = total + reward, terminated or truncated
    assert total == -3.0
    assert truncated


def test_the_next_episode_is_the_next_round():
    env = SlotEnv(THREE, max_cvs=3)
    assert [env.reset(seed=2)[1]["round"], env.reset()[1]["round"], env.reset()[1]["round"]] == [1, 2, 1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SlotEnv(THREE, action="all"), '"owners", "levels"'),
        (lambda: SlotEnv(THREE, reward={"fun": 1.0}), "neither"),
        (lambda: SlotEnv(THREE, settings={"radio.csi_delay_slots": 4}), "csi_delay_slots = 0"),
        (lambda: SlotEnv(THREE, {"vefl.budget": 0}).reset(seed=1), "nobody got an order"),
        (lambda: SlotEnv(THREE, {"scheme.kind": "centralized"}), "has no rounds to plan"),
        (lambda: SlotEnv(THREE, max_cvs=3).reset(options={"set": {"radio.prbs": 3}}), "decides the spaces"),
        (lambda: SlotEnv(THREE, max_cvs=3).reset(options={"set": {"radio.csi_delay_slots": 4}}), "csi_delay_slots = 0"),
        (lambda: SlotEnv(THREE, max_cvs=2).reset(seed=1), "max_cvs = 2 is less than the 3 orders"),
        (lambda: SlotEnv(THREE, max_cvs=3).step(np.array([0, 0])), "call reset()"),
        (lambda: SlotEnv(THREE, max_cvs=3).step([9, 0]), "2 whole numbers"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(BadInput) as error:
        make()
    assert sentence in str(error.value)
