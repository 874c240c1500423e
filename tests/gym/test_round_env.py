import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tests.gym.policies import near_ones
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, Killer
from vefl_sim import BadInput, RunFailed, Simulation, from_tables, resume, simulate
from vefl_sim.gym import RoundEnv
from vefl_sim.schemes.pdpc import Pdpc

THREE = from_tables(EXPERIMENT | {"rat": {}, "trace": {}})
CELL = {"run": {"name": "cell", "rounds": 3}, "data": {"train_samples": 2000}, "learning": {"kind": "none"}}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("action", ["count", "select", "plan"])
def test_gymnasium_finds_nothing_to_complain_about(action):
    check_env(RoundEnv(THREE, action=action, max_cvs=4), skip_render_check=True)


def test_selections_of_pdpc_give_the_run_of_pdpc():
    experiment = from_tables(CELL | {"vefl": {"budget": 1e6}})
    pdpc, env = Pdpc(experiment), RoundEnv(experiment, action="select", max_cvs=64)
    env.reset(seed=experiment.run.seed)
    over = False
    while not over:
        ordered = pdpc.plan(env._next).cv
        _, _, _, over, info = env.step(np.isin(env._placed, ordered).astype(np.int64))
        assert not any(info["cuts"].values())
    assert env.run.content_digest() == simulate(experiment, out=None).content_digest()


@pytest.mark.parametrize("policy", ["near_ones", "Three"])
def test_a_policy_as_a_scheme_gives_the_run_of_the_environment(policy):
    from tests.gym import policies

    action = "select" if policy == "near_ones" else "count"
    agent = {"policy": f"tests.gym.policies:{policy}", "action": action, "max_cvs": 20}
    tables = CELL | {"scheme": {"kind": "vefl_sim.gym:PolicyScheme"}, "agent": agent}
    env = RoundEnv(from_tables(CELL), action=action, max_cvs=20)
    seen, info = env.reset(seed=1)
    assert info["hidden"] > 0  # more than 20 CVs are in coverage
    act = near_ones if policy == "near_ones" else policies.Three()
    over = False
    while not over:
        seen, _, _, over, _ = env.step(act(seen))
    assert env.run.rounds["ordered"].sum() > 0
    assert env.run.content_digest() == simulate(from_tables(tables), out=None).content_digest()


@pytest.mark.parametrize("action", ["select", "plan"])
def test_whatever_an_agent_wants_is_lawful_and_counted(action):
    """The audit finds no plan that breaks C1 to C6."""
    env = RoundEnv(from_tables(CELL | {"vefl": {"budget": 60.0}, "scheme": {"selected": 6}}), action=action)
    env.action_space.seed(3)
    cut, over = dict.fromkeys(("no_cv", "selected", "budget"), 0), False
    env.reset(seed=1)
    while not over:
        seen, _, _, over, info = env.step(env.action_space.sample())
        cut = {name: number + info["cuts"].get(name, 0) for name, number in cut.items()}
        assert env.observation_space.contains(seen)
    assert all(cut.values()), cut
    assert (env.run.rounds["planned_cost"] <= 60.0 * (1 + 1e-9)).all()
    assert env.run.rounds["ordered"].between(0, 6).all()
    assert not env.run.audit.breaches


def test_a_cv_keeps_its_row():
    env = RoundEnv(from_tables(CELL), max_cvs=20)
    env.reset(seed=1)
    over = False
    while not over:
        before, shown = env._placed.copy(), set(env._placed.tolist())
        _, _, _, over, _ = env.step(0)
        stayed = [cv for cv in shown & set(env._placed.tolist()) if cv >= 0]
        assert over or stayed
        assert [int(np.flatnonzero(before == cv)[0]) for cv in stayed] == [
            int(np.flatnonzero(env._placed == cv)[0]) for cv in stayed
        ]


def test_masks_say_who_can_train():
    env = RoundEnv(THREE, action="plan", max_cvs=4, levels=2)
    env.reset(seed=1)
    assert env.action_masks().reshape(4, 3).tolist() == [[True] * 3] * 3 + [[True, False, False]]
    assert RoundEnv(THREE, max_cvs=4).action_space.n == 4


