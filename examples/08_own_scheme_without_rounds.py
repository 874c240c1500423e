"""Use a user-defined scheme without rounds: the server steps at every third update, and discounts stale ones."""

import numpy as np

import vefl_sim


class Discounted(vefl_sim.AsynchronousScheme):
    """A CV that asks gets an order of at most ten iterations; an update s steps late has the weight 1/(3·(1 + s))."""

    buffer = 3

    def plan(self, observation: vefl_sim.Observation) -> vefl_sim.Plan:
        problem = observation.problem()
        rows = np.flatnonzero(problem.most >= 1)  # time, CPU and energy allow at least one iteration
        iterations = np.minimum(problem.most[rows], 10)
        return vefl_sim.Plan(observation.cv[rows], iterations, problem.cpu_hz[rows, iterations - 1])

    def weights(self, received: vefl_sim.Received) -> np.ndarray:
        return 1 / (self.buffer * (1 + received.staleness))


if __name__ == "__main__":
    base = vefl_sim.from_tables(
        {
            "run": {"name": "without-rounds", "rounds": 4},
            "data": {"train_samples": 4000},
            "learning": {"kind": "none"},
        }
    )
    for scheme in ("afa-cd", "__main__:Discounted"):
        rounds = vefl_sim.simulate(vefl_sim.with_settings(base, f"scheme.kind={scheme}")).rounds
        delivered, steps, staleness = rounds["delivered"].sum(), rounds["steps"].sum(), rounds["staleness"].mean()
        print(f"{scheme:19s} {delivered} updates delivered, {steps} server steps, mean staleness {staleness:.1f}")
