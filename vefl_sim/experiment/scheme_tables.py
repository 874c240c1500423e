"""The TOML tables of who trains and what an update counts: [sla], [vefl], [server], [scheme] and [aggregation]."""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import (
    Count,
    NonNegative,
    NonNegativeRange,
    PartName,
    Positive,
    PositiveRange,
    Share,
    Table,
)


class SlaTable(Table):
    """Service level agreements; ranges are drawn uniformly, once per CV."""

    energy_budget_j: PositiveRange = (20.0, 30.0)
    """e_bud, per round."""
    cycles_per_bit: PositiveRange = (20.0, 30.0)
    """c_v, CPU cycles per bit of data."""
    price_per_joule: NonNegativeRange = (5.0, 10.0)
    """φ_v."""
    base_fee: NonNegativeRange = (10.0, 20.0)
    """φ̄_v, for each order taken."""
    cpu_min_hz: PositiveRange = (1e3, 5e3)
    """η_min."""
    cpu_max_hz: PositiveRange = (1.9e9, 2.8e9)
    """η_max."""
    cpu_capacitance: Positive = 2e-28
    """ζ; the CPU spends (ζ/2)·η² joules per cycle."""


class VeflTable(Table):
    """The VEFL sub-problem: who trains, how long, how fast."""

    method: Literal["lagrangian", "exact", "sca", "sca-printed"] = "lagrangian"
    """"lagrangian": with a bound on the gap; "exact": that gap closed by a MILP; "sca": the paper's Algorithm 2,
    repaired, by CVXPY; "sca-printed": the same as printed."""
    round_s: Positive = 5.0
    """t_th, the time between two aggregations."""
    budget: NonNegative = 1000.0
    """Ξ, the server's money per round."""
    min_local_iterations: Count = 1
    """l_des, wanted of a CV that can do it."""
    max_local_iterations: Annotated[int, Field(ge=1, le=10_000)] = 80
    """l_max."""
    sojourn_weight: Share = 0.5
    """λ̄ of Θ_v: sojourn bound (1) against data size (0)."""
    upload_share: Literal["all", "selected"] = "all"
    """z̃: Z over all CVs in coverage (the paper) or over those that can be selected ("pdpc", "random")."""
    upload_margin: Positive = 1.0
    """Factor on t̄_tx, the upload time that plans reserve: above 1 plans are more careful, below 1 bolder."""


class ServerTable(Table):
    """The edge server."""

    early_close: bool = False
    """Aggregate as soon as every ordered update is in or lost, instead of at the round's end."""
    retry_s: Annotated[float, Field(ge=0.01, le=3600)] = 1.0
    """Without rounds ("afa-cd", "fedbuff"): a CV that had no time left to train asks again after so long."""


class SchemeTable(Table):
    """The learning scheme: plan and aggregation."""

    kind: Literal["pdpc", "fdpc", "fedprox", "fedavg", "random", "afa-cd", "fedbuff", "centralized"] | PartName = "pdpc"
    """"pdpc" selects CVs, "fdpc" takes all who can; baselines "fedprox", "fedavg", "random"; without rounds "afa-cd",
    "fedbuff"; "centralized" has all data in one place; or `module:Class`."""
    selected: Count = 10
    """|C_k|, the largest number of CVs that get an order ("pdpc", "random")."""
    constrained: bool = True
    """Delay, energy and cost constraints hold; false: l_max iterations each, and everything is delivered."""
    rounds: bool = False
    """"afa-cd" in rounds, as the paper seems to have run it: the orders of "fedprox", one step per round."""


class AggregationTable(Table):
    """How received updates become the next model."""

    form: Literal["step", "models"] = "step"
    """"step": the model moves by the weighted differences, so a lost update moves nothing; "models": the next model is
    the weighted sum of the received models, so weights that do not sum to one shrink it."""
    weights_over: Literal["delivered", "ordered", "coverage"] | None = None
    """The CVs whose weights sum to one. If not given, "delivered" ("fedprox", "fedavg", "afa-cd" in rounds) or
    "ordered" ("fdpc"); "coverage": all CVs in coverage, so that whoever is missing is missing from the sum."""
    sojourn_weight: Share = 1.0
    """λ of p_v (FDPC)."""
    p_suc: Literal["realized", "history"] = "realized"
    """What the rule divides by: 1 for a received update, or the CV's success rate so far."""
    normalize: bool = False
    """Scale the applied weights to sum to one."""
    buffer: Count | None = None
    """Updates that make the server step ("afa-cd", "fedbuff"); if not given, `scheme.selected`."""
    server_rate: Positive | None = None
    """Of such a step: along the mean gradient ("afa-cd"; 0.2 if not given) or the mean difference of models
    ("fedbuff"; 1)."""
