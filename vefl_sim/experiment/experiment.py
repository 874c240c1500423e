"""An experiment: one frozen, strictly typed model per TOML table.

Every key except `run.name` has a default; names contain the units, and descriptions the paper's symbols.
A key that the chosen built-in method does not use is refused (`unused_keys`), because a parameter that silently does
nothing is misleading.
"""

import math
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import ConfigDict, Field

from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.experiment.fields import (
    Arguments,
    BitCount,
    Blocks,
    Count,
    CyclesRange,
    DelaySpread,
    HertzRange,
    Interval,
    JoulesRange,
    MoneyRange,
    OneOf,
    PartName,
    Place,
    Point,
    Rate,
    Seconds,
    Share,
    Table,
    Watts,
)


class RunTable(Table):
    """Name, seed and length of the run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """First part of the run directory's name; letters, digits, dot, dash and underscore."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of all random streams."""
    duration_s: Seconds | None = None
    """Simulated time; the run has as many whole rounds as fit. 2000 s if neither this nor `rounds` is given."""
    rounds: Count | None = None
    """Number of rounds, instead of `duration_s`."""
    checkpoint_every: Interval | None = None
    """Rounds between two checkpoints; if not given, about one checkpoint per minute of wall time. Affects neither the
    results nor the name of the run directory."""
    keep_checkpoints: bool = False
    """Keep all checkpoints, also those of a finished run, so that branches start from the nearest one."""
    watch: Annotated[tuple[PartName, ...], Field(strict=False)] | None = None
    """Watchers of the run, as `module:name`, such as `vefl_sim.records.watchers:tensorboard` and `…:mlflow`. Affects
    neither the results nor the name of the run directory."""


class RoadsTable(Table):
    """The street grid, with the gNB at its centre."""

    block_m: Annotated[float, Field(ge=20, le=10_000)] = 128.0
    """Side of a square block (downtown Raleigh: 420 ft)."""
    blocks: Blocks = 8
    """Blocks along each side of the grid, or [along x, along y] for a rectangle, whose streets may end within
    coverage."""
    exits: Literal["all", "outside"] = "all"
    """Streets by which vehicles enter and leave: all that lead out of the grid, or only those that end outside
    coverage, so that no trip begins or ends within coverage."""
    signals: Literal["fixed", "none"] = "fixed"
    """"fixed": traffic lights with a fixed cycle at every junction; "none": vehicles cross in the order of arrival."""
    green_s: Annotated[float, Field(ge=1, le=600)] = 20.0
    """Green time of a signal per direction; amber follows, for the time needed to stop from u_max, at least 3 s."""

    @property
    def blocks_xy(self) -> tuple[int, int]:
        """Blocks along x and along y."""
        return (self.blocks, self.blocks) if isinstance(self.blocks, int) else self.blocks

    @property
    def nearest_end_m(self) -> float:
        """Distance from the gNB to the nearest end of a street that leads out of the grid."""
        sides = [self.blocks_xy, self.blocks_xy[::-1]]
        return min(self.block_m * math.hypot(along / 2 + 1, across % 2 / 2) for along, across in sides)


