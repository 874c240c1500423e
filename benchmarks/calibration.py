"""How well a world (roads, traffic, radio) fits the network figures that the paper reports; without learning.

    python benchmarks/calibration.py                     # the chosen world (experiments/paper/base.toml), five seeds
    python benchmarks/calibration.py TABLE.KEY=VALUE ... # the same with some keys changed
    python benchmarks/calibration.py --search            # the grid it was chosen from, to benchmarks/calibration.csv

The first two simulate everything but the learning: a minute or two per seed. The search uses only traffic and plans:
costs and eligible CVs follow from the plan of a round, so no slot is simulated, and one drive serves all plans.
"""

from harness import ROOT

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import vefl_sim
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.plugins import make_part
from vefl_sim.experiment.toml import override, read_experiment
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.mobility.coverage import in_coverage, sojourn_bound_s, visitors
from vefl_sim.mobility.scene import Scene
from vefl_sim.schemes.observation import CoverageSnapshot, observe
from vefl_sim.schemes.sla import draw_agreement
from vefl_sim.simulation import scenario, wiring

BASE = ROOT / "experiments" / "paper" / "base.toml"
SCHEMES = ("fdpc", "pdpc", "fedprox", "afa-cd")
PAPER = {
    "unique CVs": 293.6,
    "bound < 5 s": 28.0,
    "bound < 2.5 s": 13.0,
    "fdpc cost < 700": 23.75,
    "pdpc cost < 700": 100.0,
    "fedprox cost < 700": 46.8,
    "afa-cd cost < 700": 47.3,
    "fdpc p_suc ≥ 0.9": 97.3,
    "pdpc p_suc ≥ 0.9": 100.0,
    "fedprox p_suc ≥ 0.9": 97.1,
    "afa-cd p_suc ≥ 0.9": 97.0,
    "fdpc p_suc ≥ 0.99": 76.45,
    "pdpc p_suc ≥ 0.99": 100.0,
    "fedprox p_suc ≥ 0.99": 76.25,
    "afa-cd p_suc ≥ 0.99": 76.25,
}
"""The paper's figures: sojourn bounds at 26.82 m/s, all others at 20.12 m/s; shares in %.

p_suc: means of rounds over C_k (docs/reproduction.md).
"""
FAST_MPS = 26.82

REGIONS = ((8, "all"), ([8, 6], "all"), *product(([8, 5], [8, 4], [8, 3]), ("all", "outside")))
"""Values of roads.blocks and roads.exits; on the first two all streets end outside coverage."""
THROUGH = (1.0, 0.0)
CARRIERS_GHZ = (2.0, 3.5)
PLANS = [
    {"max_iterations": l_max, "cpu_capacitance": zeta, "upload_margin": margin}
    for l_max, zeta, margin in product((20, 80, 200, 500), (1e-28, 2e-28, 4e-28, 3e-27), (1.0, 2.0))
]
"""Bits per pixel are not varied: a quarter of them with four times l_max is the same, except for rounding."""
EVERY = 40
"""The search plans only every n-th round, with this n."""
COARSE = "mobility.step_s=0.5"
"""The search simulates traffic in longer steps: five times as fast, with nearly the same results."""


def fashion_sized(experiment: vefl_sim.Experiment, streams: Streams) -> Dataset:
    """As many images and classes as Fashion-MNIST has; all images are black, because none is used."""
    images = np.zeros((60_000, 28, 28, 1), np.uint8)
    labels = np.repeat(np.arange(10, dtype=np.int32), 6_000)
    return Dataset("fashion-sized", images, labels, images[:10], labels[:10], 10)


def world(seed: int, settings: Sequence[str] = ()) -> vefl_sim.Experiment:
    """The paper's world without learning, with some keys changed."""
    tables = read_experiment(BASE).copy_of_tables()
    tables["learning"] = {"kind": "none"}
    override(tables, [f"run.seed={seed}", 'data.kind="__main__:fashion_sized"', *settings])
    return vefl_sim.from_tables(tables)


@dataclass(frozen=True)
class Drive:
    """The traffic of one run, as the server observes it at the start of each round."""

    scenario: scenario.Scenario
    snapshots: list[CoverageSnapshot]
    worst_rate_bps: dict[float, list[np.ndarray]]  # by carrier frequency, for each shot

    def crowd(self) -> dict[str, float]:
        """The number of unique CVs, and the mean number in coverage."""
        mean_in_coverage = float(np.mean([len(snapshot.cv) for snapshot in self.snapshots]))
        return {"unique CVs": len(self.scenario.shards), "CVs in coverage": mean_in_coverage}


