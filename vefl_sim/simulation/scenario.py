"""The only wiring: an experiment becomes parts, and parts become actors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from simpy import Process

from vefl_sim.core.clock import Stopwatch, to_ns, to_s
from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import Stateful
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import is_part, load_part, make_part
from vefl_sim.experiment.unused_keys import without_ignored
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.learner import Learner, NullLearner
from vefl_sim.mobility.coverage import sojourn_bound_s, visitors
from vefl_sim.mobility.recorded.trajectory import Tell
from vefl_sim.mobility.scene import Mobility
from vefl_sim.optimize.rat.edf import Scheduler, edf
from vefl_sim.optimize.rat.problem import REFERENCES, RatPolicy, solve
from vefl_sim.protocol.coverage import CoverageProcess
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.gnb import GNodeB
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.protocol.server.asynchronous import AsynchronousServer
from vefl_sim.protocol.server.edge import EdgeServer, Timetable
from vefl_sim.protocol.server.synchronous import EVERYTHING, CentralServer, SynchronousServer
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.radio.channel import Channel, UmaChannel
from vefl_sim.radio.fading import Fading, MeanChannel, RayleighFading
from vefl_sim.radio.link import Link
from vefl_sim.radio.shadowing import LargeScale
from vefl_sim.records.recorder import Recorder
from vefl_sim.schemes.afa_cd import afa_cd
from vefl_sim.schemes.centralized import BATCH_SIZE, Centralized
from vefl_sim.schemes.fdpc import Fdpc
from vefl_sim.schemes.fedbuff import FedBuff
from vefl_sim.schemes.fedprox import FedAvg, FedProx
from vefl_sim.schemes.history import SuccessHistory
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants, observe
from vefl_sim.schemes.pdpc import Pdpc
from vefl_sim.schemes.random_selection import RandomSelection
from vefl_sim.schemes.scheme import AsynchronousScheme, Scheme
from vefl_sim.schemes.sla import draw_agreement
from vefl_sim.simulation.audit import Audit

AnyScheme = Scheme | AsynchronousScheme
SCHEMES: dict[str, Callable[[Experiment], AnyScheme]] = {
    "pdpc": Pdpc,
    "fdpc": Fdpc,
    "fedprox": FedProx,
    "fedavg": FedAvg,
    "random": RandomSelection,
    "afa-cd": afa_cd,
    "fedbuff": FedBuff,
    "centralized": Centralized,
}


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs that is not a process; made once, before anything is written."""

    experiment: Experiment
    streams: Streams
    shards: Mapping[int, NDArray[np.int64]]  # CV -> its samples; keys are all CVs that will be in coverage
    dataset: Dataset
    learner: Learner
    link: Link
    scheme: AnyScheme
    scheduler: Scheduler
    policy: RatPolicy | str
    mobility: Callable[[], Mobility]  # a fresh start of the same traffic

    @property
    def payload_bits(self) -> int:
        """S = M·(1 + FPP)."""
        return self.learner.parameters * (1 + self.experiment.model.float_bits)


@dataclass(frozen=True)
class Actors:
    """The wired processes of a run, in the order in which they are restored: later ones need earlier ones."""

    ledger: Ledger
    record: SuccessHistory
    trace: Trace
    streets: CoverageProcess
    gnb: GNodeB
    server: EdgeServer

    def stateful(self) -> dict[str, Stateful]:
        """Everybody who has something to remember, by name."""
        return dict(vars(self))

    def processes(self, env: NanosecondEnvironment) -> Process:
        """Start everybody, in a fixed order; the server's process is the one that ends."""
        env.process(self.streets.moves())
        env.process(self.gnb.ticks())
        return env.process(self.server.rounds())


def make_mobility(experiment: Experiment, streams: Streams) -> Mobility:
    """The traffic named by `mobility.kind`."""
    kind = experiment.mobility.kind
    if is_part(kind):
        return make_part("mobility.kind", kind, experiment, streams)  # type: ignore[no-any-return]
    if kind == "playback":
        from vefl_sim.mobility.recorded.playback import Playback

        return Playback(experiment, streams)
    from vefl_sim.mobility.grid.traffic import IdmTraffic

    return IdmTraffic(experiment, streams)


