"""A run that one steps through is the run that is simulated in one go, whoever decides."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocol.test_asynchronous import THREE
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, RunFailed, Simulation, from_tables, simulate, with_settings
from vefl_sim.simulation.scenario import build_scenario, make_scheme

ROUNDS, WINDOWS = from_tables(EXPERIMENT), from_tables(THREE)
BOTH = pytest.mark.parametrize("experiment", [ROUNDS, WINDOWS], ids=["rounds", "no rounds"])


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Content digests of the runs in a directory, by the name of the experiment."""
    out = tmp_path_factory.mktemp("runs")
    return {one.run.name: simulate(one, out=out).summary["content_digest"] for one in (ROUNDS, WINDOWS)}


@BOTH
def test_round_by_round(experiment, digests) -> None:
    simulation, lengths = Simulation(experiment), []
    for count, report in enumerate(simulation, start=1):
        assert report.round == count
        lengths.append(len(simulation.rounds))
    assert lengths == ([1, 2] if experiment is ROUNDS else [2, 2])  # windows overlap: the last two are told together
    assert simulation.content_digest() == digests[experiment.run.name]
    assert [*simulation] == []  # it is over


@BOTH
def test_plans_of_the_scheme_handed_in(experiment, digests) -> None:
    simulation = Simulation(experiment)
    scheme, plans, observation = make_scheme(simulation.experiment), 0, simulation.next_plan()
    while observation is not None:
        plans += 1
        observation = simulation.next_plan(scheme.plan(observation))
    assert plans >= experiment.rounds
    assert simulation.content_digest() == digests[experiment.run.name]
    assert simulation.next_plan() is None


@BOTH
def test_loops_can_be_mixed(experiment, digests) -> None:
    """Who is not asked decides as always; only by slots, sums are rounded otherwise, except for equal shares."""
    simulation = Simulation(experiment)
    assert simulation.next_plan() is not None
    assert simulation.next_round()
    assert experiment is WINDOWS or simulation.next_slot() is not None
    reports = [*simulation]
    assert reports[-1].round == experiment.rounds
    assert simulation.content_digest() == digests[experiment.run.name]


def test_slots_of_the_method_handed_in() -> None:
    simulation = Simulation(ROUNDS)
    policy, slots, problem = simulation.actors.gnb.mac.policy, 0, simulation.next_slot()
    while problem is not None:
        slots += 1
        problem = simulation.next_slot(policy(problem))
    assert slots == simulation.summary["slots_audited"] == 24
    np.testing.assert_allclose(
        simulation.vehicles["transmit_j"].dropna().astype(float),
        simulate(ROUNDS, out=None).vehicles["transmit_j"].dropna().astype(float),
        rtol=1e-12,
    )


def test_a_loop_that_is_left_loses_no_report() -> None:
    simulation = Simulation(WINDOWS)
    for report in simulation:
        assert report.round == 1
        break
    assert [report.round for report in simulation] == [2]


def test_what_is_handed_out_can_be_changed() -> None:
    """An agent may scale what it sees in place: the run does not see it."""
    simulation = Simulation(ROUNDS)
    observation = simulation.next_plan()
    distance_m = observation.snapshot.distance_m.copy()
    observation.snapshot.distance_m[:] = 0.0
    simulation.next_slot().snr_per_watt[:] *= 4
    list(simulation)
    whole = simulate(ROUNDS, out=None)
    assert simulation.vehicles.query("round == 1")["distance_m"].tolist() == distance_m.tolist()
    assert simulation.summary["updates_delivered"] == whole.summary["updates_delivered"]


def test_a_run_that_has_failed_does_not_go_on() -> None:
    simulation = Simulation(ROUNDS)
    simulation.next_slot()
    simulation.actors.control.answer("nonsense")  # as a method of the experiment itself could return
    with pytest.raises(RunFailed, match="RatAllocation"):
        list(simulation)
    assert not simulation.is_over
    with pytest.raises(RunFailed, match="this run has failed"):
        list(simulation)


def test_settings() -> None:
    with pytest.raises(BadInput, match="built with its settings"):
        Simulation(build_scenario(ROUNDS), {"run.rounds": 1})
    assert Simulation(ROUNDS, {"run.rounds": 1}).experiment.rounds == 1
    with pytest.raises(BadInput, match=r"radio\.prbs"):
        Simulation(ROUNDS, ["radio.prbs=0"])


def test_a_plan_that_breaks_constraints_is_counted() -> None:
    simulation = Simulation(with_settings(ROUNDS, "vefl.max_local_iterations=5"))
    observation = simulation.next_plan()
    while observation is not None:
        plan = make_scheme(simulation.experiment).plan(observation)
        long = np.full_like(plan.iterations, 6)
        observation = simulation.next_plan(replace(plan, iterations=long, cost=None, objective=None, bound=None))
    assert simulation.summary["plan_breaches"]["C6"] > 0


def test_what_cannot_be_followed_is_refused() -> None:
    simulation = Simulation(ROUNDS)
    with pytest.raises(BadInput, match="takes no answer now"):
        simulation.next_plan(make_scheme(simulation.experiment))
    observation = simulation.next_plan()
    with pytest.raises(RunFailed, match=r"must return a vefl_sim\.Plan"):
        simulation.next_plan("everybody")
    assert (
        simulation.next_plan(make_scheme(simulation.experiment).plan(observation)) is not None
    )  # another one is taken
    with pytest.raises(BadInput, match="takes no answer now"):
        simulation.next_slot("all")
    simulation.next_slot()
    with pytest.raises(RunFailed, match="RatAllocation"):
        simulation.next_slot("all")
    assert [report.round for report in simulation] == [1, 2]


def test_a_watcher_hears_of_a_run_in_memory() -> None:
    class Listener:
        heard: list[str] = []  # noqa: RUF012

        def started(self, run, scenario) -> None:
            self.heard.append(f"started {len(scenario.shards)}")

        def round(self, report) -> None:
            self.heard.append(f"round {report.round}")

        def ended(self, state) -> None:
            self.heard.append(state)

    simulate(ROUNDS, out=None, watcher=Listener())
    assert Listener.heard == ["started 3", "round 1", "round 2", "done"]
