"""An experiment: one frozen, strictly typed model per TOML table.

Every key except `run.name` has a default; names contain the units, and descriptions the paper's symbols.
A key that the chosen built-in method does not use is refused (`unused_keys`), because a parameter that silently does
nothing is misleading.
"""

from typing import Annotated, Literal

from pydantic import Field

from vefl_sim.core.clock import SlotGrid, to_ns
from vefl_sim.experiment.fields import Count, Interval, PartName, Seconds, Table
from vefl_sim.experiment.learning_tables import AdversaryTable, DataTable, LearningTable, ModelTable, UpdateTable
from vefl_sim.experiment.radio_tables import DownlinkTable, MacTable, RadioTable, RatTable
from vefl_sim.experiment.scheme_tables import AgentTable, AggregationTable, SchemeTable, ServerTable, SlaTable, VeflTable
from vefl_sim.experiment.traffic_tables import MobilityTable, RoadsTable, SumoTable, TrafficTable


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
    watch: Annotated[tuple[PartName, ...], Field(strict=False)] | None = None
    """Watchers of the run, as `module:name`, such as `vefl_sim.records.watchers:tensorboard` and `…:mlflow`. Affects
    neither the results nor the name of the run directory."""


class TraceTable(Table):
    """What is recorded in addition to the tables `events`, `rounds` and `vehicles`."""

    slots: Literal["off", "uploads", "sampled", "full"] = "off"
    """What is recorded of the slots: nothing ("off"), the `uploads` table with one row per CV and 50 ms ("uploads"), or
    the `slots` table with one row per scheduled CV, of every 100th slot ("sampled") or of every slot ("full")."""
    mobility_every_s: Seconds = 1.0
    """Simulated time between two rows of a vehicle in the `mobility` table."""


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
    aggregation: AggregationTable = AggregationTable()
    data: DataTable = DataTable()
    model: ModelTable = ModelTable()
    learning: LearningTable = LearningTable()
    update: UpdateTable = UpdateTable()
    adversary: AdversaryTable = AdversaryTable()
    trace: TraceTable = TraceTable()

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