def make_traffic(
    experiment: Experiment, streams: Streams, folder: Path | None = None, tell: Tell | None = None
) -> Callable[[], Mobility]:
    """Something that begins the same traffic again and again. SUMO drives now, and what it does goes to the folder."""
    if experiment.mobility.kind != "sumo":
        return partial(make_mobility, experiment, streams)
    from vefl_sim.mobility.sumo.traffic import drive, driven_trajectory

    if folder:
        return partial(driven_trajectory, drive(experiment, folder, tell), experiment)
    temporary = Path(mkdtemp(prefix="vefl_sim-"))
    try:
        traffic = partial(driven_trajectory, drive(experiment, temporary, tell), experiment)
    except BaseException:
        rmtree(temporary, ignore_errors=True)
        raise
    finalize(traffic, rmtree, temporary, ignore_errors=True)
    return traffic


def build_scenario(experiment: Experiment, folder: Path | None = None, tell: Tell | None = None) -> Scenario:
    """Make all parts. Bad input shows here, before anything is simulated.

    `folder`: where traffic is kept that cannot be made again step by step; `tell` hears how far that is. Such traffic
    may take an hour, so that all that can be wrong elsewhere comes before. Keys that the experiment declares without
    effect are at their defaults from here on, because parts may read keys for whatever scheme there is.
    """
    experiment = without_ignored(experiment)
    streams = Streams(experiment.run.seed)
    scheme, scheduler, policy = _scheme(experiment), _scheduler(experiment), _policy(experiment)
    dataset = _all_data(experiment, streams)
    module = _module(experiment, dataset)
    traffic = make_traffic(experiment, streams, folder, tell)
    shards = _dealt(experiment, streams, dataset, traffic)
    return Scenario(
        experiment=experiment,
        streams=streams,
        shards=shards,
        dataset=dataset,
        learner=_learner(experiment, dataset, shards, scheme, module, streams),
        link=Link.of(experiment.radio),
        scheme=scheme,
        scheduler=scheduler,
        policy=policy,
        mobility=traffic,
    )


def share_out(experiment: Experiment, streams: Streams) -> tuple[Dataset, dict[int, NDArray[np.int64]]]:
    """The data, and which samples each CV holds that will be in coverage."""
    dataset = _all_data(experiment, streams)
    return dataset, _dealt(experiment, streams, dataset, make_traffic(experiment, streams))


def _dealt(
    experiment: Experiment, streams: Streams, dataset: Dataset, traffic: Callable[[], Mobility]
) -> dict[int, NDArray[np.int64]]:
    cvs = visitors(traffic(), experiment.radio.coverage_radius_m, experiment.duration_ns)
    if experiment.mobility.kind in ("playback", "sumo") and not cvs.size:
        raise ExperimentError(_nobody(experiment))
    return _shards(experiment, dataset, cvs, streams)


def _nobody(experiment: Experiment) -> str:
    mobility, radius_m = experiment.mobility, experiment.radio.coverage_radius_m
    if mobility.kind == "sumo":
        return (
            f'mobility.file = "{mobility.file}": no CV comes within radio.coverage_radius_m = {radius_m:g} of the gNB '
            f"in {to_s(experiment.duration_ns):g} s: make the run longer, or let it begin later (mobility.start_s)."
        )
    return (
        f"No CV of the recording comes within radio.coverage_radius_m = {radius_m:g} of mobility.origin_m = "
        f"{list(mobility.origin_m or (0.0, 0.0))}: say where the gNB stands in its coordinates."
    )


def wire(
    scenario: Scenario,
    env: NanosecondEnvironment,
    recorder: Recorder,
    audit: Audit,
    report: Callable[[RoundReport], None],
    go_on: Callable[[], bool] = lambda: True,
) -> Actors:
    """Create the actors; `audit` sees every slot, `report` hears of every round that is over.

    `go_on` is asked between two rounds whether there shall be another.
    """

    def watch(burst: Burst) -> None:
        audit.burst(burst)
        recorder.burst(burst)

    experiment, grid, ledger = scenario.experiment, scenario.experiment.slots, Ledger()
    trace = Trace(lambda row: recorder.append("events", row))
    channel = make_channel(scenario)
    tradeoff = experiment.rat.efficiency_weight * grid.slot_s * scenario.payload_bits
    mac = MacScheduler(
        scenario.link,
        channel,
        scenario.scheduler,
        scenario.policy,
        grid.slot_s,
        tradeoff,
        experiment.rat.circuit_power_w,
    )
    gnb = GNodeB(env, grid, mac, ledger, trace, experiment.mac.start == "tau", watch)

    def make_vehicle(cv: int) -> ConnectedVehicle:
        agreement = draw_agreement(cv, experiment.sla, scenario.streams)
        return ConnectedVehicle(env, cv, agreement, gnb, ledger, trace, lambda: streets.distance_m(cv))

    streets = CoverageProcess(
        env, scenario.mobility(), channel, experiment.radio.coverage_radius_m, trace, recorder.scene, make_vehicle,
        lambda vehicle: server.on_entered(vehicle),
    )  # fmt: skip
    record, constants = SuccessHistory(), round_constants(scenario)
    server = _server_kind(scenario, constants)(
        env=env,
        timetable=_timetable(experiment),
        scheme=scenario.scheme,
        learner=scenario.learner,
        record=record,
        observe=_observer(scenario, env, streets, channel, record, constants),
        in_coverage=streets.in_coverage,
        trace=trace,
        stopwatch=Stopwatch(lambda row: recorder.append("timings", row)),
        report=report,
        go_on=go_on,
        averages_models=experiment.aggregation.form == "models",
    )
    return Actors(ledger, record, trace, streets, gnb, server)