def test_rewards_are_those_of_the_tables():
    env = RoundEnv(THREE, reward={"money": -1.0, "lost": 100.0})
    env.reset(seed=1)
    rewards = [env.step(3)[1] for _ in range(2)]
    lost = env.run.rounds["ordered"] - env.run.rounds["delivered"]
    assert rewards == pytest.approx((100.0 * lost - env.run.rounds["cost"]).tolist())
    by_report = RoundEnv(THREE, reward=lambda report: report.round)
    by_report.reset(seed=1)
    assert [by_report.step(0)[1] for _ in range(2)] == [1.0, 2.0]


def test_seeds_and_options():
    def two_episodes():
        env = RoundEnv(from_tables(CELL | {"run": {"name": "cell", "rounds": 1}}))
        for seed in (5, None):
            env.reset(seed=seed)
            env.step(3)
            yield env.run.experiment.run.seed, env.run.content_digest()

    first, second = two_episodes()
    assert [first, second] == [*two_episodes()]
    assert first[0] == 5
    assert first[1] != second[1]
    env = RoundEnv(THREE)
    env.reset(options={"set": {"run.rounds": 1}})
    assert env.step(1)[3]


@pytest.mark.parametrize(("policy", "action"), [("near_ones", "select"), ("Counting", "count")])
def test_a_run_of_a_policy_is_resumed(policy, action, tmp_path):
    agent = {"policy": f"tests.gym.policies:{policy}", "action": action, "max_cvs": 20}
    scheme = {"kind": "vefl_sim.gym:PolicyScheme"}
    run = {"name": "stopped", "rounds": 4, "checkpoint_every": 1}
    experiment = from_tables(CELL | {"run": run, "scheme": scheme, "agent": agent})
    with pytest.raises(Kill):
        simulate(experiment, out=tmp_path, watcher=Killer(2))
    [stopped] = tmp_path.iterdir()
    assert resume(stopped).content_digest() == simulate(experiment, out=None).content_digest()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RoundEnv(THREE, action="all"), '"count", "select", "plan"'),
        (lambda: RoundEnv(THREE, features=["speed"]), "features: 'speed' is none of distance"),
        (lambda: RoundEnv(THREE, reward={"fun": 1.0}), "reward: 'fun' is none of accuracy"),
        (lambda: RoundEnv(from_tables(CELL | {"scheme": {"kind": "afa-cd"}})), "has no rounds to plan"),
        (lambda: RoundEnv(THREE).reset(options={"keys": {}}), '"set"'),
        (lambda: RoundEnv(THREE).reset(options={"set": {"run.seed": 3}}), "reset(seed=…)"),
        (lambda: RoundEnv(THREE).reset(options={"set": {"scheme.kind": "fedbuff"}}), "has no rounds to plan"),
        (lambda: RoundEnv(THREE).reset(options={"set": {"scheme.selected": 2}}), "decides the spaces"),
        (lambda: RoundEnv(THREE).step(1), "call reset()"),
        (lambda: _stepped("select", [1, 1]), "4 whole numbers from 0 to 1"),
        (lambda: _stepped("count", 99), "a whole number from 0 to 3"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(BadInput) as error:
        make()
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def _stepped(action, value):
    env = RoundEnv(THREE, action=action, max_cvs=4)
    env.reset(seed=1)
    env.step(value)


def test_a_policy_that_is_missing_or_wrong():
    own = {"kind": "vefl_sim.gym:PolicyScheme", "selected": 3}
    tables = EXPERIMENT | {"rat": {}, "trace": {}, "scheme": own}
    with pytest.raises(BadInput, match=r"agent\.policy"):
        Simulation(from_tables(tables))
    wrong = from_tables(tables | {"agent": {"policy": "tests.gym.policies:too_many"}})
    with pytest.raises(RunFailed, match="a whole number from 0 to 3"):
        simulate(wrong, out=None)
    with pytest.raises(BadInput, match=r"agent\.levels has no effect"):
        from_tables(tables | {"agent": {"policy": "tests.gym.policies:too_many", "levels": 9}})
