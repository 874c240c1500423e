"""The TOML tables of planning and aggregation: [sla], [vefl], [server], [scheme], [agent] and [aggregation]."""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import (
    Count,
    CyclesRange,
    HertzRange,
    JoulesRange,
    MoneyRange,
    OneOf,
    PartName,
    Rate,
    Share,
    Table,
)
from vefl_sim.experiment.kinds import SCHEMES


class SlaTable(Table):
    """Service level agreements of the CVs; each value is drawn uniformly from its range, once per CV."""

    energy_budget_j: JoulesRange = (20.0, 30.0)
    """e_bud, the energy budget of a CV per round."""
    cycles_per_bit: CyclesRange = (20.0, 30.0)
    """c_v, CPU cycles per bit of data."""
    price_per_joule: MoneyRange = (5.0, 10.0)
    """φ_v, the price that a CV charges per joule."""
    base_fee: MoneyRange = (10.0, 20.0)
    """φ̄_v, the fee that a CV charges for each accepted order."""
    cpu_min_hz: HertzRange = (1e3, 5e3)
    """η_min, the lowest CPU frequency."""
    cpu_max_hz: HertzRange = (1.9e9, 2.8e9)
    """η_max, the highest CPU frequency."""
    cpu_capacitance: Annotated[float, Field(ge=1e-40, le=1e-15)] = 2e-28
    """ζ, the effective capacitance of the CPU, which uses (ζ/2)·η² joules per cycle."""


class VeflTable(Table):
    """The VEFL sub-problem: which CVs train, for how many iterations and at which CPU frequency."""

    method: Literal["lagrangian", "exact", "sca", "sca-printed"] = "lagrangian"
    """"lagrangian": with a bound on the optimality gap; "exact": that gap is closed by a MILP; "sca": the paper's
    Algorithm 2, corrected and solved by CVXPY; "sca-printed": Algorithm 2 as printed."""
    round_s: Annotated[float, Field(ge=6.25e-5, le=86_400)] = 5.0
    """t_th, the time between two aggregations."""
    budget: Annotated[float, Field(ge=0, le=1e15)] = 1000.0
    """Ξ, the amount of money that the server may spend per round."""
    min_local_iterations: Annotated[int, Field(ge=1, le=10_000)] = 1
    """l_des, the smallest number of iterations for a CV that can do that many."""
    max_local_iterations: Annotated[int, Field(ge=1, le=10_000)] = 80
    """l_max, the largest number of iterations."""
    sojourn_weight: Share = 0.5
    """λ̄ of Θ_v, the weight of the sojourn bound (1) against the data size (0)."""
    upload_share: Literal["all", "selected"] = "all"
    """z̃, the pRBs per CV in worst-case upload times: Z divided by all CVs in coverage (the paper) or by those that can
    be selected ("pdpc", "random")."""
    upload_margin: Annotated[float, Field(ge=1e-3, le=1e3)] = 1.0
    """Factor on t̄_tx, the upload time that plans reserve: plans are more cautious above 1, and less below."""


class ServerTable(Table):
    """The edge server."""

    early_close: bool = False
    """Aggregate as soon as every ordered update is received or lost, instead of at the end of the round."""
    retry_s: Annotated[float, Field(ge=0.01, le=3600)] = 1.0
    """Without rounds ("afa-cd", "fedbuff"): time after which a CV that had too little time left to train asks for an
    order again."""


class SchemeTable(Table):
    """The learning scheme, which plans the orders and weights the updates."""

    kind: Annotated[str, OneOf(SCHEMES)] = "pdpc"
    """"pdpc" selects CVs, "fdpc" uses all CVs that can take part; baselines "fedprox", "fedavg", "random", "fednova",
    "fedadam", "fedyogi", "scaffold", "feddyn", "oort"; against adversaries "median", "trimmed-mean", "krum"; without
    rounds "afa-cd", "fedbuff", "fedasync"; "centralized" trains on all data in one place; or `module:Class`."""
    selected: Count = 10
    """|C_k|, the largest number of CVs that get an order ("pdpc", "random", "oort")."""
    constrained: bool = True
    """Whether the delay, energy and cost constraints apply; false: every CV does l_max iterations, and every update is
    delivered."""
    rounds: bool = False
    """"afa-cd" in rounds, as the paper seems to have run it: the orders of "fedprox", and one server step per round."""


class AgentTable(Table):
    """A trained agent as a scheme (`scheme.kind = "vefl_sim.gym:PolicyScheme"`)."""

    policy: PartName | None = None
    """Its policy: `module:name` of a function, or of a class that is made without arguments, which is called with what
    the agent sees and returns an action."""
    action: Literal["count", "select", "plan"] = "count"
    """What it decides: how many CVs train, which ones, or how long each of them trains."""
    max_cvs: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Rows of the table of CVs that it sees."""
    levels: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Shares of a CV's feasible iterations that it can choose from ("plan")."""
    features: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """Names of the features of a CV that it sees; all if not given."""


class AggregationTable(Table):
    """How received updates are combined into the next model."""

    form: Literal["step", "models"] = "step"
    """"step": the model changes by the weighted differences, so a lost update changes nothing; "models": the next model
    is the weighted sum of the received models, so weights that sum to less than one shrink it."""
    weights_over: Literal["delivered", "ordered", "coverage"] | None = None
    """The CVs over which the weights sum to one. If not given, "delivered" ("fedprox", "fedavg", "afa-cd" in rounds) or
    "ordered" ("fdpc"); "coverage": all CVs in coverage, so the weights of CVs without a received update are
    missing from the sum."""
    sojourn_weight: Share = 1.0
    """λ of p_v ("fdpc"), the weight of the sojourn bound (1) against the data size (0)."""
    p_suc: Literal["realized", "history"] = "realized"
    """The divisor of a weight: 1 for a received update ("realized"), or the CV's success rate so far ("history")."""
    normalize: bool = False
    """Scale the applied weights to sum to one."""
    buffer: Count | None = None
    """Number of received updates after which the server makes a step ("afa-cd", "fedbuff"); if not given,
    `scheme.selected`."""
    server_rate: Rate | None = None
    """Learning rate of a server step along the mean gradient ("afa-cd"; 0.2 if not given), the mean difference of
    models ("fedbuff", "scaffold"; 1), the steps of the server's optimizer ("fedadam", "fedyogi"; 0.01), or weight of an
    update that is not stale ("fedasync"; 0.6)."""
    byzantine_share: Annotated[float, Field(ge=0, lt=0.5)] = 0.2
    """Share of the delivered updates that may be wrong: "trimmed-mean" drops this share at each end, and "krum" assumes
    that as many are adversaries."""
