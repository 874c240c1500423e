"""Invariants of every run with random traffic: one reason per loss, one CV per pRB, sums that add up."""

import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocol.test_golden import EXPERIMENT
from tests.scripted import ScriptedCars
from vefl_sim import Run, from_tables, simulate, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.protocol.trace import LOSSES

EARLY = ["server.early_close=true"]
NO_ROUNDS = ["scheme.kind=afa-cd", "aggregation.buffer=2"]
FREE = [*NO_ROUNDS, "scheme.constrained=false"]
POLICIES = [[], EARLY, NO_ROUNDS, FREE]


class RandomCars(ScriptedCars):
    """Cars on straight lines through the cell, drawn from the run's seed; some far faster than the server assumes."""

    def __init__(self, experiment, streams) -> None:
        super().__init__(experiment, streams)
        rng = streams.generator("random cars")
        starts = rng.uniform(-520, 520, (6, 2))
        speeds = rng.uniform(-1, 1, (6, 2)) * rng.choice([0.0, 15.0, 120.0], (6, 1))
        self.paths = tuple(
            lambda s, start=start, speed=speed: (start[0] + s * speed[0], start[1] + s * speed[1])
            for start, speed in zip(starts, speeds, strict=True)
        )


def random_run(seed: int, prbs: int, start: str, policy: list[str], directory: str) -> Run:
    experiment = with_settings(
        from_tables(EXPERIMENT),
        *policy,
        "mobility.kind=tests.protocol.test_invariants:RandomCars",
        f"run.seed={seed}",
        "run.rounds=4",
        f"radio.prbs={prbs}",
        f"mac.start={start}",
        "radio.fading=rayleigh",
        "radio.los=random",
        "radio.shadowing=correlated",
        "data.min_samples=1",
        "sla.cycles_per_bit=[100, 30000]",
    )
    return simulate(experiment, out=directory)


@pytest.mark.parametrize("policy", [[], ["rat.method=tests.protocol.test_burst:plain_policy"]], ids=["compiled", "own"])
def test_money_and_energy_add_up_over_the_slots(policy: list[str], tmp_path) -> None:
    run = random_run(3, 2, "ready", policy, str(tmp_path))
    assert len(run.table("slots")) > 0
    _money_and_energy_add_up(run.vehicles, run.rounds, run.table("slots"))


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(["tau", "ready"]), st.sampled_from(POLICIES))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_invariants_hold_in_every_run(seed: int, prbs: int, start: str, policy: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = random_run(seed, prbs, start, policy, directory)
        assert all(finding.passed for finding in verify(run))
        events, vehicles, rounds, slots = run.events, run.vehicles, run.rounds, run.table("slots")
    _one_outcome_per_order(events)
    _causes_precede(events)
    _each_prb_is_allocated_once(slots, prbs)
    _money_and_energy_add_up(vehicles, rounds, slots)
    assert (slots["bits_left"] > 0).all()
    assert vehicles["delivered_fraction"].dropna().between(0, 1).all()
    assert ((rounds["plan_status"] == "nobody_in_coverage") <= (rounds["in_coverage"] == 0)).all()
    if policy is NO_ROUNDS or policy is FREE:
        _each_cv_has_one_order_at_a_time(vehicles)
        _staleness_counts_versions(events)
    else:
        assert vehicles.groupby("round").size().sum() == rounds["in_coverage"].sum()
    assert vehicles["state"].isin(["delivered", "lost", "passed_over", "ineligible"]).all()


def _each_cv_has_one_order_at_a_time(vehicles) -> None:
    for _, orders in vehicles.dropna(subset=["delay_ns"]).sort_values("ordered_ns").groupby("cv"):
        ends = (orders["ordered_ns"] + orders["delay_ns"]).to_numpy(np.int64)
        assert (ends[:-1] <= orders["ordered_ns"].to_numpy(np.int64)[1:]).all()
        assert (orders["delay_ns"] <= 10**9).all()  # t_th


def _staleness_counts_versions(events) -> None:
    version = 0
    for event in events.query("kind == 'update_aggregated' or kind == 'model_aggregated'").to_dict("records"):
        if event["kind"] == "model_aggregated":
            version += 1
            assert event["version"] == version
        else:
            assert event["version"] + event["staleness"] == version


def _one_outcome_per_order(events) -> None:
    keys = ["round", "cv"]
    ordered = events.query("kind == 'training_ordered'")[keys]
    ended = events.query("kind == 'upload_received' or kind == 'update_lost'")
    assert sorted(map(tuple, ordered.to_numpy())) == sorted(map(tuple, ended[keys].to_numpy()))
    assert set(ended.query("kind == 'update_lost'")["reason"]) <= set(LOSSES)
    assert ended.query("kind == 'upload_received'")["reason"].isna().all()


def _causes_precede(events) -> None:
    caused = events.dropna(subset=["cause"])
    assert (caused["cause"] < caused["id"]).all()
    assert events["time_ns"].is_monotonic_increasing


def _each_prb_is_allocated_once(slots, prbs: int) -> None:
    assert (slots.groupby("slot")["prbs"].sum() <= prbs).all()
    assert not slots.duplicated(["slot", "cv"]).any()
    assert (slots["power_w"] <= 0.2 + 1e-12).all()


def _money_and_energy_add_up(vehicles, rounds, slots) -> None:
    ordered = vehicles.dropna(subset=["paid"])
    charged = 10.0 * (ordered["compute_j"] + ordered["transmit_j"]) + 10.0
    assert np.allclose(ordered["paid"].astype(float), charged.astype(float))
    assert rounds["cost"].sum() == pytest.approx(ordered["paid"].sum())
    assert ordered["transmit_j"].sum() == pytest.approx(slots["power_w"].sum() * 5e-4)