class MobilityTable(Table):
    """How vehicles move."""

    kind: Annotated[str, OneOf("mobility.kind")] = "idm"
    """"idm": the intelligent driver model on the grid; "playback": a recording; "sumo": SUMO on a map; or
    `module:Class`."""
    file: str = ""
    """"playback": a run directory or its mobility.parquet, or SUMO's floating car data as .xml, .xml.gz or .parquet, in
    metres and not in degrees. "sumo": a .sumocfg, or a map as .net.xml, .osm or .osm.xml, which may end in .gz.
    A relative path starts at the folder of the experiment file or, if it does not exist there, at the current
    directory."""
    origin_m: Point | None = None
    """Position of the gNB in the coordinates of the recording ("playback"; if not given, [0, 0]) or of the road net
    ("sumo"; if not given, its centre)."""
    origin_deg: Place | None = None
    """Position of the gNB as latitude and longitude ("sumo"), instead of `origin_m`."""
    start_s: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    """Time in the recording or in SUMO at which the run begins ("playback", "sumo"); if not given, the first time of
    the recording or configuration or, on a map, the time when the traffic has settled (`traffic.warm_start`)."""
    step_s: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Time between two computed positions of a vehicle; positions in between are interpolated."""
    max_speed_mps: Annotated[float, Field(ge=0.01, le=100)] = 20.12
    """u_max: desired speed of the driver model and the server's worst case for the sojourn bound."""
    max_accel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 1.5
    """ū₁, the largest acceleration of the driver model."""
    comfort_decel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 2.0
    """ū₂, the comfortable deceleration of the driver model."""
    headway_s: Annotated[float, Field(ge=0.01, le=60)] = 1.2
    """t_dst, the desired time headway."""
    min_gap_m: Annotated[float, Field(ge=0.01, le=100)] = 2.0
    """s_saf, the gap at standstill."""
    length_m: Annotated[float, Field(ge=0.5, le=50)] = 5.0
    """Length of a vehicle."""
    driver_spread: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    """Variation between drivers: ū₁, ū₂, t_dst and s_saf differ by up to this share up or down, desired speeds only
    down."""
    sojourn: Literal["axis", "radial"] = "axis"
    """Distance to the coverage circle for the sojourn bound: smallest along an axis (the paper), or radial."""


class SumoTable(Table):
    """Settings of SUMO (`mobility.kind = "sumo"`)."""

    client: Literal["libsumo", "traci"] = "libsumo"
    """"libsumo": SUMO runs within the simulator's process; "traci": in a separate process. Affects neither the results
    nor the name of the run directory."""
    lane_limits: bool = True
    """Whether drivers obey the speed limits of lanes and slow down for turns; false: only u_max limits them, as on the
    built-in grid."""
    fringe_factor: Annotated[float, Field(ge=1, le=10_000)] = 10.0
    """How many times more trips begin and end at the edge of the map than elsewhere, per street."""


class TrafficTable(Table):
    """How many vehicles drive and where they go."""

    mean_in_coverage: Annotated[float, Field(gt=0, le=10_000)] | None = None
    """Target for the mean number of vehicles in coverage; sets the arrival rate. 35 if neither this nor
    `arrivals_per_s` is given."""
    arrivals_per_s: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Rate of the Poisson arrivals at the border, instead of `mean_in_coverage`."""
    warm_start: bool = True
    """Whether the run starts with vehicles on the streets."""
    cv_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the vehicles that are connected (CVs); the others only take part in the traffic."""
    through_share: Share = 0.0
    """Share of the vehicles that take a shortest route to another point on the border; the others turn at random."""
    leaving_weight: Annotated[float, Field(gt=0, le=1)] = 0.25
    """For vehicles that turn at random: the weight of a turn that leaves the grid against the same turn inside it."""


