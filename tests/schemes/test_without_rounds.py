"""AFA-CD and FedBuff: their plans and aggregation weights; and centralized training."""

import jax
import numpy as np
import pytest

from tests.learning.plain import train_plain
from tests.resumable import STOPPED
from tests.schemes.rounds import experiment, observed
from vefl_models.logistic import logistic
from vefl_sim import simulate, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import ExperimentError
from vefl_sim.learning.datasets.signs import signs
from vefl_sim.learning.jax_learner import JaxLearner, Options
from vefl_sim.learning.learner import LocalJob
from vefl_sim.learning.local import Descent, Shuffling
from vefl_sim.schemes.asynchronous import AfaCd, FedBuff
from vefl_sim.schemes.observation import Committed
from vefl_sim.schemes.scheme import Received
from vefl_sim.simulation.scenario import make_scheme

RECEIVED = Received(*(np.array(row) for row in ([4, 1], [10, 2], [30, 40], [0, 3])))


def scheme(kind=AfaCd, **tables):
    name = {AfaCd: "afa-cd", FedBuff: "fedbuff"}[kind]
    return kind(experiment(scheme={"kind": name}, **tables))


class TestWeights:
    def test_afa_cd_steps_along_mean_gradients(self) -> None:
        afa = scheme(learning={"learning_rate": 0.1}, aggregation={"server_rate": 0.5})
        # 0.5 over two updates, each 1/(0.1·l) of its difference
        assert afa.weights(RECEIVED).tolist() == pytest.approx([0.25 / 1.0, 0.25 / 0.2])

    def test_each_mini_batch_is_a_step(self) -> None:
        """40 samples in batches of 8 are 5 steps per iteration, 41 are 6; a batch as large as the shard is one step."""
        received = Received(*(np.array(row) for row in ([4, 1, 7], [10, 2, 3], [40, 41, 8], [0, 3, 0])))
        afa = scheme(learning={"learning_rate": 0.1, "batch_size": 8}, aggregation={"server_rate": 0.6})
        assert afa.weights(received).tolist() == pytest.approx([0.2 / (0.1 * n) for n in (10 * 5, 2 * 6, 3 * 1)])

    @pytest.mark.parametrize("options", [{"batch_size": 8}, {"iterations_per_step": 3}])
    def test_the_weighted_difference_is_a_mean_gradient(self, options: dict) -> None:
        """One CV with D = 40 and l = 7, with real training: at a tiny δ all gradients are nearly the first one."""
        rate, data = 1e-4, signs(40, 20, 16, np.random.default_rng(5))
        settings = experiment(scheme={"kind": "afa-cd"}, learning={"learning_rate": rate} | options)
        module, shuffling = logistic(data.classes), Shuffling(8, seed=3) if "batch_size" in options else None
        ways = Options(shuffling=shuffling, iterations_per_step=options.get("iterations_per_step", 1))
        learner = JaxLearner(
            data, {4: np.arange(40)}, module, learning_rate=rate, proximal_mu=0.0, seed=1, options=ways
        )
        start = learner.initial_model()
        [trained] = learner.train([start], [LocalJob(4, 7)])
        [weight] = AfaCd(settings).weights(Received(*(np.array([n]) for n in (4, 7, 40, 0))))
        once = train_plain(module, start, data.train_inputs, data.train_targets, 1, Descent(1.0, 0.0))
        gradient, stepped = (
            np.concatenate([np.ravel(a - b) for a, b in zip(jax.tree.leaves(end), jax.tree.leaves(start), strict=True)])
            for end in (once, trained)
        )
        server_rate = AfaCd.default_rate
        assert np.linalg.norm(weight * stepped / server_rate - gradient) <= 0.05 * np.linalg.norm(gradient)

    def test_fedbuff_discounts_stale_updates(self) -> None:
        assert scheme(FedBuff).weights(RECEIVED).tolist() == pytest.approx([0.5, 0.5 / 2.0])

    def test_the_buffer_is_as_large_as_a_selection(self) -> None:
        assert scheme().buffer == 10
        assert scheme(aggregation={"buffer": 3}).buffer == 3


