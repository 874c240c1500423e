"""Random rounds, the best plan by brute force, and a check of the constraints; also for benchmarks/bench_vefl.py."""

import numpy as np
import pytest

from vefl_sim.experiment.experiment import SlaTable
from vefl_sim.optimize.vefl.problem import VeflPlan, VeflProblem

RADIUS_M, SPEED_MPS, ROUND_S = 500.0, 20.12, 5.0
BITS_PER_SAMPLE = 28 * 28 * 32
_RANGES = ("energy_budget_j", "cycles_per_bit", "price_per_joule", "base_fee", "cpu_min_hz", "cpu_max_hz")


def worked_example() -> VeflProblem:
    return VeflProblem(
        weight=np.array([0.5, 0.3, 0.2]),
        cycles=np.array([1e8, 2e8, 4e7]),
        time_s=np.array([4.0, 2.0, -0.1]),
        tx_energy_j=np.full(3, 0.1),
        energy_budget_j=np.full(3, 20.0),
        price_per_joule=np.full(3, 10.0),
        base_fee=np.full(3, 10.0),
        cpu_min_hz=np.full(3, 1e3),
        cpu_max_hz=np.full(3, 2e9),
        cpu_capacitance=2e-28,
        budget=1000.0,
        max_selected=2,
        min_iterations=1,
        max_iterations=50,
    )


def random_problem(seed: int, cvs: int = 5, l_max: int = 6, budget: float = 60.0, **others: object) -> VeflProblem:
    """Small problems in which every constraint binds for some CV; T may be negative."""
    rng = np.random.default_rng(seed)
    values = {
        "weight": rng.dirichlet(np.ones(cvs)),
        "cycles": rng.uniform(1e8, 2e9, cvs),
        "time_s": rng.uniform(-0.5, 5.0, cvs),
        "tx_energy_j": rng.uniform(0, 0.3, cvs),
        "energy_budget_j": rng.uniform(1, 10, cvs),
        "price_per_joule": rng.uniform(5, 10, cvs),
        "base_fee": rng.uniform(10, 20, cvs),
        "cpu_min_hz": rng.uniform(1e3, 5e3, cvs),
        "cpu_max_hz": rng.uniform(1.9e9, 2.8e9, cvs),
        "cpu_capacitance": 2e-28,
        "max_selected": 3,
        "min_iterations": 1,
    }
    return VeflProblem(**(values | {"budget": budget, "max_iterations": l_max} | others))  # type: ignore[arg-type]


def realistic_problem(seed: int, cvs: int, *, l_max: int = 100, budget: float = 1000.0) -> VeflProblem:
    """A round like those of a run: default SLAs, Dirichlet shares of 60,000 samples, CVs anywhere in coverage."""
    rng, sla = np.random.default_rng(seed), SlaTable()
    constants = {name: rng.uniform(*getattr(sla, name), cvs) for name in _RANGES}
    samples = 10 + np.floor(60_000 * rng.dirichlet(np.full(290, 0.5))[:cvs])  # about as uneven as α = 0.1, 10 classes
    sojourn_s = _sojourn_s(rng, cvs)
    tx_s = 5e-4 * np.ceil(rng.lognormal(np.log(400), 0.6, cvs))
    return VeflProblem(
        weight=(samples / samples.sum() + sojourn_s / sojourn_s.sum()) / 2,
        cycles=constants.pop("cycles_per_bit") * samples * BITS_PER_SAMPLE,
        time_s=np.minimum(ROUND_S, sojourn_s) - tx_s,
        tx_energy_j=0.2 * tx_s,
        cpu_capacitance=sla.cpu_capacitance,
        budget=budget,
        max_selected=10,
        min_iterations=1,
        max_iterations=l_max,
        **constants,
    )


def _sojourn_s(rng: np.random.Generator, cvs: int) -> np.ndarray:
    """Sojourn bounds: the smallest axis-parallel distance to the circle over u_max, for points uniform in the disc."""
    radius, angle = RADIUS_M * np.sqrt(rng.uniform(size=cvs)), rng.uniform(0, 2 * np.pi, cvs)
    x, y = np.abs(radius * np.cos(angle)), np.abs(radius * np.sin(angle))
    along = np.minimum(np.sqrt(RADIUS_M**2 - y**2) - x, np.sqrt(RADIUS_M**2 - x**2) - y)
    return along / SPEED_MPS


def brute_force(problem: VeflProblem) -> float:
    """The best Σ Θ·l over every combination of iterations; −1 if none is possible."""
    choice = np.indices(problem.most + 1).reshape(len(problem.most), -1)  # one column per combination
    cost = np.take_along_axis(np.column_stack([np.zeros(len(choice)), problem.cost]), choice, axis=1).sum(axis=0)
    possible = (cost <= problem.budget) & np.all((choice == 0) | (choice >= problem.least[:, None]), axis=0)
    taken = np.count_nonzero(choice, axis=0)
    possible &= taken == np.count_nonzero(problem.most) if problem.everybody else taken <= problem.max_selected
    return float((problem.weight @ choice)[possible].max(initial=-1.0))


def check_constraints(problem: VeflProblem, plan: VeflPlan) -> None:
    """Check C1–C6 from their definitions, and that cost and objective are those of the plan."""
    cv, l, cpu_hz = plan.selected, plan.iterations, plan.cpu_hz
    computed_j = l * problem.cpu_capacitance / 2 * problem.cycles[cv] * cpu_hz**2
    energy_j = computed_j + problem.tx_energy_j[cv]
    cost = float((energy_j * problem.price_per_joule[cv] + problem.base_fee[cv]).sum())
    assert np.all(np.diff(cv) > 0)
    if problem.everybody and not plan.dropped:
        assert cv.tolist() == np.flatnonzero(problem.most).tolist()
    elif not problem.everybody:
        assert len(cv) <= problem.max_selected  # C1
    assert np.all(l * problem.cycles[cv] <= cpu_hz * problem.time_s[cv] * (1 + 1e-9))  # C2, C3
    assert np.all(cpu_hz <= problem.cpu_max_hz[cv])
    assert np.all(cpu_hz >= problem.cpu_min_hz[cv])
    assert np.all(energy_j <= problem.energy_budget_j[cv] * (1 + 1e-9))  # C4
    assert cost <= problem.budget * (1 + 1e-9)  # C5
    assert np.all((l >= problem.least[cv]) & (l >= 1) & (l <= problem.max_iterations))  # C6
    assert plan.cost == pytest.approx(cost, rel=1e-9)
    assert plan.objective == pytest.approx(float(problem.weight[cv] @ l), rel=1e-9)
    assert plan.objective <= plan.bound * (1 + 1e-9)