class RadioTable(Table):
    """The 5G-NR uplink: one cell, one bandwidth part."""

    channel: Annotated[str, OneOf("radio.channel")] = "uma"
    """"uma": TR 38.901 urban macro; or `module:Class`, which then provides path loss, shadowing and fading."""
    coverage_radius_m: Annotated[float, Field(gt=0, le=5000)] = 500.0
    """r, the radius of the coverage circle around the gNB."""
    carrier_ghz: Annotated[float, Field(ge=0.5, le=100)] = 3.5
    """Carrier frequency of the path-loss model."""
    prbs: Annotated[int, Field(ge=1, le=275)] = 10
    """Z, the number of pRBs."""
    prb_bandwidth_hz: Annotated[float, Field(gt=0, le=1e9)] = 1.8e6
    """ω, the bandwidth of a pRB; a whole number of 12-subcarrier blocks (the paper bundles 5 × 360 kHz)."""
    numerology: Annotated[int, Field(ge=0, le=4)] = 1
    """n̄; the slot length is 1 ms / 2^n̄."""
    antennas: Annotated[int, Field(ge=1, le=256)] = 4
    """N, the number of antennas at the gNB; CVs have one."""
    on: bool = True
    """Whether the gNB gives out pRBs; with `[[change]]`, an outage."""
    max_tx_power_w: Watts = 0.2
    """P_max, the largest transmit power of a CV over all its pRBs."""
    fading: Literal["rayleigh", "jakes", "rician", "none"] = "rayleigh"
    """"rayleigh": independent from slot to slot; "jakes": Rayleigh fading, correlated by J₀ over the
    distance driven; "rician": the same with a direct path for CVs with line of sight; "none": the mean channel."""
    rician_k_db: Annotated[float, Field(ge=-40, le=40)] = 9.0
    """K, the power of the direct path over that of the scattered ones ("rician"); 9 dB is the mean of TR 38.901 UMa."""
    delay_spread_s: DelaySpread = None
    """Root-mean-square delay spread, which correlates the pRBs: 0 makes all alike, "38.901" takes the UMa medians with
    and without line of sight; if not given, pRBs fade independently."""
    csi_delay_slots: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Age of the channel knowledge with which a slot is decided; a grant above the capacity of its slot is lost. 0: the
    gNB knows the channel of the slot (the paper)."""
    csi_margin_db: Annotated[float, Field(ge=0, le=60)] = 0.0
    """How much worse than measured the gNB takes channels to be (`csi_delay_slots`), so that fewer grants are lost."""
    power: Literal["optimized", "open-loop"] = "optimized"
    """Transmit power: chosen in the RAT sub-problem (the paper), or by the open loop of TS 38.213 from path loss."""
    p0_dbm: Annotated[float, Field(ge=-202, le=60)] = -80.0
    """P0, the power that the open loop aims at for a resource block, before the path loss is compensated."""
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.8
    """α, the share of the path loss (dB) that the open loop compensates."""
    large_scale: Literal["step", "round"] = "step"
    """When path loss, line of sight and shadowing of a CV change: in every step of the traffic ("step"), or only at the
    start of a round ("round"; of a window of t_th, if the scheme has no rounds), where a CV that enters later keeps
    those of the first step in which it is in coverage. Fast fading always goes on."""
    shadowing: Literal["correlated", "none"] = "correlated"
    """Log-normal shadowing (4/6 dB), correlated over the distance driven."""
    los: Literal["random", "always", "never"] = "random"
    """Line of sight: random with the UMa probability, or fixed."""
    noise_dbm_per_hz: Annotated[float, Field(ge=-300, le=0)] = -174.0
    """Thermal noise density."""
    noise_figure_db: Annotated[float, Field(ge=0, le=50)] = 5.0
    """Noise figure of the gNB."""
    gnb_height_m: Annotated[float, Field(ge=10, le=150)] = 25.0
    """Height of the gNB's antennas."""
    cv_height_m: Annotated[float, Field(ge=1.5, le=13)] = 1.5
    """Height of a CV's antenna."""
    flexible_symbol_uplink: bool = True
    """Whether the flexible symbol carries uplink data: overhead υ = 1/14, else 2/14."""

    @property
    def csi_margin(self) -> float:
        """Factor on a measured SNR, from `csi_margin_db`; 1 where the gNB knows the channel."""
        return float(10 ** (-self.csi_margin_db / 10)) if self.csi_delay_slots else 1.0