class TestPlan:
    def test_the_share_depends_on_all_cvs_in_coverage(self) -> None:
        alone = observed([40], [10.0], budget=30.0)
        assert scheme().plan(alone).iterations[0] >= 1
        among_three = observed([40], [10.0], budget=30.0, snapshot={"others": 2})  # a share of 10, just the fee
        assert scheme().plan(among_three).ineligible == {1: "budget"}

    def test_earlier_orders_of_the_window_use_the_share(self) -> None:
        fresh = scheme().plan(observed([40], [10.0], budget=30.0))
        assert fresh.cost is not None
        spent = Committed(np.array([fresh.cost]), np.array([0.0]), fresh.cost)
        again = scheme().plan(observed([40], [10.0], budget=30.0, snapshot={"committed": spent}))
        assert again.ineligible == {1: "budget"}

    def test_orders_of_other_cvs_use_the_budget(self) -> None:
        committed = Committed(np.array([0.0]), np.array([0.0]), 21.0)
        plan = scheme().plan(observed([40], [10.0], budget=30.0, snapshot={"committed": committed}))
        assert plan.ineligible == {1: "budget"}

    def test_the_energy_budget_is_per_window(self) -> None:
        committed = Committed(np.array([0.0]), np.array([19.99]), 0.0)  # of 20 J
        assert scheme().plan(observed([40], [10.0], snapshot={"committed": committed})).ineligible == {1: "energy"}

    def test_nothing_is_ordered_beyond_the_end_of_the_run(self) -> None:
        assert scheme().plan(observed([40], [10.0], snapshot={"horizon_ns": 400_000})).ineligible == {1: "time"}


def test_an_order_between_two_slots_uses_whole_slots() -> None:
    on, off = (observed([40], [10.0], snapshot={"time_ns": 10**10 + late}) for late in (0, 1))
    assert on.deadline_slot.tolist() == off.deadline_slot.tolist() == [30_000]  # 10 s and 5 s, in slots of 0.5 ms
    assert (on.window_slots - off.window_slots).tolist() == [1]


UNCONSTRAINED = ["scheme.kind=afa-cd", "scheme.constrained=false"]


def test_without_constraints_everything_arrives_in_time(tmp_path) -> None:
    fast = with_settings(STOPPED, "learning.kind=none", *UNCONSTRAINED)
    run = simulate(with_settings(fast, "vefl.max_local_iterations=60", "sla.cycles_per_bit=[200, 300]"), out=tmp_path)
    vehicles = run.vehicles
    assert (vehicles["state"] == "delivered").all()
    assert (vehicles["delay_ns"] <= 10**9).all()
    assert (vehicles["delay_ns"] == 10**9).any()  # training that would take longer
    for _, orders in vehicles.groupby("cv"):
        assert (np.diff(np.sort(orders["ordered_ns"].to_numpy(np.int64))) >= 10**9).all()  # once per t_th, as in rounds
    early = vehicles[vehicles["delay_ns"] < vehicles["train_ns"].clip(upper=10**9)]
    ends = early["ordered_ns"] + early["delay_ns"]
    before_the_end = early[ends < 8 * 10**9].assign(time_ns=ends)
    gone = run.events.query("kind == 'coverage_left'")[["cv", "time_ns"]]
    assert len(before_the_end.merge(gone)) == len(before_the_end) > 0  # delivered when their CV left
    assert all(finding.passed for finding in verify(run))


class OwnBuffer:
    """A user-defined scheme without rounds: every update is aggregated at once, with weight samples/1000."""

    buffer = 1

    def __init__(self, experiment) -> None:
        self._plan = AfaCd(experiment).plan

    def plan(self, observation):
        return self._plan(observation)

    def weights(self, received):
        return received.samples / 1000


def test_a_user_defined_scheme(tmp_path) -> None:
    run = simulate(with_settings(STOPPED, "run.rounds=3", f"scheme.kind={__name__}:OwnBuffer"), out=tmp_path)
    assert run.rounds["steps"].sum() == run.summary["updates_delivered"] > 0
    assert run.events.query("kind == 'update_aggregated'")["staleness"].max() > 0


@pytest.mark.parametrize("buffer", [0, 2.5])
def test_an_invalid_buffer_is_refused(buffer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnBuffer, "buffer", buffer)
    with pytest.raises(ExperimentError, match="must be 1, 2, 3"):
        make_scheme(with_settings(STOPPED, f"scheme.kind={__name__}:OwnBuffer"))
