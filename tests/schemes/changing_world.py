"""Cars that come late, go, come back and lose updates, and take unequal numbers of iterations; against plain numpy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.schemes.plain_world import PlainWorld, experiment, models_of
from tests.scripted import ScriptedCars
from vefl_sim import Run, simulate

ROUNDS = 8


class ComingAndGoing(ScriptedCars):
    """Rounds last a second, and cars are present from and until the given seconds; x is their place."""

    paths = (
        lambda s: (-120.0, 50.0),
        lambda s: (-60.0, 50.0) if s < 2.1 or s > 4.9 else None,  # misses rounds 4 and 5, loses its update of round 3
        lambda s: (0.0, 50.0) if s > 2.9 else None,  # is late
        lambda s: (60.0, 50.0) if s < 3.9 else None,  # leaves, and its update of round 4 is lost
        lambda s: (120.0, 50.0) if 4.9 < s < 6.9 else None,  # is there for two rounds only
    )


@dataclass(frozen=True)
class Delivered:
    """The updates of one round: CVs, and their numbers of iterations."""

    cv: list[int]
    iterations: list[int]


def delivered(run: Run) -> list[Delivered]:
    """What arrived in each round, read from the trace."""
    orders = run.events.query("kind == 'training_ordered'").set_index(["round", "cv"])["iterations"].astype(int)
    used = run.events.query("kind == 'update_aggregated'").sort_values(["round", "cv"])
    by_round = {k: rows["cv"].astype(int).tolist() for k, rows in used.groupby("round")}
    return [Delivered(cvs, [int(orders[k, cv]) for cv in cvs]) for k, cvs in sorted(by_round.items())]


def assert_changing(run: Run, rounds: list[Delivered]) -> None:
    """CVs come late, miss rounds, lose an update after they delivered one, and take unequal numbers of iterations."""
    seen = {cv: [k for k, round in enumerate(rounds, 1) if cv in round.cv] for round in rounds for cv in round.cv}
    assert len(rounds) == ROUNDS
    assert sorted(seen) == [1, 2, 3, 4, 5]
    assert {cv: min(ks) for cv, ks in seen.items()} == {1: 1, 2: 1, 3: 4, 4: 1, 5: 6}
    assert {3, 4, 5}.isdisjoint(seen[2])
    assert max(seen[2]) == ROUNDS
    assert max(seen[4]) < ROUNDS
    assert set(run.events.query("kind == 'update_lost'")["cv"]) >= {2, 4}
    assert all(len(set(round.iterations)) > 1 for round in rounds)


def changing(tmp_path, kind: str, next_model: Callable, **tables) -> None:
    """Compare the models of a run with those of next_model(world, ω, CVs, their iterations), round by round."""
    tables["scheme"] = {"kind": kind, "constrained": True}
    tables["mobility"] = {"kind": "tests.schemes.changing_world:ComingAndGoing"}
    tables["run"] = {"rounds": ROUNDS}
    tables["vefl"] = {"max_local_iterations": 12, "budget": 5e3}
    tables["sla"] = {"cycles_per_bit": [3e4, 6e4]}  # few iterations fit into a round, depending on the data
    of = experiment(kind, **tables)
    run, world = simulate(of, out=tmp_path), PlainWorld(of)
    rounds, w = delivered(run), world.start
    assert_changing(run, rounds)
    for round, model in zip(rounds, models_of(run), strict=True):
        w = next_model(world, w, round.cv, round.iterations)
        np.testing.assert_allclose(model, w, atol=5e-5)
