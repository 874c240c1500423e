"""An experiment: one frozen, strictly typed model per TOML table.

Every key has a default but `run.name`; units are in the names; the paper's symbols are in the descriptions.
A key that the chosen method ignores is refused where we know it (`ignored_keys`): a parameter that silently does
nothing is the worst kind of wrong.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from vefl_sim.core.clock import SlotGrid, to_ns

PartName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
"""`module:name`, a part that the user brings."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} is above the upper bound {bounds[1]:g}")
    return bounds


def _block_counts(value: Any) -> Any:
    """Two sentences of a union would contradict each other."""
    counts = value if isinstance(value, (list, tuple)) else (value, value)
    if len(counts) != 2 or not all(type(count) is int and 1 <= count <= 50 for count in counts):
        raise ValueError("it must be a whole number from 1 to 50, or two of them as [x, y]")
    return value


Side = Annotated[int, Field(ge=1, le=50)]
Blocks = Annotated[Side | Annotated[tuple[Side, Side], Field(strict=False)], BeforeValidator(_block_counts)]
PositiveRange = Annotated[tuple[Positive, Positive], Field(strict=False), AfterValidator(_ordered)]
NonNegativeRange = Annotated[tuple[NonNegative, NonNegative], Field(strict=False), AfterValidator(_ordered)]
Point = Annotated[tuple[float, float], Field(strict=False, json_schema_extra={"format": "point"})]


class Table(BaseModel):
    """Common to all tables: frozen, strict, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class Run(Table):
    """What the run is called and how long it lasts."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """Names the run directory; letters, digits, dot, dash and underscore."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Root of all random streams."""
    duration_s: Positive | None = None
    """Simulated time; as many whole rounds as fit. 2000 s if neither this nor `rounds` is given."""
    rounds: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Number of rounds, instead of `duration_s`."""
    checkpoint_every: Count | None = None
    """Rounds between two checkpoints; if not given, about one a minute. It changes no result and no run's name."""


class Roads(Table):
    """The street grid around the gNB, which stands in its middle."""

    block_m: Annotated[float, Field(ge=20, le=10_000)] = 128.0
    """Side of a square block (downtown Raleigh: 420 ft)."""
    blocks: Blocks = 8
    """Blocks along each side of the grid, or [along x, along y]: a rectangle, whose streets may end within coverage."""
    exits: Literal["all", "outside"] = "all"
    """Over which streets vehicles come in and leave: all that lead out of the grid, or only those that end outside
    coverage, so that no trip begins or ends within."""
    signals: Literal["fixed", "none"] = "fixed"
    """"fixed": traffic lights with a fixed cycle at every junction; "none": first come, first served."""
    green_s: Annotated[float, Field(ge=1, le=600)] = 20.0
    """Green of a signal, each way; amber follows, for as long as it takes to stop from u_max, at least 3 s."""

    @property
    def blocks_xy(self) -> tuple[int, int]:
        """Blocks along x and along y."""
        return (self.blocks, self.blocks) if isinstance(self.blocks, int) else self.blocks

    @property
    def nearest_end_m(self) -> float:
        """Distance from the gNB to the nearest end of a street that leads out of the grid."""
        sides = [self.blocks_xy, self.blocks_xy[::-1]]
        return min(self.block_m * math.hypot(along / 2 + 1, across % 2 / 2) for along, across in sides)