def _server_kind(scenario: Scenario, constants: RoundConstants) -> Callable[..., EdgeServer]:
    """The server's policy: without rounds for a scheme with a buffer."""
    if isinstance(scenario.scheme, Centralized):
        return CentralServer
    if is_asynchronous(scenario.scheme):
        return partial(AsynchronousServer, constants=constants, retry_ns=to_ns(scenario.experiment.server.retry_s))
    return SynchronousServer


def is_asynchronous(scheme: object) -> bool:
    """Whether a scheme runs without rounds."""
    return getattr(scheme, "buffer", None) is not None


def _observer(
    scenario: Scenario,
    env: NanosecondEnvironment,
    streets: CoverageProcess,
    channel: Channel,
    record: SuccessHistory,
    constants: RoundConstants,
) -> Callable[..., Observation]:
    experiment = scenario.experiment

    def look(round: int, wanted: Sequence[int] | None = None, **more: Any) -> Observation:
        """At all CVs in coverage, or at those wanted, in ascending order."""
        cvs = np.array(sorted(streets.in_coverage) if wanted is None else wanted, dtype=np.int64)
        x_m, y_m = np.array([streets.position_m(cv) for cv in cvs]).reshape(-1, 2).T
        sojourn_s = sojourn_bound_s(
            x_m, y_m, radius_m=experiment.radio.coverage_radius_m,
            max_speed_mps=experiment.mobility.max_speed_mps, method=experiment.mobility.sojourn,
        )  # fmt: skip
        snapshot = CoverageSnapshot(
            round=round,
            time_ns=int(env.now),
            cv=cvs,
            distance_m=np.hypot(x_m, y_m),
            sojourn_s=sojourn_s,
            snr_per_watt=channel.mean_snr_per_watt(cvs),
            samples=np.array([len(scenario.shards[cv]) for cv in cvs], dtype=np.int64),
            agreements=[streets.in_coverage[cv].agreement for cv in cvs],
            success=record.success(cvs.tolist()),
            **more,
        )
        return observe(snapshot, constants)

    return look


def round_constants(scenario: Scenario) -> RoundConstants:
    """What is the same in every round of the run."""
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


def make_channel(scenario: Scenario) -> Channel:
    """The channel named by `radio.channel`, before anybody has moved."""
    name = scenario.experiment.radio.channel
    if is_part(name):
        return make_part("radio.channel", name, scenario.experiment, scenario.streams)  # type: ignore[no-any-return]
    return UmaChannel(scenario.link, _large_scale(scenario), _fading(scenario))


def _large_scale(scenario: Scenario) -> LargeScale:
    return LargeScale(scenario.experiment.radio, scenario.streams.generator("shadowing"))


def _fading(scenario: Scenario) -> Fading:
    radio = scenario.experiment.radio
    if radio.fading == "none":
        return MeanChannel(radio.prbs, radio.antennas)
    return RayleighFading(scenario.streams.philox_key("fading"), radio.prbs, radio.antennas)


def _scheme(experiment: Experiment) -> AnyScheme:
    if is_part(experiment.scheme.kind):
        scheme = _checked_scheme(make_part("scheme.kind", experiment.scheme.kind, experiment))
        if is_asynchronous(scheme) and experiment.aggregation.form == "models":
            kind = type(scheme).__name__
            raise ExperimentError(f"aggregation.form has no effect with {kind}, which has no rounds: remove it.")
        return scheme
    return SCHEMES[experiment.scheme.kind](experiment)


