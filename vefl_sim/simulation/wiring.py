"""The only place where actors are created and connected: a scenario becomes SimPy processes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from simpy import Process

from vefl_sim.core.clock import Stopwatch, to_ns
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.codecs.codec import Coding
from vefl_sim.mobility.coverage import sojourn_bound_of
from vefl_sim.protocol.broadcaster import Broadcaster
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.protocol.observer import Observer, SuccessHistory
from vefl_sim.protocol.server.asynchronous import AsynchronousServer
from vefl_sim.protocol.server.edge import EdgeServer, Reporting, Timetable
from vefl_sim.protocol.server.model import GlobalModel
from vefl_sim.protocol.server.synchronous import CentralServer, SynchronousServer
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.radio.access import Access
from vefl_sim.radio.channel import Channel
from vefl_sim.radio.downlink import Downlink
from vefl_sim.records.recorder import Recorder
from vefl_sim.schemes.observation import RoundConstants
from vefl_sim.schemes.sla import draw_agreement
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.parts import is_asynchronous
from vefl_sim.simulation.scenario import Scenario


@dataclass(frozen=True)
class Actors:
    """The actors of a run, in the order in which they are restored: later ones refer to earlier ones."""

    ledger: Ledger
    history: SuccessHistory
    trace: Trace
    coverage: CoverageProcess
    gnb: GNodeB
    server: EdgeServer

    def stateful(self) -> dict[str, Stateful]:
        """All actors that have a state, by name."""
        return dict(vars(self))

    def processes(self, env: NanosecondEnvironment) -> Process:
        """Start all processes in a fixed order; return the server's, whose end is the end of the run."""
        env.process(self.coverage.moves())
        env.process(self.gnb.ticks())
        return env.process(self.server.rounds())


def wire(
    scenario: Scenario,
    env: NanosecondEnvironment,
    recorder: Recorder,
    audit: Audit,
    report: Callable[[RoundReport], None],
    checkpoint: Callable[[], bool] = lambda: True,
) -> Actors:
    """Create the actors of a run.

    `audit` sees every slot; `report` is called with every finished round; `checkpoint` is called before every round,
    and the run stops there if it returns False.
    """

    def watch(burst: Burst) -> None:
        audit.burst(burst)
        recorder.record_burst(burst)

    experiment, grid, ledger = scenario.experiment, scenario.experiment.slots, Ledger()
    trace = Trace(lambda row: recorder.append("events", row))
    channel = scenario.channel()
    tradeoff = experiment.rat.efficiency_weight * grid.slot_s * scenario.payload_bits
    mac = MacScheduler(
        scenario.link,
        channel,
        scenario.scheduler,
        scenario.policy,
        grid.slot_s,
        tradeoff,
        experiment.rat.circuit_power_w,
        access=Access.of(experiment),
    )
    gnb = GNodeB(env, grid, mac, ledger, trace, experiment.mac.start == "tau", watch, recorder.record_arrival)

    def make_vehicle(cv: int) -> ConnectedVehicle:
        agreement = draw_agreement(cv, experiment.sla, scenario.streams)
        return ConnectedVehicle(env, cv, agreement, gnb, ledger, trace, lambda: coverage.distance_m(cv))

    coverage = CoverageProcess(
        env, scenario.mobility(), channel, experiment.radio.coverage_radius_m, trace, recorder.record_scene,
        make_vehicle, lambda vehicle: server.on_entered(vehicle),
    )  # fmt: skip
    history = SuccessHistory()
    server = _server_kind(scenario)(
        env,
        _timetable(experiment),
        scenario.scheme,
        GlobalModel(
            scenario.learner,
            averages=experiment.aggregation.form == "models",
            coding=None if getattr(scenario.codec, "is_exact", False) else Coding(scenario.codec, scenario.streams),
            aggregate_updates=getattr(scenario.scheme, "aggregate_updates", None),
        ),
        _observer(scenario, env, coverage, channel, history, ledger),
        Reporting(trace, Stopwatch(lambda row: recorder.append("timings", row)), report, checkpoint),
    )
    return Actors(ledger, history, trace, coverage, gnb, server)


def _server_kind(scenario: Scenario) -> Callable[..., EdgeServer]:
    """The kind of server that the scheme needs: central, without rounds (a scheme with a buffer), or with rounds."""
    if getattr(scenario.scheme, "trains_centrally", False):
        return CentralServer
    if is_asynchronous(scenario.scheme):
        return partial(AsynchronousServer, retry_ns=to_ns(scenario.experiment.server.retry_s))
    return SynchronousServer


def _observer(
    scenario: Scenario,
    env: NanosecondEnvironment,
    coverage: CoverageProcess,
    channel: Channel,
    history: SuccessHistory,
    ledger: Ledger,
) -> Observer:
    bound = sojourn_bound_of(scenario.experiment)
    samples = {cv: len(shard) for cv, shard in scenario.shards.items()}
    downlink = Downlink.of(scenario.experiment, scenario.link, scenario.model_bits)
    broadcaster = Broadcaster(downlink, ledger) if downlink else None
    return Observer(env, coverage, channel, history, round_constants(scenario), samples, bound, broadcaster)


def round_constants(scenario: Scenario) -> RoundConstants:
    """The quantities that are the same in every round of a run."""
    experiment, vefl = scenario.experiment, scenario.experiment.vefl
    return RoundConstants(
        grid=experiment.slots,
        link=scenario.link,
        round_ns=experiment.round_ns,
        budget=vefl.budget,
        payload_bits=scenario.payload_bits,
        bits_per_sample=scenario.dataset.values_per_sample * experiment.data.bits_per_value,
        cpu_capacitance=experiment.sla.cpu_capacitance,
        min_iterations=vefl.min_local_iterations,
        max_iterations=vefl.max_local_iterations,
        max_selected=experiment.scheme.selected,
        sojourn_weight=vefl.sojourn_weight,
        share_among_selected=vefl.upload_share == "selected",
        upload_margin=vefl.upload_margin,
        access=Access.of(experiment),
    )


def _timetable(experiment: Experiment) -> Timetable:
    return Timetable(
        grid=experiment.slots,
        round_ns=experiment.round_ns,
        rounds=experiment.run.rounds,
        duration_ns=experiment.duration_ns,
        early_close=experiment.server.early_close,
        evaluate_every=experiment.learning.evaluate_every,
    )