class Mobility(Table):
    """How vehicles move."""

    kind: Literal["idm", "playback", "sumo"] | PartName = "idm"
    """"idm": the intelligent driver model on the grid; "playback": a recording; "sumo": SUMO on a map; or
    `module:Class`."""
    file: str = ""
    """"playback": a run directory or its mobility.parquet, or SUMO's floating car data as .xml, .xml.gz or .parquet, in
    metres and not in degrees. "sumo": a .sumocfg, or a map as .net.xml, .osm or .osm.xml, which may end in .gz.
    It starts at the folder of the experiment's file, or, if there is no such file, where you are."""
    origin_m: Point | None = None
    """Where the gNB stands in the coordinates of the recording ("playback"; if not given, [0, 0]) or of the net
    ("sumo"; if not given, its centre)."""
    origin_deg: Point | None = None
    """The same as latitude and longitude ("sumo")."""
    start_s: float | None = None
    """Time in the recording or in SUMO at which the run begins ("playback", "sumo"); if not given, the recording's or
    configuration's first, or, on a map, when the traffic has settled (`traffic.warm_start`)."""
    step_s: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Time between two positions; in between they are interpolated."""
    max_speed_mps: Annotated[float, Field(ge=0.01, le=100)] = 20.12
    """u_max: desired speed of the driver model and the server's worst case for the sojourn bound."""
    max_accel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 1.5
    """ū₁ of the driver model."""
    comfort_decel_mps2: Annotated[float, Field(ge=0.1, le=20)] = 2.0
    """ū₂ of the driver model."""
    headway_s: Annotated[float, Field(ge=0.01, le=60)] = 1.2
    """t_dst, the desired time headway."""
    min_gap_m: Annotated[float, Field(ge=0.01, le=100)] = 2.0
    """s_saf, the gap at standstill."""
    length_m: Annotated[float, Field(ge=0.5, le=50)] = 5.0
    """Length of a vehicle."""
    driver_spread: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    """How different drivers are: ū₁, ū₂, t_dst, s_saf are off by up to this share either way, desired speeds below."""
    sojourn: Literal["axis", "radial"] = "axis"
    """Sojourn bound by the smallest axis distance to the circle (the paper) or by the radial distance."""


class Sumo(Table):
    """How SUMO is run (`mobility.kind = "sumo"`)."""

    client: Literal["libsumo", "traci"] = "libsumo"
    """"libsumo": within our process; "traci": as a process of its own. It changes no result and no run's name."""
    lane_limits: bool = True
    """Drivers keep to the speed limits and slow down for turns; false: only to u_max, as on our grid."""
    fringe_factor: Annotated[float, Field(ge=1, le=10_000)] = 10.0
    """How much more trips begin and end where the map ends than elsewhere, per street."""


class Traffic(Table):
    """How many vehicles there are."""

    mean_in_coverage: Positive | None = None
    """Target for the mean number of vehicles in coverage; sets the arrival rate. 35 if neither is given."""
    arrivals_per_s: Positive | None = None
    """Rate of the Poisson arrivals at the border, instead of `mean_in_coverage`."""
    warm_start: bool = True
    """Start with the streets populated."""
    cv_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the vehicles that are connected (CVs); the others only take part in the traffic."""
    through_share: Share = 0.0
    """Share of the vehicles that pass to another place on the border by a shortest way; the others wander."""
    leaving_weight: Annotated[float, Field(gt=0, le=1)] = 0.25
    """How readily who wanders leaves at the border: the weight of a way out against the same turn inside."""


class Radio(Table):
    """The 5G-NR uplink: one cell, one bandwidth part."""

    channel: Literal["uma"] | PartName = "uma"
    """"uma": TR 38.901 urban macro; or `module:Class`, to which path loss, shadowing and fading are then left."""
    coverage_radius_m: Annotated[float, Field(gt=0, le=5000)] = 500.0
    """r of the coverage circle."""
    carrier_ghz: Annotated[float, Field(ge=0.5, le=100)] = 3.5
    """Carrier frequency of the path-loss model."""
    prbs: Annotated[int, Field(ge=1, le=275)] = 10
    """Z, the number of pRBs."""
    prb_bandwidth_hz: Positive = 1.8e6
    """ω; a whole number of 12-subcarrier blocks (the paper bundles 5 × 360 kHz)."""
    numerology: Annotated[int, Field(ge=0, le=4)] = 1
    """n̄: the slot is 1 ms / 2^n̄."""
    antennas: Annotated[int, Field(ge=1, le=256)] = 4
    """N at the gNB; CVs have one."""
    max_tx_power_w: Positive = 0.2
    """P_max of a CV, over all its pRBs."""
    fading: Literal["rayleigh", "none"] = "rayleigh"
    """"none" is the mean channel, for worked examples."""
    shadowing: Literal["correlated", "none"] = "correlated"
    """Log-normal shadowing (4/6 dB) that changes with the distance driven."""
    los: Literal["random", "always", "never"] = "random"
    """Line of sight: by the UMa probability, or fixed."""
    noise_dbm_per_hz: Annotated[float, Field(ge=-300, le=0)] = -174.0
    """Thermal noise density."""
    noise_figure_db: Annotated[float, Field(ge=0, le=50)] = 5.0
    """Noise figure of the gNB."""
    gnb_height_m: Annotated[float, Field(ge=10, le=150)] = 25.0
    """Height of the gNB's antennas."""
    cv_height_m: Annotated[float, Field(ge=1.5, le=13)] = 1.5
    """Height of a CV's antenna."""
    flexible_symbol_uplink: bool = True
    """The flexible symbol carries uplink data: overhead υ = 1/14, else 2/14."""