class MacTable(Table):
    """When and in which order CVs may transmit."""

    start: Literal["tau", "ready"] = "tau"
    """A CV may transmit from its τ_v on ("tau", the paper) or as soon as its training ends ("ready")."""
    scheduler: Annotated[str, OneOf("mac.scheduler")] = "edf"
    """"edf": Algorithm 3, earliest deadline first, ties by backlog; or `module:function`."""
    tdd: Annotated[str, Field(pattern=r"^[UDS]+$", max_length=320)] = "U"
    """Uplink, downlink and special slots, as a pattern that repeats, such as "DDDSU"; "U": all slots are uplink."""
    special_uplink_symbols: Annotated[int, Field(ge=0, le=12)] = 2
    """Uplink symbols of a special slot "S"."""
    grant_delay_slots: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Slots from a report of a CV's backlog to the first slot that can be granted because of it."""
    bsr_slots: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Slots from one buffer status report of a CV to the next; 1: the gNB knows the backlog in every slot."""


class RatTable(Table):
    """The RAT sub-problem: allocation of pRBs and transmit power in each slot."""

    method: Annotated[str, OneOf("rat.method")] = "auto"
    """"auto": "exact" where that is fast (up to 12 pRBs), else "large", which gives a bound on the optimality gap;
    "equal", "max-snr", "proportional-fair": baseline policies; "sca", "sca-perspective": the paper's Algorithm 4,
    solved by CVXPY (slow); or `module:function`."""
    efficiency_weight: Annotated[float, Field(ge=0, le=1e12)] = 1.0
    """C/(κS), the weight of energy efficiency against backlog, for the optimizing methods; above the limit,
    rounding would hide the backlog."""
    circuit_power_w: Annotated[float, Field(ge=0, le=1e4)] = 0.0
    """Added to the transmit power of every scheduled CV in the energy efficiency β; 0 in the paper."""


class DownlinkTable(Table):
    """How CVs get the model."""

    kind: Literal["ignored", "broadcast"] = "ignored"
    """"ignored": a CV has the model with its order (the paper); "broadcast": the gNB sends it to all CVs of a plan at
    the rate of the slowest, and a CV trains when it has the model."""
    rate_floor: Annotated[float, Field(ge=1, le=1e12)] = 1e6
    """Least rate of a broadcast, in bit/s; CVs with a worse channel are assumed to get the model at this rate."""
    tx_power_w: Watts = 40.0
    """Transmit power of the gNB over all pRBs; 46 dBm is that of a macro cell."""
    noise_figure_db: Annotated[float, Field(ge=0, le=50)] = 9.0
    """Noise figure of a CV's receiver."""


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

    kind: Annotated[str, OneOf("scheme.kind")] = "pdpc"
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


class FlowerTable(Table):
    """A strategy of Flower as a scheme (`scheme.kind = "vefl_sim.flower:Strategy"`)."""

    strategy: PartName | None = None
    """The strategy: `module:name` of a class of `flwr.server.strategy`, or of a class or function of your own."""
    arguments: Arguments | None = None
    """Its arguments by name, as a table [flower.arguments]."""
    select: bool = False
    """Whether it also chooses who trains (`configure_fit`), among the CVs in coverage that can do an iteration;
    otherwise all of them train."""


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


class DataTable(Table):
    """The data set and how it is split over the CVs."""

    kind: Annotated[str, OneOf("data.kind")] = "signs"
    """"signs": traffic signs drawn by the program; "mnist", "fashion-mnist", "cifar10", "gtsrb": the public data sets;
    "folder": your own images; "positions": where a CV will be, recorded in the run's own traffic; or
    `module:function`."""
    dir: str = ""
    """Folder with the files of a data set other than "signs" and "positions"; if empty, the folder to which `data get`
    downloads them. "folder": a folder or a .zip of train/<class>/<image> and test/<class>/<image>. A relative path is
    resolved like `mobility.file`."""
    train_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Number of training samples over all CVs, drawn at random from the data set; if not given, 12000 ("signs") or
    all."""
    test_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Number of test samples, drawn in the same way; if not given, 2000 ("signs") or all."""
    validation_samples: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of training samples that are held out and used for evaluation instead of the test set, to choose
    parameters; 0: evaluate on the test set."""
    image_px: Annotated[int, Field(ge=16, le=128)] = 28
    """Side length to which images are drawn or resized ("signs", "gtsrb", "folder"); other data sets have a fixed
    size."""
    horizon_s: Annotated[int, Field(ge=1, le=30)] = 3
    """How far ahead a position is predicted, in whole seconds ("positions")."""
    partition: Annotated[str, OneOf("data.partition", own=False)] = "dirichlet"
    """How the training set is split over CVs: by label ("dirichlet"), at random ("iid"), in shards of one or two
    classes, or as recorded ("own", for data sets that CVs have recorded). Groups (GTSRB: the pictures of one sign) stay
    together."""
    holders: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of CVs that the training set is split over. CVs take the shares in the order in which they first enter
    coverage, and shares that nobody takes stay unused; so a shorter run is the beginning of a longer one. 0: over those
    that enter coverage during the run."""
    dirichlet_alpha: Annotated[float, Field(ge=1e-6, le=1e9)] = 0.1
    """α of the label distribution over CVs; a small α gives skewed labels ("dirichlet")."""
    shards_per_cv: Annotated[int, Field(ge=1, le=1000)] = 2
    """Number of shards per CV; a shard is a block of consecutive samples of the training set sorted by class
    ("shards")."""
    min_samples: Count = 10
    """Every CV holds at least this many samples."""
    bits_per_value: BitCount = 32
    """Bits per pixel and channel in the data size D_v."""