def _checked_scheme(scheme: Any) -> AnyScheme:
    """A scheme of the user's; what it lacks shows before anything has run."""
    for method in ("plan", "weights" if is_asynchronous(scheme) else "aggregate"):
        if not callable(getattr(scheme, method, None)):
            why = ", which it needs because it has a buffer" if method == "weights" else ""
            raise ExperimentError(f"scheme.kind: {type(scheme).__name__} has no method {method}(){why}: add it.")
    if is_asynchronous(scheme) and not (isinstance(scheme.buffer, int) and scheme.buffer >= 1):
        raise ExperimentError(f"scheme.kind: {type(scheme).__name__}.buffer = {scheme.buffer!r} must be 1, 2, 3, …")
    mu = getattr(scheme, "proximal_mu", 0.0)
    if not isinstance(mu, (int, float)) or not 0 <= mu < float("inf"):
        raise ExperimentError(f"scheme.kind: {type(scheme).__name__}.proximal_mu = {mu!r} must be a number from 0 on.")
    return scheme  # type: ignore[no-any-return]


def _scheduler(experiment: Experiment) -> Scheduler:
    name = experiment.mac.scheduler
    return load_part("mac.scheduler", name) if is_part(name) else edf


def _policy(experiment: Experiment) -> RatPolicy | str:
    name = experiment.rat.method
    if is_part(name):
        return load_part("rat.method", name)  # type: ignore[no-any-return]
    return partial(solve, method=name) if name in REFERENCES else name


def _all_data(experiment: Experiment, streams: Streams) -> Dataset:
    dataset = _dataset(experiment, streams)
    if not experiment.data.validation_samples:
        return dataset
    from vefl_sim.learning.datasets.subset import held_out

    return held_out(dataset, experiment.data.validation_samples, streams.generator("validation"))


def _dataset(experiment: Experiment, streams: Streams) -> Dataset:
    data = experiment.data
    if is_part(data.kind):
        dataset = make_part("data.kind", data.kind, experiment, streams)
        if not isinstance(dataset, Dataset):
            raise ExperimentError(f'data.kind = "{data.kind}" gives a {type(dataset).__name__}: return a Dataset.')
        return dataset
    from vefl_sim.learning.datasets.kinds import read_dataset

    return read_dataset(data, streams.generator("data"))


def _shards(
    experiment: Experiment, dataset: Dataset, cvs: NDArray[np.int64], streams: Streams
) -> dict[int, NDArray[np.int64]]:
    from vefl_sim.learning.partition import partition

    parts = partition(dataset, len(cvs), experiment.data, streams.generator("partition"))
    return dict(zip(cvs.tolist(), parts, strict=True))


def _module(experiment: Experiment, dataset: Dataset) -> Any:
    """The model, which must take the images."""
    from vefl_sim.learning.jax_learner import parameter_count

    name = experiment.model.factory
    module = make_part("model.factory", name, dataset.classes)
    try:
        parameter_count(module, dataset.image_shape)
    except Exception as error:
        shape, message = " × ".join(map(str, dataset.image_shape)), f"{type(error).__name__}: {error}"
        raise ExperimentError(
            f'The experiment cannot be prepared: model.factory = "{name}" does not take images of {shape}: {message}'
        ) from error
    return module


def _learner(
    experiment: Experiment,
    dataset: Dataset,
    shards: Mapping[int, NDArray[np.int64]],
    scheme: AnyScheme,
    module: Any,
    streams: Streams,
) -> Learner:
    from vefl_sim.learning.jax_learner import JaxLearner, Options, parameter_count
    from vefl_sim.learning.samples import Shuffling

    learning = experiment.learning
    if learning.kind == "none":
        return NullLearner(parameter_count(module, dataset.image_shape))
    batch_size = learning.batch_size
    if isinstance(scheme, Centralized):
        shards, batch_size = {EVERYTHING: np.arange(len(dataset.train_labels))}, batch_size or BATCH_SIZE
    shuffling = Shuffling(batch_size, streams.seed_for("batches")) if batch_size else None
    return JaxLearner(
        dataset,
        shards,
        module,
        learning_rate=learning.learning_rate,
        proximal_mu=getattr(scheme, "proximal_mu", learning.proximal_mu),  # a part may not say
        seed=streams.seed_for("init"),
        options=Options(learning.optimizer, shuffling, learning.threads, learning.iterations_per_step),
    )