class Mac(Table):
    """When and in which order CVs may transmit."""

    start: Literal["tau", "ready"] = "tau"
    """A CV is served from its τ_v on ("tau", the paper) or as soon as its training ends ("ready")."""
    scheduler: Literal["edf"] | PartName = "edf"
    """"edf": Algorithm 3, earliest deadline first, ties by backlog; or `module:function`."""


class Rat(Table):
    """The RAT sub-problem: pRBs and power, slot by slot."""

    method: (
        Literal[
            "auto", "exact", "assignment", "large", "equal", "max-snr", "proportional-fair", "sca", "sca-perspective"
        ]
        | PartName
    ) = "auto"
    """"auto": exact where that is fast (up to 12 pRBs), else "large", with a bound; "equal", "max-snr",
    "proportional-fair": policies to compare with; "sca", "sca-perspective": the paper's Algorithm 4 by CVXPY, slow; or
    `module:function`."""
    efficiency_weight: NonNegative = 1.0
    """C/(κS): energy efficiency against backlog, for the optimizing methods."""
    circuit_power_w: NonNegative = 0.0
    """Counted with the transmit power of every scheduled CV in the energy efficiency β; 0 in the paper."""


class Sla(Table):
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


class Vefl(Table):
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


class Server(Table):
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


class Aggregation(Table):
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


class Data(Table):
    """What is learnt, and who holds it."""

    kind: Literal["signs", "mnist", "fashion-mnist", "cifar10", "gtsrb", "folder"] | PartName = "signs"
    """"signs": traffic signs drawn by the program; "mnist", "fashion-mnist", "cifar10", "gtsrb": the public data sets;
    "folder": images of your own; or `module:function`."""
    dir: str = ""
    """Where the files of other kinds are; if empty, where `data get` puts them. "folder": a folder or a .zip of
    train/<class>/<image> and test/<class>/<image>. It starts where `mobility.file` does."""
    train_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Samples over all CVs, drawn at random from what there is; if not given, 12000 ("signs") or all."""
    test_samples: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Samples of the test set, in the same way; if not given, 2000 ("signs") or all."""
    validation_samples: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """So many of the training samples are held out and evaluated instead of the test set, to choose parameters; 0: the
    test set."""
    image_px: Annotated[int, Field(ge=16, le=128)] = 28
    """Side to which images are drawn or resized ("signs", "gtsrb", "folder"); the others have their own."""
    partition: Literal["dirichlet", "iid", "shards"] = "dirichlet"
    """How the training set is split over CVs: by label, at random, or in shards of one class or two. Groups (GTSRB:
    the pictures of one sign) stay together."""
    dirichlet_alpha: Positive = 0.1
    """α of the label distribution over CVs; small is skewed ("dirichlet")."""
    shards_per_cv: Annotated[int, Field(ge=1, le=1000)] = 2
    """Pieces, each of samples next to each other when sorted by class, that a CV gets ("shards")."""
    min_samples: Count = 10
    """Every CV holds at least this many samples."""
    bits_per_value: Count = 32
    """D_v counts this many bits per pixel and channel."""

    def settled(self) -> Self:
        """The same with the number of `signs` to draw; the files of other kinds say how many there are."""
        if self.kind != "signs":
            return self
        counts = {"train_samples": self.train_samples or 12_000, "test_samples": self.test_samples or 2_000}
        return self.model_copy(update=counts)


class Model(Table):
    """The network that is trained."""

    factory: PartName = "vefl_models.cnn:cnn"
    """`module:factory` of a flax model."""
    float_bits: Count = 32
    """FPP; an update has 1 + FPP bits per parameter."""


