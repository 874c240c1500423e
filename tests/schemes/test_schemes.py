"""Every scheme on rounds that are small enough to work out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.schemes.rounds import TYPICAL, experiment, observed
from vefl_sim.experiment.kinds import SCHEMES
from vefl_sim.experiment.plugins import declaration, make_part
from vefl_sim.schemes.fedprox import FedAvg, FedProx
from vefl_sim.schemes.pdpc import Fdpc, Pdpc
from vefl_sim.schemes.planning import equal_share
from vefl_sim.schemes.selection import RandomSelection

# 40, 20, 10 and 30 samples of 1 Mbit at 25 cycles per bit: cD = 1, 0.5, 0.25, 0.75 Gcycles per iteration.
ROUND = {"samples": [40, 20, 10, 30], "sojourn_s": [10.0, 4.0, 2.0, 24.0]}


IN_ROUNDS = {"scheme": {"rounds": True}}


def scheme(kind, **tables):
    keys = experiment(scheme={"kind": kind} | tables.pop("scheme", {}), **tables)
    return make_part("scheme.kind", kind, keys)


class TestPdpc:
    def test_selects_the_heaviest_and_uses_all_their_time(self):
        # Θ = mean of data shares (.4, .2, .1, .3) and sojourn shares (.25, .1, .05, .6): CVs 16 and 1 lead.
        plan = scheme("pdpc").plan(observed(**ROUND))
        assert plan.cv.tolist() == [1, 16]
        # T = 5 s less one slot: l = ⌊4.9995·2/1⌋ = 9 and ⌊4.9995·2/0.75⌋ = 13.
        assert plan.iterations.tolist() == [9, 13]
        assert (plan.status, plan.bound, plan.gap) == ("optimal", pytest.approx(plan.objective), 0)

    def test_every_delivered_update_weighs_the_same(self):
        pdpc, round = scheme("pdpc"), observed(**ROUND)
        assert pdpc.aggregate(round, pdpc.plan(round), np.array([16])).tolist() == [0.5]

    def test_history_divides_by_the_success_rate(self):
        pdpc = scheme("pdpc", aggregation={"p_suc": "history"})
        round = observed(**ROUND, success=[0.5, 1.0, 1.0, 0.8])
        assert pdpc.aggregate(round, pdpc.plan(round), np.array([1, 16])) == pytest.approx([1.0, 0.625])

    def test_unconstrained_takes_the_heaviest_for_l_max(self):
        plan = scheme("pdpc", scheme={"constrained": False}).plan(observed(**ROUND))
        assert (plan.cv.tolist(), plan.iterations.tolist(), plan.bypasses_network) == ([1, 16], [20, 20], True)


class TestFdpc:
    def test_every_eligible_cv_is_ordered(self):
        round = observed([40, 20, 10, 30], [10.0, 4.0, 0.0004, 24.0])  # the third leaves before it could send
        plan = scheme("fdpc").plan(round)
        assert plan.cv.tolist() == [1, 4, 16]
        assert plan.ineligible == {9: "time"}
        assert plan.iterations.tolist() == [9, 15, 13]

    def test_weights_are_shares_of_sojourn_and_data_renormalized(self):
        round = observed([40, 20, 10, 30], [10.0, 4.0, 0.0004, 26.0])
        for sojourn_weight, expected in ((1.0, [10 / 40, 26 / 40]), (0.0, [40 / 90, 30 / 90])):
            fdpc = scheme("fdpc", aggregation={"sojourn_weight": sojourn_weight})
            weights = fdpc.aggregate(round, fdpc.plan(round), np.array([1, 16]))
            assert weights == pytest.approx(expected, rel=1e-4)
        fdpc = scheme("fdpc", aggregation={"normalize": True})
        assert fdpc.aggregate(round, fdpc.plan(round), np.array([1, 16])) == pytest.approx([10 / 36, 26 / 36])

    def test_the_plan_uses_the_weights_of_the_aggregation(self):
        """A small budget is spent on the CV that stays longest (λ = 1), or on the CV with most data (λ = 0)."""
        round = {"samples": [40, 60], "sojourn_s": [24.0, 6.0], "budget": 32.0}
        by_sojourn, by_data = (
            scheme("fdpc", aggregation={"sojourn_weight": w}).plan(observed(**round)).iterations for w in (1.0, 0.0)
        )
        assert by_sojourn[0] > by_data[0]
        assert by_sojourn[1] < by_data[1]

    def test_a_budget_too_small_for_all_drops_to_a_selection(self):
        plan = scheme("fdpc").plan(observed(**ROUND, budget=35.0))
        assert 0 < len(plan.cv) < 4
        assert plan.dropped
        assert plan.cost <= 35.0

    def test_weights_of_a_selection_are_over_the_ordered_or_over_all(self):
        round = observed(**ROUND, budget=35.0)
        for over, whole in (("ordered", None), ("coverage", 40.0), ("delivered", 24.0)):
            fdpc = scheme("fdpc", aggregation={"weights_over": over})
            plan = fdpc.plan(round)
            assert (plan.dropped, 16 in plan.cv, len(plan.cv) < 4) == (True, True, True)
            rows = np.searchsorted(round.cv, plan.cv)
            whole = whole or round.snapshot.sojourn_s[rows].sum()
            assert fdpc.aggregate(round, plan, np.array([16])) == pytest.approx([24.0 / whole])

    def test_unconstrained_takes_all(self):
        plan = scheme("fdpc", scheme={"constrained": False}).plan(observed(**ROUND))
        assert (plan.cv.tolist(), set(plan.iterations.tolist()), plan.bypasses_network) == ([1, 4, 9, 16], {20}, True)


class TestEqualShare:
    """l is the least that time, energy and budget allow at full speed."""

    def iterations(self, **constants):
        round = observed(**ROUND, **constants)
        return dict(zip((plan := equal_share(round, np.arange(4), shares=4)).cv.tolist(), plan.iterations, strict=True))

    def test_time(self):
        # ⌊T·η/cD⌋ with T = 4.9995, 3.9995, 1.9995, 4.9995 s at 2 GHz.
        assert self.iterations(budget=1e6) == {1: 9, 4: 15, 9: 15, 16: 13}

    def test_energy(self):
        # E₁ = 1e-28·cD·4e18 = 0.4, 0.2, 0.1, 0.3 J; an energy budget of 1 J less the upload allows 2, 4, 9, 3.
        poor = [replace(TYPICAL, energy_budget_j=1.0)] * 4
        plan = equal_share(observed(**ROUND, agreements=poor, budget=1e6), np.arange(4), shares=4)
        assert plan.iterations.tolist() == [2, 4, 9, 3]

    def test_budget(self):
        # A share of 60/4 = 15 leaves (15 − 10)/10 = 0.5 J.
        assert self.iterations(budget=60.0) == {1: 1, 4: 2, 9: 4, 16: 1}

    @pytest.mark.parametrize("budget", [40.0, 40.0001])
    def test_free_energy_for_the_fee_alone(self, budget):
        free = [replace(TYPICAL, price_per_joule=0.0)] * 4
        plan = equal_share(observed(**ROUND, agreements=free, budget=budget), np.arange(4), shares=4)
        assert plan.iterations.tolist() == [9, 15, 15, 13]

    def test_fees_that_add_up_to_the_budget_but_for_rounding(self):
        cheap = [replace(TYPICAL, price_per_joule=0.0, base_fee=0.1)] * 3
        plan = equal_share(observed([1, 1, 1], [9, 9, 9], agreements=cheap, budget=0.3), np.arange(3), shares=3)
        assert len(plan.cv) == 3

    def test_a_cv_whose_share_buys_no_iteration_is_ineligible(self):
        plan = equal_share(observed(**ROUND, budget=53.0), np.arange(4), shares=4)  # 0.325 J: too little for the first
        assert (plan.cv.tolist(), plan.ineligible) == ([4, 9, 16], {1: "budget"})
        assert plan.cost <= 53.0
        assert equal_share(observed(**ROUND, budget=1.0), np.arange(4), shares=4).status == "budget_buys_nobody"
        gone = observed([40, 20], [0.0004, 0.0004], budget=1.0)
        plan = equal_share(gone, np.arange(2), shares=2)
        assert (plan.status, plan.ineligible) == ("nobody_eligible", {1: "time", 4: "time"})
        assert equal_share(observed([], []), np.arange(0), shares=0).status == "nobody_in_coverage"


class TestFedProx:
    def test_weights_are_shares_of_the_delivered_data(self):
        prox, round = scheme("fedprox"), observed(**ROUND)
        plan = prox.plan(round)
        assert plan.cv.tolist() == [1, 4, 9, 16]
        assert prox.aggregate(round, plan, np.array([1, 9])) == pytest.approx([0.8, 0.2])

    def test_weights_over_coverage_do_not_sum_to_one_if_a_cv_does_not_deliver(self):
        prox, round = scheme("fedprox", aggregation={"weights_over": "coverage"}), observed(**ROUND)
        assert prox.aggregate(round, prox.plan(round), np.array([1, 9])) == pytest.approx([0.4, 0.1])

    def test_fedavg_has_no_proximal_term(self):
        learning = {"learning": {"proximal_mu": 0.3}}
        assert {of(experiment(**learning)).proximal_mu for of in (FedProx, Pdpc, Fdpc)} == {None}  # that of the key
        assert FedAvg(experiment(**learning)).proximal_mu == 0


class TestAfaCdInRounds:
    def test_orders_are_those_of_fedprox(self):
        round = observed(**ROUND, budget=60.0)
        prox, afa = (scheme(kind, **tables).plan(round) for kind, tables in (("fedprox", {}), ("afa-cd", IN_ROUNDS)))
        assert (prox.cv.tolist(), prox.iterations.tolist()) == (afa.cv.tolist(), afa.iterations.tolist())

    @pytest.mark.parametrize(("over", "members"), [("delivered", 2), ("coverage", 4)])
    def test_a_difference_becomes_a_share_of_a_mean_gradient(self, over, members):
        tables = {"aggregation": {"server_rate": 0.01, "weights_over": over}, "learning": {"learning_rate": 0.5}}
        afa, round = scheme("afa-cd", **IN_ROUNDS, **tables), observed(**ROUND, budget=1e6)
        plan = afa.plan(round)
        assert plan.iterations.tolist() == [9, 15, 15, 13]
        expected = [0.01 / members / (0.5 * 9), 0.01 / members / (0.5 * 13)]
        assert afa.aggregate(round, plan, np.array([1, 16])) == pytest.approx(expected)
        assert afa.proximal_mu == 0


class TestRandomSelection:
    def test_every_cv_is_drawn_equally_often(self):
        selection = scheme("random")
        drawn = []
        for number in range(600):
            round = observed(**ROUND)
            round = replace(round, snapshot=replace(round.snapshot, round=number))
            drawn += selection.plan(round).cv.tolist()
        assert np.unique(drawn, return_counts=True)[1] == pytest.approx(300, rel=0.15)

    def test_the_same_round_and_seed_draw_the_same(self):
        plans = [
            RandomSelection(experiment(run={"name": "x", "seed": seed})).plan(observed(**ROUND)) for seed in (1, 1)
        ]
        assert plans[0].cv.tolist() == plans[1].cv.tolist()
        others = [
            RandomSelection(experiment(run={"name": "x", "seed": s})).plan(observed(**ROUND)).cv for s in range(9)
        ]
        assert len({tuple(cv.tolist()) for cv in others}) > 1

    def test_only_eligible_cvs_are_drawn_and_the_others_have_a_reason(self):
        round = observed([40, 20, 10, 30], [10.0, 0.0004, 0.0004, 24.0])
        plan = scheme("random").plan(round)
        assert (plan.cv.tolist(), plan.ineligible) == ([1, 16], {4: "time", 9: "time"})

    def test_the_budget_is_shared_among_the_drawn(self):
        assert scheme("random").plan(observed(**ROUND, budget=30.0)).iterations.min() >= 1  # 15 each, not 7.5


@pytest.mark.parametrize("kind", SCHEMES)
def test_what_a_scheme_declares_about_its_orders_is_true(kind):
    """`selects`: C1 limits the orders to |C_k| = 2 of these four CVs; `trains_centrally`: no CV gets an order."""
    plan = scheme(kind).plan(observed(**ROUND))
    central = declaration("scheme.kind", kind, "trains_centrally", False)
    selects = declaration("scheme.kind", kind, "selects", False)
    assert len(plan.cv) == (0 if central else 2 if selects else 4)
    assert central or plan.limited == selects


@pytest.mark.parametrize("kind", sorted(SCHEMES.keys() - {"centralized"}))
@pytest.mark.parametrize("constrained", [True, False])
def test_empty_coverage_gives_an_empty_plan(kind, constrained):
    plan = scheme(kind, scheme={"constrained": constrained}).plan(observed([], []))
    assert (len(plan.cv), plan.status) == (0, "nobody_in_coverage")


@pytest.mark.parametrize(("margin", "slots"), [(0.5, 2), (1.0, 4), (2.0, 8)])
def test_the_upload_margin_scales_the_time_that_plans_reserve(margin, slots):
    """A slot carries 0.5 ms · 1.8 MHz · 13/14 · log₂(1 + 2e5) = 14,717 bits here; 58,000 take four of them."""
    round = observed(**ROUND, payload_bits=58_000, upload_margin=margin)
    assert round.worst_slots.tolist() == [slots] * 4
    assert (round.train_limit_ns == (round.window_slots - slots) * 500_000).all()


class TestLowerLimits:
    """A scheme may lower the budget and the number of CVs for a built-in one that it uses, and not raise them."""

    def test_a_scheme_keeps_to_the_experiment_that_it_was_made_from(self):
        assert len(scheme("pdpc", scheme={"selected": 1}).plan(observed(**ROUND)).cv) == 1
        assert len(scheme("random", scheme={"selected": 1}).plan(observed(**ROUND)).cv) == 1
        free = {"selected": 1, "constrained": False}
        assert len(scheme("pdpc", scheme=free).plan(observed(**ROUND)).cv) == 1

    @pytest.mark.parametrize("kind", ["pdpc", "fdpc", "fedprox", "fedavg", "random", "afa-cd"])
    def test_the_smaller_budget_counts(self, kind):
        for own, of_the_round in ((50.0, 1000.0), (1000.0, 50.0)):
            plan = scheme(kind, vefl={"budget": own}).plan(observed(**ROUND, budget=of_the_round))
            assert plan.cost <= 50.0

    @pytest.mark.parametrize("limits", [{"budget": 1000.1}, {"selected": 3}, {"budget": -1.0}, {"budget": np.nan}])
    def test_limits_cannot_be_raised(self, limits):
        with pytest.raises(ValueError, match=r"must be from 0 to .*, the limit of this round"):
            observed(**ROUND).with_(**limits)
