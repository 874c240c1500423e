"""Statistics of traffic in the coverage of the gNB: number of CVs, unique CVs, speeds and sojourn bounds."""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.arrays import Floats
from vefl_sim.core.clock import to_ns
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.mobility.coverage import crossings, in_coverage, sojourn_bound_of
from vefl_sim.mobility.scene import Mobility

EVERY_S = 5.0  # the paper's round length


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
        if step * mobility.step_ns % to_ns(EVERY_S) == 0:
            covered = scene.rows(np.searchsorted(scene.vehicle, cvs))
            bounds.append(bound_s(covered.x_m, covered.y_m))
        before, scene = scene, mobility.advance()
        unique.update(crossing.cv for crossing in crossings(before, scene, radius_m) if crossing.entered)
    speed_mps = np.concatenate(speeds)
    mean_mps = float(speed_mps.mean()) if speed_mps.size else 0.0
    return Survey(len(unique), float(np.mean(counts)), mean_mps, np.sort(np.concatenate(bounds)))