class Learning(Table):
    """Local training and evaluation."""

    kind: Literal["jax", "none"] = "jax"
    """"none" runs the network side alone, with the same sample and parameter counts."""
    learning_rate: Positive = 0.05
    """δ."""
    proximal_mu: NonNegative = 0.01
    """μ of the proximal term."""
    optimizer: Literal["sgd", "adagrad", "adam", "adamw", "lamb", "lion", "nadam", "radam", "rmsprop", "yogi"] = "sgd"
    """Of the local steps: "sgd", plain gradient descent, is the paper's; or one of optax, starting afresh with each
    order."""
    batch_size: Count | None = None
    """Samples per local step; not given: all that the CV holds, as in the paper. An iteration stays one pass over
    all of them."""
    iterations_per_step: Count = 1
    """n: so many planned iterations are computed as one gradient step of n·δ, to save time in long runs; the last step
    is smaller if n does not divide l. Time, energy and money still count every iteration. Only with "sgd" on all
    samples."""
    threads: Count | None = None
    """CVs trained at the same time; not given: one per core. Results do not depend on it; 1 is best for sweeps with one
    process per core."""
    evaluate_every: Count = 1
    """Rounds between two evaluations; the last round is always evaluated."""


class TraceTable(Table):
    """What is recorded beyond events, rounds and vehicles."""

    slots: Literal["off", "sampled", "full"] = "off"
    """One row per slot and scheduled CV: none, every 100th slot, or all."""
    mobility_every_s: Positive = 1.0
    """Time between two rows of a vehicle in the `mobility` table."""


class Experiment(Table):
    """A whole experiment."""

    run: Run
    roads: Roads = Roads()
    mobility: Mobility = Mobility()
    sumo: Sumo = Sumo()
    traffic: Traffic = Traffic()
    radio: Radio = Radio()
    mac: Mac = Mac()
    rat: Rat = Rat()
    sla: Sla = Sla()
    vefl: Vefl = Vefl()
    server: Server = Server()
    scheme: SchemeTable = SchemeTable()
    aggregation: Aggregation = Aggregation()
    data: Data = Data()
    model: Model = Model()
    learning: Learning = Learning()
    trace: TraceTable = TraceTable()

    @property
    def slots(self) -> SlotGrid:
        """The slot grid of the numerology."""
        return SlotGrid.of_numerology(self.radio.numerology)

    @property
    def round_ns(self) -> int:
        """t_th on the clock."""
        return to_ns(self.vefl.round_s)

    @property
    def rounds(self) -> int:
        """Whole rounds of the run."""
        if self.run.rounds is not None:
            return self.run.rounds
        return to_ns(self.run.duration_s or 2000.0) // self.round_ns

    @property
    def duration_ns(self) -> int:
        """The end of the last round."""
        return self.rounds * self.round_ns

    @property
    def mean_in_coverage(self) -> float:
        """The traffic target, whether or not it was written down."""
        return self.traffic.mean_in_coverage or 35.0

    @property
    def makes_traffic(self) -> bool:
        """Whether the demand is ours to make, and not in a recording or a configuration of SUMO."""
        return self.mobility.kind != "playback" and not self.is_sumo_configuration

    @property
    def is_sumo_configuration(self) -> bool:
        """Whether SUMO is given everything, and not only a map."""
        return self.mobility.kind == "sumo" and self.mobility.file.lower().endswith(".sumocfg")

    def resolved(self) -> Self:
        """The same experiment with either-or keys settled, as it is written next to the results."""
        run, traffic = self.run, self.traffic
        if run.rounds is None and run.duration_s is None:
            run = run.model_copy(update={"duration_s": 2000.0})
        if self.makes_traffic and traffic.mean_in_coverage is None and traffic.arrivals_per_s is None:
            traffic = traffic.model_copy(update={"mean_in_coverage": 35.0})
        return self.model_copy(update={"run": run, "traffic": traffic, "data": self.data.settled()})


