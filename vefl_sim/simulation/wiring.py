"""The only place where actors are created and connected: a scenario becomes SimPy processes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from simpy import Process

from vefl_sim.core.clock import Stopwatch
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.changes import begun, with_changes
from vefl_sim.learning.codecs import Coding
from vefl_sim.mobility.coverage import sojourn_bound_of
from vefl_sim.protocol.control import Control
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.gnb import Broadcaster, GNodeB
from vefl_sim.protocol.inbox import Inbox
from vefl_sim.protocol.instants import NanosecondEnvironment
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import MacScheduler
from vefl_sim.protocol.observer import Planner, SuccessHistory
from vefl_sim.protocol.server.edge import EdgeServer, Timetable
from vefl_sim.protocol.server.model import GlobalModel
from vefl_sim.protocol.server.pace import Buffer, Central, Pace, Rounds
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.radio.access import Access
from vefl_sim.radio.link import Downlink, Link
from vefl_sim.schemes.observation import RoundConstants
from vefl_sim.schemes.scheme import AnyScheme
from vefl_sim.schemes.sla import draw_agreement
from vefl_sim.simulation.scenario import Scenario, make_channel, make_codec, make_scheduler_and_policy, make_scheme


@dataclass(frozen=True)
class Actors:
    """The actors of a run."""

    env: NanosecondEnvironment
    trace: Trace
    ledger: Ledger
    history: SuccessHistory
    coverage: CoverageProcess
    gnb: GNodeB
    server: EdgeServer
    control: Control
    stopwatch: Stopwatch

    def stateful(self) -> dict[str, Stateful]:
        """The actors that have a state, by name, in the order in which they are restored: later ones need earlier."""
        first: dict[str, Stateful] = {"ledger": self.ledger, "history": self.history, "trace": self.trace}
        return first | {"coverage": self.coverage, "gnb": self.gnb.mac, "server": self.server}

    def start(self) -> Process:
        """Start all processes in a fixed order; return the server's, whose end is the end of the run."""
        self.env.process(self.coverage.moves())
        self.env.process(self.gnb.ticks())
        return self.env.process(self.server.run())


def wire(scenario: Scenario, env: NanosecondEnvironment, trace: Trace, first: Scenario) -> Actors:
    """Create the actors of a run, each after those that it needs; `first`: the scenario before all changes."""
    experiment, grid, constants = scenario.experiment, scenario.experiment.slots, round_constants(scenario)
    scheme, codec, channel = make_scheme(experiment), make_codec(experiment), make_channel(experiment, scenario.streams)
    ledger, history, inbox, control = Ledger(), SuccessHistory(), Inbox(env), Control(env)
    stopwatch = Stopwatch(trace.tell)
    mac = MacScheduler(
        scenario.link,
        channel,
        *make_scheduler_and_policy(experiment),
        grid.slot_s,
        tradeoff=experiment.rat.efficiency_weight * grid.slot_s * scenario.payload_bits,
        circuit_w=experiment.rat.circuit_power_w,
        access=constants.access,
        control=control,
    )
    gnb = GNodeB(env, grid, mac, ledger, trace, wait_for_tau=experiment.mac.start == "tau", is_on=experiment.radio.on)

    def vehicle(cv: int, distance_m: Callable[[], float]) -> ConnectedVehicle:
        agreement = draw_agreement(cv, experiment.sla, scenario.streams)
        return ConnectedVehicle(env, cv, agreement, inbox, gnb, ledger, trace, distance_m)

    coverage = CoverageProcess(env, scenario.mobility(), channel, experiment.radio.coverage_radius_m, trace, vehicle)
    model_bits = scenario.learner.parameters * (1 + experiment.model.float_bits) * scheme.models_per_update
    downlink = Downlink.of(experiment, scenario.link, model_bits)
    broadcaster = Broadcaster(downlink) if downlink else None
    samples, bound = {cv: len(shard) for cv, shard in scenario.shards.items()}, sojourn_bound_of(experiment)
    planner = Planner(env, coverage, history, constants, samples, bound, broadcaster, scheme, control, stopwatch)
    model = GlobalModel(
        scenario.learner,
        scheme,
        stopwatch,
        averages=experiment.aggregation.form == "models",
        coding=None if codec.is_exact else Coding(codec, scenario.streams),
    )
    pace = _pace(env, scheme)
    timetable = Timetable(experiment)
    constants_at = partial(_constants_at, first)
    server = EdgeServer(
        env, timetable, pace, planner, model, coverage, history, broadcaster, inbox, control, trace, constants_at
    )
    return Actors(env, trace, ledger, history, coverage, gnb, server, control, stopwatch)


def _pace(env: NanosecondEnvironment, scheme: AnyScheme) -> Pace:
    """The pace that a scheme needs: central, without rounds (a scheme with a buffer), or with rounds."""
    if scheme.trains_centrally:
        return Central(env, scheme)
    return Rounds(env, scheme) if scheme.buffer is None else Buffer(env, scheme)


def _constants_at(first: Scenario, round: int, time_ns: int) -> RoundConstants:
    """The quantities of a round that has begun at this time."""
    experiment = with_changes(first.experiment, begun(first.experiment, round, time_ns))
    return round_constants(replace(first, experiment=experiment, link=Link.of(experiment.radio)))


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