def drive(experiment: vefl_sim.Experiment, carriers_ghz: Sequence[float] = ()) -> Drive:
    """Simulate only the traffic of a run, with the channels of several carriers at once."""
    prepared = scenario.build_scenario(experiment)
    mobility = prepared.mobility()
    channels = {
        ghz: scenario.make_channel(vefl_sim.with_settings(experiment, f"radio.carrier_ghz={ghz}"), prepared.streams)
        for ghz in carriers_ghz or (experiment.radio.carrier_ghz,)
    }
    scene, snapshots, worst_rate_bps = mobility.scene(), [], {ghz: [] for ghz in channels}
    for k in range(experiment.rounds):
        while True:
            for channel in channels.values():
                channel.move(scene)
            if scene.time_ns >= k * experiment.round_ns:
                break
            scene = mobility.advance()
        snapshots.append(_snapshot(k + 1, scene, prepared))
        for ghz, channel in channels.items():
            channel.begin_round(scene.time_ns)
            worst_rate_bps[ghz].append(channel.worst_case_rate_bps(snapshots[-1].cv))
        scene = mobility.advance()
    return Drive(prepared, snapshots, worst_rate_bps)


def _sojourn_s(scene: Scene, experiment: vefl_sim.Experiment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The CVs in coverage, their distances from the gNB and their sojourn bounds."""
    radius_m, mobility = experiment.radio.coverage_radius_m, experiment.mobility
    cvs = in_coverage(scene, radius_m)
    rows = np.searchsorted(scene.vehicle, cvs)
    x_m, y_m = scene.x_m[rows], scene.y_m[rows]
    bound_s = sojourn_bound_s(
        x_m, y_m, radius_m=radius_m, max_speed_mps=mobility.max_speed_mps, method=mobility.sojourn
    )
    return cvs, np.hypot(x_m, y_m), bound_s


def _snapshot(round: int, scene: Scene, prepared: scenario.Scenario) -> CoverageSnapshot:
    cvs, distance_m, sojourn_s = _sojourn_s(scene, prepared.experiment)
    return CoverageSnapshot(
        round=round, time_ns=scene.time_ns, cv=cvs, distance_m=distance_m, sojourn_s=sojourn_s,
        snr_per_watt=np.ones(len(cvs)), worst_rate_bps=np.ones(len(cvs)),
        samples=np.array([len(prepared.shards[cv]) for cv in cvs.tolist()], np.int64),
        agreements=[draw_agreement(cv, prepared.experiment.sla, prepared.streams) for cv in cvs.tolist()],
        success=np.ones(len(cvs)),
    )  # fmt: skip


def network(seed: int, settings: Sequence[str]) -> dict[str, float]:
    """All figures of `PAPER`, from full runs of all schemes."""
    figures = fast_bounds(seed, settings)
    for kind in SCHEMES:
        rounds = ["scheme.rounds=true"] if kind == "afa-cd" else []
        with tempfile.TemporaryDirectory() as folder:
            run = vefl_sim.simulate(world(seed, [f"scheme.kind={kind}", *rounds, *settings]), out=folder)
            figures |= scheme_targets(kind, run)
        print(f"seed {seed}, {kind}: mean cost {figures[f'{kind} cost']:.0f}", flush=True)
    return figures


def scheme_targets(kind: str, run: vefl_sim.Run) -> dict[str, float]:
    """The figures that the paper reports of one scheme, in %, and some that help to explain them."""
    rounds, events = run.rounds, run.events
    p_suc = rounds["p_suc" if kind == "pdpc" else "p_suc_with_ineligible"].dropna()
    return {
        "unique CVs": events.loc[events["kind"] == "coverage_entered", "cv"].nunique(),
        "CVs in coverage": rounds["in_coverage"].mean(),
        f"{kind} cost": rounds["cost"].mean(),
        f"{kind} cost < 700": 100 * (rounds["cost"] < 700).mean(),
        f"{kind} p_suc ≥ 0.9": 100 * (p_suc >= 0.9).mean(),
        f"{kind} p_suc ≥ 0.99": 100 * (p_suc >= 0.99).mean(),
        f"{kind} delivered": 100 * rounds["delivered"].sum() / max(rounds["ordered"].sum(), 1),
    }


def planned(drives: Sequence[Drive], carrier_ghz: float, plan: dict[str, Any]) -> dict[str, float]:
    """Shares in % of rounds with low cost and with high success, from the plans alone, as if every order arrived."""
    cost: dict[str, list[float]] = {kind: [] for kind in SCHEMES[:3]}
    eligible_share = []
    for a_drive in drives:
        constants = replace(wiring.round_constants(a_drive.scenario), **plan)
        schemes = {kind: make_part("scheme.kind", kind, a_drive.scenario.experiment) for kind in cost}
        rates = a_drive.worst_rate_bps[carrier_ghz]
        for snapshot, worst_rate_bps in [*zip(a_drive.snapshots, rates, strict=True)][::EVERY]:
            observation = observe(replace(snapshot, worst_rate_bps=worst_rate_bps), constants)
            plans = {kind: scheme.plan(observation) for kind, scheme in schemes.items()}
            for kind, scheme_plan in plans.items():
                cost[kind].append(scheme_plan.cost or 0.0)
            eligible_share.append(1 - len(plans["fdpc"].ineligible) / max(len(snapshot.cv), 1))
    shares = {f"{kind} cost < 700": 100 * float((np.array(own) < 700).mean()) for kind, own in cost.items()}
    reach = {
        f"fdpc p_suc ≥ {limit:g}": 100 * float((np.array(eligible_share) >= limit).mean()) for limit in (0.9, 0.99)
    }
    return shares | reach


def misfit(figures: dict[str, float]) -> float:
    """Mean distance to the figures of `PAPER` that are given, in percentage points; that of unique CVs is in %."""
    distances = {key: abs(figures[key] - PAPER[key]) for key in PAPER if key in figures}
    if "unique CVs" in distances:
        distances["unique CVs"] *= 100 / PAPER["unique CVs"]
    return float(np.mean(list(distances.values())))


def fast_bounds(seed: int, settings: Sequence[str]) -> dict[str, float]:
    """Shares of short sojourn bounds at 26.82 m/s, in %."""
    experiment = world(seed, [f"mobility.max_speed_mps={FAST_MPS}", *settings])
    mobility = scenario.make_traffic(experiment, Streams(seed))()
    scene, bounds_by_round = mobility.scene(), []
    while scene.time_ns < experiment.duration_ns:
        if scene.time_ns % experiment.round_ns == 0:
            bounds_by_round.append(_sojourn_s(scene, experiment)[-1])
        scene = mobility.advance()
    bound_s = np.concatenate(bounds_by_round)
    return {f"bound < {limit:g} s": 100 * float((bound_s < limit).mean()) for limit in (5.0, 2.5)}


def density(settings: Sequence[str], wanted: float = PAPER["unique CVs"]) -> float:
    """The mean number in coverage that gives as many unique CVs as in the paper; from seed 1, with one correction."""
    tried = 20.0
    for _ in range(2):
        experiment = world(1, [*settings, f"traffic.mean_in_coverage={tried}"])
        mobility = scenario.make_traffic(experiment, Streams(1))()
        tried = round(
            tried * wanted / len(visitors(mobility, experiment.radio.coverage_radius_m, experiment.duration_ns)), 1
        )
    return tried


def search(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One row per region, routes, carrier and plan; nothing in it depends on the learning."""
    for (blocks, exits), through in product(REGIONS, THROUGH):
        settings = [COARSE, f"roads.blocks={blocks}", f"roads.exits={exits}", f"traffic.through_share={through}"]
        wanted = density(settings)
        settings.append(f"traffic.mean_in_coverage={wanted}")
        drives = [drive(world(seed, settings), CARRIERS_GHZ) for seed in seeds]
        fast = [fast_bounds(seed, settings) for seed in seeds]
        traffic = pd.DataFrame([one.crowd() for one in drives]).mean()
        known = {"blocks": blocks, "exits": exits, "through": through, "wanted": wanted}
        known |= dict(traffic) | dict(pd.DataFrame(fast).mean())
        print(
            {key: value if isinstance(value, (str, list)) else round(value, 1) for key, value in known.items()},
            flush=True,
        )
        for carrier_ghz, plan in product(CARRIERS_GHZ, PLANS):
            row = known | {"carrier_ghz": carrier_ghz} | plan | planned(drives, carrier_ghz, plan)
            yield row | {"misfit": misfit(row)}


def print_targets(each: Sequence[dict[str, float]]) -> None:
    """Print the table of the docs: the paper's figures, and the mean and deviation of ours over the seeds."""
    table = pd.DataFrame(each)
    print(f"\n{'':24}{'paper':>8}{'ours':>9}{'s.d.':>7}   {len(each)} seeds")
    for key in [*PAPER, *(key for key in table if key not in PAPER)]:
        paper = f"{PAPER[key]:8.1f}" if key in PAPER else f"{'':8}"
        print(f"{key:24}{paper}{table[key].mean():9.1f}{table[key].std(ddof=1):7.1f}")
    print(f"\nmean distance to the paper: {misfit(dict(table.mean())):.1f} percentage points")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--search", action="store_true", help="search the grid from which the world was chosen (takes an hour)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("settings", nargs="*", metavar="TABLE.KEY=VALUE")
    options = parser.parse_args()
    if options.search and options.settings:
        parser.error("--search uses its own grid: leave out TABLE.KEY=VALUE")
    if not options.search:
        print_targets([network(seed, options.settings) for seed in options.seeds])
        return
    rows = pd.DataFrame(search(options.seeds)).sort_values("misfit")
    rows.to_csv(ROOT / "benchmarks" / "calibration.csv", index=False, float_format="%.4g")
    print(rows.head(20).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    main()