def contradictions(experiment: Experiment) -> Iterator[str]:
    """One sentence for each pair of keys that cannot both be meant."""
    e = experiment
    slot_ms = e.slots.slot_ns / 1e6
    if e.run.rounds is not None and e.run.duration_s is not None:
        yield "run.rounds and run.duration_s both say how long the run is: keep one of them."
    if e.rounds < 1:
        yield (
            f"run.duration_s = {e.run.duration_s or 2000.0:g} is shorter than one round "
            f"(vefl.round_s = {e.vefl.round_s:g}): make it at least that long."
        )
    for key, value_s in (("vefl.round_s", e.vefl.round_s), ("mobility.step_s", e.mobility.step_s)):
        if to_ns(value_s) == 0 or to_ns(value_s) % e.slots.slot_ns:
            yield f"{key} = {value_s:g} is not a whole number of slots of {slot_ms:g} ms: round it."
    if e.traffic.mean_in_coverage is not None and e.traffic.arrivals_per_s is not None:
        yield "traffic.mean_in_coverage and traffic.arrivals_per_s both set the traffic: keep one of them."
    longest_m = e.roads.block_m * max(e.roads.blocks_xy)
    if e.mobility.kind == "idm" and longest_m < 2 * e.radio.coverage_radius_m:
        least = math.ceil(2 * e.radio.coverage_radius_m / e.roads.block_m)
        yield (
            f"The grid of roads.blocks × roads.block_m = {longest_m:g} m does not cover 2 × radio.coverage_radius_m = "
            f"{2 * e.radio.coverage_radius_m:g} m: give it a side of at least {least} blocks, or shrink the radius."
        )
    if e.mobility.kind == "playback" and not e.mobility.file:
        yield 'mobility.kind = "playback" needs mobility.file: name a run directory or a recording.'
    if e.mobility.kind == "sumo":
        yield from _sumo_contradictions(e)
    if e.data.kind == "folder" and not e.data.dir:
        yield 'data.kind = "folder" needs data.dir: name a folder, or a .zip, of train/<class>/<image> and test/….'
    subcarriers_hz = 12 * 15e3 * 2**e.radio.numerology
    if e.radio.prb_bandwidth_hz % subcarriers_hz:
        yield (
            f"radio.prb_bandwidth_hz = {e.radio.prb_bandwidth_hz:g} is not a multiple of the {subcarriers_hz:g} Hz "
            f"of 12 subcarriers at radio.numerology = {e.radio.numerology}."
        )
    if e.rat.method == "exact" and e.radio.prbs > 12:
        yield 'rat.method = "exact" takes at most 12 pRBs (radio.prbs): use "auto" or "large".'
    if e.sla.cpu_min_hz[1] > e.sla.cpu_max_hz[0]:
        yield "sla.cpu_min_hz reaches above sla.cpu_max_hz: lower the one or raise the other."
    if e.vefl.min_local_iterations > e.vefl.max_local_iterations:
        yield (
            f"vefl.min_local_iterations = {e.vefl.min_local_iterations} is above "
            f"vefl.max_local_iterations = {e.vefl.max_local_iterations}."
        )
    if e.scheme.kind == "afa-cd" and e.learning.optimizer != "sgd":
        yield (
            f'scheme.kind = "afa-cd" divides an update by the sum of its steps, which learning.optimizer = '
            f'"{e.learning.optimizer}" does not have: use "sgd".'
        )
    if e.learning.iterations_per_step > 1 and e.scheme.kind != "centralized":  # which ignores the key
        yield from _step_contradictions(e.learning)


def _step_contradictions(learning: Learning) -> Iterator[str]:
    merged = f"learning.iterations_per_step = {learning.iterations_per_step}"
    if learning.optimizer != "sgd":
        yield f'{merged} needs learning.optimizer = "sgd", not "{learning.optimizer}": remove one of the two keys.'
    if learning.batch_size is not None:
        yield f"{merged} needs steps on all samples, not learning.batch_size: remove one of the two keys."


def _sumo_contradictions(e: Experiment) -> Iterator[str]:
    if not e.mobility.file:
        yield 'mobility.kind = "sumo" needs mobility.file: name a .sumocfg, a .net.xml or an .osm.'
    if e.mobility.origin_m is not None and e.mobility.origin_deg is not None:
        yield "mobility.origin_m and mobility.origin_deg both say where the gNB stands: keep one of them."
    if to_ns(e.mobility.step_s) % 1_000_000:
        yield f"mobility.step_s = {e.mobility.step_s:g} is not a whole number of milliseconds, as SUMO needs: round it."
    if e.mobility.start_s is not None and to_ns(e.mobility.start_s) % 1_000_000:
        told = f"mobility.start_s = {e.mobility.start_s:.10g}"
        yield f"{told} is not a whole number of milliseconds, as SUMO needs: round it."
    if e.mobility.start_s is not None and not e.traffic.warm_start:
        yield "mobility.start_s lets the traffic settle, which traffic.warm_start = false forbids: keep one of them."


