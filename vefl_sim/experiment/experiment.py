"""An experiment: one frozen, strictly typed model per TOML table.

Every key has a default but `run.name`; units are in the names; the paper's symbols are in the descriptions.
A key that the chosen method ignores is refused where we know it (`ignored_keys`): a parameter that silently does
nothing is the worst kind of wrong.
"""

from typing import Annotated, Literal, Self

from pydantic import Field

from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.experiment.fields import Count, Positive, Table
from vefl_sim.experiment.learning_tables import DataTable, LearningTable, ModelTable
from vefl_sim.experiment.radio_tables import MacTable, RadioTable, RatTable
from vefl_sim.experiment.scheme_tables import AggregationTable, SchemeTable, ServerTable, SlaTable, VeflTable
from vefl_sim.experiment.traffic_tables import MobilityTable, RoadsTable, SumoTable, TrafficTable


class RunTable(Table):
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


class TraceTable(Table):
    """What is recorded beyond events, rounds and vehicles."""

    slots: Literal["off", "sampled", "full"] = "off"
    """One row per slot and scheduled CV: none, every 100th slot, or all."""
    mobility_every_s: Positive = 1.0
    """Time between two rows of a vehicle in the `mobility` table."""


class Experiment(Table):
    """A whole experiment."""

    run: RunTable
    roads: RoadsTable = RoadsTable()
    mobility: MobilityTable = MobilityTable()
    sumo: SumoTable = SumoTable()
    traffic: TrafficTable = TrafficTable()
    radio: RadioTable = RadioTable()
    mac: MacTable = MacTable()
    rat: RatTable = RatTable()
    sla: SlaTable = SlaTable()
    vefl: VeflTable = VeflTable()
    server: ServerTable = ServerTable()
    scheme: SchemeTable = SchemeTable()
    aggregation: AggregationTable = AggregationTable()
    data: DataTable = DataTable()
    model: ModelTable = ModelTable()
    learning: LearningTable = LearningTable()
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
