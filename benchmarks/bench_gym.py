"""Speed of the Gymnasium environments, without learning, beside the run that they step through.

    python benchmarks/bench_gym.py [--quick]

Rounds: whole episodes of Round-v0 and the same run without an environment, 35 CVs in coverage, by CPU time. Slots:
Slot-v0 with ten CVs and ten pRBs, by CPU time. Processes: Round-v0 in two processes of `make_vec` and in one, by wall
time, so only on a machine that does nothing else. Prints a table, and writes it to benchmarks/bench_gym.json.
"""

from harness import QUICK, Figures, Skipped, Turn, keep, measured, show, timed
from script import SMALL, answer_help

import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import vefl_sim

ROUNDS, SLOTS = (3, 300) if SMALL else (30, 5000)
BARS = {
    "gym: Round-v0, × bare run": 0.7,
    "gym: Slot-v0, steps per s": 5000.0,
    "gym: two processes, × one process": 1.6,
}


def world(**tables: dict[str, Any]) -> vefl_sim.Experiment:
    """The default world, with 35 CVs in coverage, a square grid and Z = 10."""
    usual = {"data": {"train_samples": 4000, "test_samples": 100}, "learning": {"kind": "none"}}
    return vefl_sim.from_tables({"run": {"name": "bench-gym", "rounds": ROUNDS}} | usual | tables)


def require_gymnasium() -> None:
    if find_spec("gymnasium") is None:
        raise Skipped("Gymnasium is not installed")


def rounds() -> Turn:
    """An agent that lets the planner choose as many CVs as it likes: its episode is the run of PDPC."""
    require_gymnasium()
    from vefl_sim.gym import RoundEnv

    experiment = world()
    env = RoundEnv(experiment, action="count")
    env.reset(seed=experiment.run.seed)
    scenario = env.run.scenario

    def bare() -> str:
        run = vefl_sim.Simulation(scenario)
        for _ in run:
            pass
        return run.content_digest()

    def episode() -> str:
        env.reset(seed=experiment.run.seed)
        while not env.step(experiment.scheme.selected)[3]:
            pass
        return env.run.content_digest()

    assert bare() == episode(), "both are the same run"

    def turn() -> Figures:
        alone, stepped = timed(bare)[0], timed(episode)[0]
        return {
            "gym: Round-v0, rounds per s": ROUNDS / stepped,
            "gym: Round-v0, × bare run": alone / stepped,
        }

    return turn


def slots() -> Turn:
    """Ten CVs that each own a pRB and send for long, because they have little power."""
    require_gymnasium()
    from vefl_sim.gym import SlotEnv

    experiment = world(
        radio={"prbs": 10, "max_tx_power_w": 0.005},
        vefl={"budget": 5000.0, "sojourn_weight": 0.0},
        scheme={"selected": 10},
    )
    env, owners = SlotEnv(experiment, max_cvs=10), np.arange(1, 11)
    env.reset(seed=1)
    env.step(owners)  # compile

    def turn() -> Figures:
        seconds, done = 0.0, 0
        while done < SLOTS:
            elapsed, steps = timed(partial(until_the_end, SLOTS - done))
            seconds, done = seconds + elapsed, done + steps
            env.reset()
        return {"gym: Slot-v0, steps per s": done / seconds}

    def until_the_end(most: int) -> int:
        for number in range(1, most + 1):
            _, _, terminated, truncated, _ = env.step(owners)
            if terminated or truncated:
                return number
        return most

    return turn


def processes() -> Turn:
    """The same number of steps in each of one and of two processes."""
    require_gymnasium()
    import gymnasium

    def made(count: int) -> Any:
        envs = gymnasium.make_vec(
            "vefl_sim.gym:vefl_sim/Round-v0", count, "async", vector_kwargs={"context": "spawn"}, experiment=world()
        )
        envs.reset(seed=1)
        return envs

    vectors = {count: made(count) for count in (1, 2)}

    def steps_per_s(count: int) -> float:
        envs, actions = vectors[count], np.full(count, 10)
        envs.reset(seed=1)  # a run that is kept, so that nothing is prepared
        seconds, _ = timed(lambda: [envs.step(actions) for _ in range(ROUNDS)], time.perf_counter)
        return ROUNDS * count / seconds

    return lambda: {"gym: two processes, × one process": steps_per_s(2) / steps_per_s(1)}


if __name__ == "__main__":
    answer_help(__doc__)
    cases = {"rounds": rounds, "slots": slots, "processes": processes}
    figures, skipped = measured(cases, 1 if QUICK else 5)
    rows = {name: {"measured": value, "bar": BARS.get(name, np.nan)} for name, value in figures.items()}
    show("Gymnasium environments", rows)
    print(*(f"{name} was skipped: {why}" for name, why in skipped.items()), sep="\n", end="")
    keep(__file__, figures)