class ModelTable(Table):
    """The neural network that is trained."""

    factory: PartName = "vefl_models.cnn:cnn"
    """`module:factory` of a Flax model."""
    float_bits: BitCount = 32
    """FPP, the floating-point precision that the paper's payload counts: 1 + FPP bits per parameter. It changes the
    size of an update, not its numbers; `update.codec` changes both."""
    start: str | None = None
    """Initial model ω_0: a file with its parameters, such as the `model.npz` of another run; if not given, they are
    drawn with `run.seed`. A relative path is resolved like `mobility.file`."""


class LearningTable(Table):
    """Local training and evaluation."""

    kind: Literal["jax", "none"] = "jax"
    """"jax" trains the model; "none" simulates all but the training, with the same sample and parameter
    counts."""
    loss: Annotated[str, OneOf("learning.loss")] = "cross-entropy"
    """What training minimises: "cross-entropy" for classes, "mse" (mean squared error) for targets that are numbers,
    or `module:name`, a function of outputs and targets."""
    learning_rate: Rate = 0.05
    """δ, the learning rate of local training."""
    proximal_mu: Annotated[float, Field(ge=0, le=1e6)] = 0.01
    """μ of the proximal term."""
    optimizer: Literal["sgd", "adagrad", "adam", "adamw", "lamb", "lion", "nadam", "radam", "rmsprop", "yogi"] = "sgd"
    """Optimizer of the local steps: "sgd" is plain gradient descent, as in the paper; the others are those of optax,
    with a new optimizer state for each order."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of the local steps ("sgd"): v ← momentum·v + gradient, ω ← ω − δ·v, from v = 0 for each order."""
    batch_size: Count | None = None
    """Samples per local step; if not given, all samples of the CV, as in the paper. An iteration is always one pass
    over all samples of the CV."""
    iterations_per_step: Count = 1
    """n: this many planned iterations are computed as one gradient step of n·δ, to save time in long runs; the last
    step is smaller if n does not divide l. Time, energy and cost still count every iteration. Only with "sgd" on all
    samples."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of CVs trained at the same time; if not given, one per core. Does not affect the results; 1 is best for
    sweeps with one process per core."""
    evaluate_every: Interval = 1
    """Rounds between two evaluations; the last round is always evaluated."""
    keep_models: Interval | Literal["best"] | None = None
    """Rounds between two models that are kept in `models/` of the run, besides the last model, `model.npz`, which
    every run has; "best": keep the model with the highest accuracy, or without classes the smallest loss, on the
    validation samples."""


