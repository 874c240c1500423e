"""The TOML tables of the radio network: [radio], [mac], [rat] and [downlink]."""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.experiment.fields import DelaySpread, OneOf, Table, Watts
from vefl_sim.experiment.kinds import CHANNELS, RAT_METHODS, SCHEDULERS


class RadioTable(Table):
    """The 5G-NR uplink: one cell, one bandwidth part."""

    channel: Annotated[str, OneOf(CHANNELS)] = "uma"
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
    scheduler: Annotated[str, OneOf(SCHEDULERS)] = "edf"
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

    method: Annotated[str, OneOf(RAT_METHODS)] = "auto"
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
