"""Compares our mobility model with references: a platoon in SUMO, the sojourn bound by geometry, the paper's counts.

`python -m vefl_sim check mobility` prints the sheet and statistics of the default traffic at four speeds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from vefl_sim.analysis.references.sheet import Check, published
from vefl_sim.core.arrays import Floats
from vefl_sim.core.clock import to_ns
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment, MobilityTable, RunTable
from vefl_sim.mobility.coverage import crossings, in_coverage, sojourn_bound_of, sojourn_bound_s
from vefl_sim.mobility.idm import IdmParams, follow
from vefl_sim.mobility.scene import Mobility

_FIRST_S, _STEP_S, _FRONT_M, _SPACING_M = 0.1, 0.1, 500.0, 5.0 + 24.058437670306034
_DRIVER = IdmParams(1.5, 2.0, 1.2, 2.0, 20.12, 5.0)
SPEEDS_MPS = (0.45, 11.18, 20.12, 26.82)
_EVERY_S = 5.0  # the paper's round length


def mobility_sheet() -> Iterator[Check]:
    """All comparisons of the mobility model."""
    values = published("mobility")
    platoon_m = _platoon_m(values["knots"])
    for time_s, follower, reference_m in values["platoon"]:
        ours = float(platoon_m[round((time_s - _FIRST_S) / _STEP_S), follower - 1])
        yield Check(f"platoon, follower {follower} at {time_s:g} s", "SUMO 1.28.0", reference_m, ours, 1e-3, "m")
    for x_m, y_m, radius_m, speed_mps, reference_s in values["sojourn"]:
        (ours,) = sojourn_bound_s(np.array([x_m]), np.array([y_m]), radius_m=radius_m, max_speed_mps=speed_mps)
        yield Check(f"sojourn bound at ({x_m:g}, {y_m:g})", "geometry", reference_s, float(ours), 5e-5, "s")
    for speed_mps, bound_s, reference in values["disc"]:
        what = f"uniform disc, bound < {bound_s:g} s at {speed_mps:g} m/s"
        yield Check(what, "geometry", reference, _disc_share(speed_mps, bound_s), 5e-3, "")


@dataclass(frozen=True)
class Survey:
    """Statistics of one simulation of the traffic."""

    unique_cvs: int
    """Different CVs that were in coverage at some instant."""
    in_coverage: float
    """CVs in coverage, mean over time."""
    speed_mps: float
    """Speed of all vehicles, mean over time and vehicles."""
    sojourn_s: Floats
    """Sojourn bounds of all CVs in coverage at the start of every round of 5 s, sorted."""

    def share_below(self, bound_s: float) -> float:
        """Share of the sojourn bounds that are below a time."""
        return float(np.searchsorted(self.sojourn_s, bound_s) / max(self.sojourn_s.size, 1))


def survey(mobility: Mobility, experiment: Experiment, duration_s: float) -> Survey:
    """Collect the statistics of `duration_s` of traffic; this advances `mobility`, so do not share it with a run."""
    radius_m, scene, bound_s = experiment.radio.coverage_radius_m, mobility.scene(), sojourn_bound_of(experiment)
    unique = set(in_coverage(scene, radius_m).tolist())
    counts, speeds, bounds = [], [], [np.empty(0)]
    for step in range(to_ns(duration_s) // mobility.step_ns):
        cvs = in_coverage(scene, radius_m)
        counts.append(cvs.size)
        speeds.append(scene.speed_mps)
        if step * mobility.step_ns % to_ns(_EVERY_S) == 0:
            covered = scene.rows(np.searchsorted(scene.vehicle, cvs))
            bounds.append(bound_s(covered.x_m, covered.y_m))
        before, scene = scene, mobility.advance()
        unique.update(crossing.cv for crossing in crossings(before, scene, radius_m) if crossing.entered)
    speed_mps = np.concatenate(speeds)
    mean_mps = float(speed_mps.mean()) if speed_mps.size else 0.0
    return Survey(len(unique), float(np.mean(counts)), mean_mps, np.sort(np.concatenate(bounds)))


def default_traffic(speed_mps: float, seed: int, duration_s: float = 2000.0) -> Survey:
    """Statistics of the traffic of the default experiment at this maximum speed."""
    from vefl_sim.mobility.grid.traffic import IdmTraffic

    experiment = Experiment(run=RunTable(name="check"), mobility=MobilityTable(max_speed_mps=speed_mps))
    return survey(IdmTraffic(experiment, Streams(seed)), experiment, duration_s)


def _platoon_m(knots: Sequence[tuple[float, float]]) -> np.ndarray:
    """Positions of the followers in m, [steps of 0.1 s, followers]; `knots`: time and speed of the first vehicle."""
    seconds, speeds = np.transpose(knots)
    lead_mps = np.interp(np.arange(_FIRST_S, 160.0, _STEP_S), seconds, speeds)
    driven_m = np.cumsum((lead_mps[1:] + lead_mps[:-1]) / 2 * _STEP_S)
    front_m = _FRONT_M + np.concatenate(([0.0], driven_m))
    start = front_m[0] - _SPACING_M * np.arange(1, 10), np.full(9, 15.0)
    return follow((front_m, lead_mps), start, _DRIVER, _STEP_S)[0]


def _disc_share(speed_mps: float, bound_s: float) -> float:
    """Share of a uniform disc with a smaller sojourn bound, by counting points of a fine grid."""
    axis_m = np.linspace(-500.0, 500.0, 2001)
    x_m, y_m = (points.ravel() for points in np.meshgrid(axis_m, axis_m))
    inside = x_m**2 + y_m**2 <= 500.0**2
    bounds_s = sojourn_bound_s(x_m[inside], y_m[inside], radius_m=500.0, max_speed_mps=speed_mps)
    return float((bounds_s < bound_s).mean())


def traffic_lines(seeds: Sequence[int] = (1, 2, 3), duration_s: float = 2000.0) -> Iterator[str]:
    """Statistics of the default traffic at the paper's speeds; yields each line as soon as it is computed."""
    yield ""
    yield f"default traffic, {duration_s:g} s, mean of seeds {', '.join(map(str, seeds))}"
    yield f"{'u_max':>9}{'unique CVs':>26}{'in coverage':>13}{'mean speed':>13}{'bound < 5 s':>13}{'< 2.5 s':>10}"
    for speed_mps in SPEEDS_MPS:
        surveys = [default_traffic(speed_mps, seed, duration_s) for seed in seeds]
        unique = f"{mean(s.unique_cvs for s in surveys):.0f} ({', '.join(str(s.unique_cvs) for s in surveys)})"
        covered, driven_mps = mean(s.in_coverage for s in surveys), mean(s.speed_mps for s in surveys)
        below = [mean(s.share_below(bound_s) for s in surveys) for bound_s in (5.0, 2.5)]
        yield f"{speed_mps:5g} m/s{unique:>26}{covered:13.1f}{driven_mps:9.2f} m/s{below[0]:13.1%}{below[1]:10.1%}"
    yield "paper: 287 to 299 unique CVs in five runs of 2000 s; at 26.82 m/s about 28% below 5 s, 13% below 2.5 s"