class UpdateTable(Table):
    """How an update is coded: its size, and what the server reads of it."""

    codec: Annotated[str, OneOf("update.codec")] = "float32"
    """"float32": as it is, with the paper's number of bits (`model.float_bits`); "float16": 16 bits per parameter;
    "qsgd": rounded at random to few levels; "top-k": only the largest changes; or `module:Class`."""
    levels: Annotated[int, Field(ge=1, le=65_535)] = 15
    """s of "qsgd": levels besides zero; 1 + ⌈log₂(s + 1)⌉ bits per parameter."""
    keep_share: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Share of the parameters that "top-k" sends."""


class AdversaryTable(Table):
    """CVs that harm the model."""

    share: Share = 0.0
    """Probability that a CV is an adversary, whose training labels are flipped (class c becomes classes − 1 − c)."""


class TraceTable(Table):
    """What is recorded in addition to the tables `events`, `rounds` and `vehicles`."""

    slots: Literal["off", "uploads", "sampled", "full"] = "off"
    """What is recorded of the slots: nothing ("off"), the `uploads` table with one row per CV and 50 ms ("uploads"), or
    the `slots` table with one row per scheduled CV, of every 100th slot ("sampled") or of every slot ("full")."""
    mobility_every_s: Seconds = 1.0
    """Simulated time between two rows of a vehicle in the `mobility` table."""


class Change(Table):
    """A `[[change]]`: when keys get other values, and below it the tables with these keys."""

    model_config = ConfigDict(extra="allow")

    from_round: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    """The first round, or window of t_th without rounds, with the new values."""
    at_s: Seconds | None = None
    """The simulated time of the change, which may be within a round; for few keys."""

    def __str__(self) -> str:
        """When, and which keys: from round 11 vefl.budget=2000."""
        return f"{self.when} {' '.join(f'{key}={value}' for key, value in self.keys.items())}"

    @property
    def when(self) -> str:
        """The time of the change, in words."""
        return f"from {self.at_s or 0.0:g} s" if self.from_round is None else f"from round {self.from_round}"

    @property
    def tables(self) -> dict[str, Any]:
        """The new values by table and key."""
        return self.model_extra or {}

    @property
    def keys(self) -> dict[str, Any]:
        """The new values by `table.key`."""
        tables = [(name, keys) for name, keys in self.tables.items() if isinstance(keys, dict)]
        return {f"{name}.{key}": value for name, keys in tables for key, value in keys.items()}


class Experiment(Table):
    """All tables of an experiment."""

    run: RunTable
    roads: RoadsTable = RoadsTable()
    mobility: MobilityTable = MobilityTable()
    sumo: SumoTable = SumoTable()
    traffic: TrafficTable = TrafficTable()
    radio: RadioTable = RadioTable()
    mac: MacTable = MacTable()
    rat: RatTable = RatTable()
    downlink: DownlinkTable = DownlinkTable()
    sla: SlaTable = SlaTable()
    vefl: VeflTable = VeflTable()
    server: ServerTable = ServerTable()
    scheme: SchemeTable = SchemeTable()
    agent: AgentTable = AgentTable()
    flower: FlowerTable = FlowerTable()
    aggregation: AggregationTable = AggregationTable()
    data: DataTable = DataTable()
    model: ModelTable = ModelTable()
    learning: LearningTable = LearningTable()
    update: UpdateTable = UpdateTable()
    adversary: AdversaryTable = AdversaryTable()
    trace: TraceTable = TraceTable()
    change: Annotated[tuple[Change, ...], Field(strict=False)] = ()

    @property
    def slots(self) -> SlotGrid:
        """The slot grid of the numerology."""
        return SlotGrid.of_numerology(self.radio.numerology)

    @property
    def round_ns(self) -> int:
        """t_th, the length of a round, in nanoseconds."""
        return to_ns(self.vefl.round_s)

    @property
    def rounds(self) -> int:
        """Number of whole rounds in the run."""
        if self.run.rounds is not None:
            return self.run.rounds
        return to_ns(self.run.duration_s or 2000.0) // self.round_ns

    @property
    def duration_ns(self) -> int:
        """End of the last round, in nanoseconds of simulated time."""
        return self.rounds * self.round_ns

    @property
    def mean_in_coverage(self) -> float:
        """Target for the mean number of vehicles in coverage, including its default."""
        return self.traffic.mean_in_coverage or 35.0


TABLES: dict[str, type[Table]] = {name: kind for name, kind in get_type_hints(Experiment).items() if name != "change"}
"""The tables of an experiment by name; `[[change]]` is none, because it repeats keys of others."""