_GRID = ("block_m", "blocks", "exits", "signals", "green_s")
_DRIVER = ("max_accel_mps2", "comfort_decel_mps2", "headway_s", "min_gap_m", "length_m", "driver_spread")
_SUMO = ("client", "lane_limits", "fringe_factor")
_DEMAND = ("mean_in_coverage", "arrivals_per_s", "warm_start", "through_share", "leaving_weight")
_UNUSED_BY_MOBILITY = {
    "idm": {"mobility": ("file", "origin_m", "origin_deg", "start_s"), "sumo": _SUMO},
    "playback": {"roads": _GRID, "traffic": _DEMAND, "mobility": ("origin_deg", *_DRIVER), "sumo": _SUMO},
    "sumo": {"roads": _GRID, "traffic": ("through_share", "leaving_weight"), "mobility": ("driver_spread",)},
}
_IN_A_SUMOCFG = {"traffic": _DEMAND[:3], "mobility": _DRIVER[:-1], "sumo": _SUMO[1:]}
"""Keys that a source of traffic does not look at; those that a configuration of SUMO says itself."""
_RULE = ("sojourn_weight", "p_suc", "normalize")
_SUM = ("form", "weights_over")
_WITHOUT_ROUNDS = ("buffer", "server_rate")
_PROBLEM = ("method", "sojourn_weight", "min_local_iterations", "upload_share")
_BY_DATA = {
    "aggregation": (*_RULE, *_WITHOUT_ROUNDS),
    "vefl": _PROBLEM,
    "server": ("retry_s",),
    "scheme": ("rounds",),
}
_BUFFERED = {
    "aggregation": (*_RULE, *_SUM),
    "vefl": _PROBLEM,
    "server": ("early_close",),
    "learning": ("proximal_mu",),
}
_UNUSED_BY: dict[str, dict[str, tuple[str, ...]]] = {
    "pdpc": {
        "aggregation": ("sojourn_weight", "weights_over", *_WITHOUT_ROUNDS),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fdpc": {
        "aggregation": _WITHOUT_ROUNDS,
        "vefl": ("sojourn_weight", "upload_share"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "fedprox": _BY_DATA,
    "fedavg": _BY_DATA | {"learning": ("proximal_mu",)},
    "random": {
        "aggregation": ("sojourn_weight", "weights_over", *_WITHOUT_ROUNDS),
        "vefl": ("method", "sojourn_weight", "min_local_iterations"),
        "server": ("retry_s",),
        "scheme": ("rounds",),
    },
    "afa-cd": _BUFFERED,
    "fedbuff": _BUFFERED | {"scheme": ("rounds",)},
    "centralized": {
        "aggregation": (*_RULE, *_SUM, *_WITHOUT_ROUNDS),
        "vefl": (*_PROBLEM, "upload_margin"),
        "server": ("early_close", "retry_s"),
        "scheme": ("constrained", "rounds"),
        "learning": ("proximal_mu", "iterations_per_step"),
    },  # not what it leaves out of the world that it shares with others: radio, SLAs, money, who holds which data
}
"""Keys that a scheme does not look at."""
_UNUSED_BY_AFA_CD_IN_ROUNDS = {
    "aggregation": (*_RULE, "form", "buffer"),
    "vefl": _PROBLEM,
    "server": ("retry_s",),
    "learning": ("proximal_mu",),
}
_SUMMING_TO_ONE = {"aggregation": ("form",)}
"""The two forms agree where the applied weights sum to one."""

_UNUSED_BY_DATA = {"signs": ("dir",), "mnist": ("image_px",), "fashion-mnist": ("image_px",), "cifar10": ("image_px",)}
_UNUSED_BY_PARTITION = {
    "dirichlet": ("shards_per_cv",),
    "iid": ("dirichlet_alpha", "shards_per_cv"),
    "shards": ("dirichlet_alpha",),
}
"""Keys of [data] that a kind or a partition does not look at."""


def ignored_keys(e: Experiment) -> Iterator[tuple[str, str]]:
    """Keys that differ from their defaults though nobody looks at them, with a sentence each."""
    for cause, keys in _unused(e):
        for key in _changed(e, keys):
            yield key, f"{key} has no effect with {cause}: remove it."


def without_ignored(e: Experiment) -> Experiment:
    """The same experiment with every ignored key at its default: such a key changes no result and no run's name."""
    for key, _ in [*ignored_keys(e)]:
        name, _, inner = key.partition(".")
        table = getattr(e, name)
        e = e.model_copy(update={name: table.model_copy(update={inner: _default(table, inner)})})
    return e


def _unused(e: Experiment) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """(what makes keys useless, the keys by table)."""
    if e.mobility.kind in _UNUSED_BY_MOBILITY:
        yield f'mobility.kind = "{e.mobility.kind}"', _UNUSED_BY_MOBILITY[e.mobility.kind]
    if e.is_sumo_configuration:
        yield f'mobility.file = "{e.mobility.file}", which says it itself', _IN_A_SUMOCFG
    if e.mobility.kind == "idm" and e.roads.signals == "none":
        yield 'roads.signals = "none"', {"roads": ("green_s",)}
    if e.mobility.kind == "idm" and e.roads.nearest_end_m >= e.radio.coverage_radius_m:
        yield "streets that all end outside coverage (roads.blocks)", {"roads": ("exits",)}
    if e.mobility.kind == "idm" and e.traffic.through_share == 1:
        yield "traffic.through_share = 1", {"traffic": ("leaving_weight",)}
    if e.data.kind in _UNUSED_BY_DATA:
        yield f'data.kind = "{e.data.kind}"', {"data": _UNUSED_BY_DATA[e.data.kind]}
    yield f'data.partition = "{e.data.partition}"', {"data": _UNUSED_BY_PARTITION[e.data.partition]}
    if e.rat.method in ("equal", "max-snr", "proportional-fair"):
        yield f'rat.method = "{e.rat.method}"', {"rat": ("efficiency_weight", "circuit_power_w")}
    if e.scheme.kind == "afa-cd" and e.scheme.rounds:
        yield 'scheme.kind = "afa-cd" in rounds', _UNUSED_BY_AFA_CD_IN_ROUNDS
    elif e.scheme.kind in _UNUSED_BY:
        yield f'scheme.kind = "{e.scheme.kind}"', _UNUSED_BY[e.scheme.kind]
    else:
        yield "a scheme of your own, which says so in its plans (assured)", {"scheme": ("constrained", "rounds")}
        yield "a scheme of your own, which returns the weights itself", {"aggregation": ("weights_over",)}
    if e.scheme.kind in _UNUSED_BY and not e.scheme.constrained:
        vefl = ("method", "budget", "min_local_iterations", "upload_share", "upload_margin")
        unused = {"vefl": vefl, "server": ("early_close", "retry_s"), "aggregation": _SUM}
        yield "scheme.constrained = false", unused
    yield from _unused_forms(e.scheme.kind, e.aggregation)


def _unused_forms(kind: str, aggregation: Aggregation) -> Iterator[tuple[str, Mapping[str, Iterable[str]]]]:
    """Keys of the sum that cancel each other."""
    over = aggregation.weights_over or ("delivered" if kind in ("fedprox", "fedavg") else "ordered")
    if aggregation.normalize and kind in ("fdpc", "pdpc", "random"):
        yield "aggregation.normalize = true, which makes the weights sum to one", {"aggregation": _SUM}
    elif over == "delivered" and (kind in ("fedprox", "fedavg") or aggregation.p_suc == "realized"):
        yield "weights over the delivered, which sum to one (aggregation.weights_over)", _SUMMING_TO_ONE


def _changed(e: Experiment, keys: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Those of the keys that differ from their defaults."""
    for name, inside in keys.items():
        table = getattr(e, name)
        yield from (f"{name}.{key}" for key in inside if getattr(table, key) != _default(table, key))


def _default(table: Table, key: str) -> Any:
    return type(table).model_fields[key].default
