"""Use a user-defined scheme: the CVs with the longest stay train, all with the same number of iterations."""

import numpy as np

import vefl_sim


class LongestStay(vefl_sim.Scheme):
    """Selects the CVs with the largest sojourn bound; each trains ten iterations at its lowest feasible frequency."""

    def __init__(self, experiment: vefl_sim.Experiment) -> None:
        self.selected = experiment.scheme.selected

    def plan(self, observation: vefl_sim.Observation) -> vefl_sim.Plan:
        problem = observation.problem()
        feasible = np.flatnonzero(problem.most >= 10)  # time, CPU and energy allow ten iterations
        longest = feasible[np.argsort(-observation.snapshot.sojourn_s[feasible], kind="stable")]
        chosen = np.sort(longest[: self.selected])
        return vefl_sim.Plan(observation.cv[chosen], np.full(len(chosen), 10), problem.cpu_hz[chosen, 9])

    def aggregate(self, observation, plan, delivered) -> np.ndarray:
        return np.full(len(delivered), 1 / len(plan.cv))


if __name__ == "__main__":
    base = vefl_sim.from_tables(
        {
            "run": {"name": "own-scheme", "rounds": 4},
            "data": {"train_samples": 4000},
            "learning": {"kind": "none"},
        }
    )
    for scheme in ("pdpc", "__main__:LongestStay"):
        run = vefl_sim.simulate(vefl_sim.with_settings(base, f"scheme.kind={scheme}"))
        stay_s = run.vehicles.query("state == 'delivered'")["sojourn_ns"].mean() / 1e9
        print(f"{scheme:21s} mean cost {run.rounds['cost'].mean():6.1f}, mean sojourn bound {stay_s:5.2f} s")
