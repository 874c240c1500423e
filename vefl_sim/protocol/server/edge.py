"""The edge server: what all kinds of server share. When to plan and when to aggregate is decided by the subclasses.

`SynchronousServer` has rounds, `AsynchronousServer` has none, `CentralServer` trains without CVs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from simpy import Event

from vefl_sim.core.clock import SlotGrid, Stopwatch
from vefl_sim.core.state import State, Stateful, optional_state
from vefl_sim.learning.learner import Evaluation, Local, Start
from vefl_sim.learning.trees import plain
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import Decision, RoundReport, TrainOrder
from vefl_sim.protocol.observer import Observer
from vefl_sim.protocol.server.model import GlobalModel
from vefl_sim.protocol.server.orders import checked_local
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.schemes.observation import Observation, sojourn_ns
from vefl_sim.schemes.scheme import Plan


@dataclass(frozen=True)
class Timetable:
    """Length of a round, and the number of rounds or the simulated time after which the run ends."""

    grid: SlotGrid
    round_ns: int  # t_th
    rounds: int | None  # number of rounds; None: as many as fit into duration_ns
    duration_ns: int  # simulated time
    early_close: bool  # end a round as soon as all its orders have ended
    evaluate_every: int  # rounds from one evaluation to the next

    def has(self, round: int, start_ns: int) -> bool:
        """Whether the run has a round of this number, starting at this time."""
        return round <= self.rounds if self.rounds else start_ns + self.round_ns <= self.duration_ns


@dataclass(frozen=True)
class Reporting:
    """How the server is connected to the run: what it reports, and whether the run goes on."""

    trace: Trace
    stopwatch: Stopwatch
    report: Callable[[RoundReport], None]  # called with every finished round
    checkpoint: Callable[[], bool]  # called before every round, may save the state; False: stop the run here


@dataclass
class EdgeServer(ABC):
    """Sends orders to CVs, aggregates their updates and evaluates the model; the only place where k is counted."""

    env: NanosecondEnvironment
    timetable: Timetable
    scheme: Any  # Scheme or AsynchronousScheme
    model: GlobalModel
    observe: Observer
    reporting: Reporting
    round: int = 1  # k, number of the current round or of the next one
    evaluation: Evaluation | None = None  # of the model after the last round; None if it was not evaluated

    @abstractmethod
    def rounds(self) -> Generator[Event, Any, None]:
        """The server's process: run one round after the other until the timetable ends."""

    def on_entered(self, vehicle: ConnectedVehicle) -> None:  # noqa: B027 (with rounds it waits for the next)
        """Called when a CV has entered coverage."""

    def state(self) -> State:
        """k, ω_k, what the scheme remembers, and the errors of coded updates."""
        return {
            "round": self.round,
            "version": self.model.version,
            "model": self.model.learner.arrays_of(self.model.parameters),
            "scheme": optional_state(self.scheme),
            "memory": plain(getattr(self.scheme, "memory", None)),
            "coding": optional_state(self.model.coding),
            "broadcaster": optional_state(self.observe.broadcaster),
        }

    def restore(self, state: State) -> None:
        """Restore k, ω_k and the scheme from a checkpoint."""
        self.round, self.model.version = state["round"], state["version"]
        self.model.parameters = self.model.learner.model_of(state["model"])
        if state["scheme"] is not None:
            cast(Stateful, self.scheme).restore(state["scheme"])
        if state["memory"] is not None:
            if not isinstance(state["memory"], dict):
                raise TypeError("what the scheme remembers is not a dict")
            self.scheme.memory = state["memory"]
        if self.model.coding:
            self.model.coding.restore(state["coding"])
        if self.observe.broadcaster:
            self.observe.broadcaster.restore(state["broadcaster"])

    def start_of(self, order: TrainOrder) -> Start:
        """What a CV trains from if it gets an order now: the current model, and what the scheme lets it minimise."""
        local = getattr(self.scheme, "local", None) if self.model.is_learnt else None
        return Start(self.model.parameters, checked_local(local(order.cv), self.model.parameters) if local else Local())

    def _tidy_memory(self) -> None:
        """Turn arrays of JAX in what the scheme remembers into numpy's, as they will be after a checkpoint."""
        if memory := getattr(self.scheme, "memory", None):
            self.scheme.memory = plain(memory)

    def _decision(self, observation: Observation, plan: Plan) -> Decision:
        """A new decision; the model is broadcast to the CVs of the plan unless the downlink is ignored."""
        broadcaster = self.observe.broadcaster
        return Decision(observation, plan, [], broadcaster.send(observation, plan) if broadcaster else None)

    def _announce(
        self, decision: Decision, orders: Iterable[TrainOrder], cause: int
    ) -> Iterator[tuple[TrainOrder, int]]:
        """Note the decision on every observed CV: ordered, ineligible or passed over; yield orders and their events."""
        observation, plan = decision.observation, decision.plan
        k, ordered = observation.snapshot.round, {order.cv: order for order in orders}
        for row, cv in enumerate(observation.cv.tolist()):
            columns = _cv_columns(observation, row) | {
                "cv": cv,
                "cause": cause,
                "max_iterations": plan.max_iterations.get(cv),
            }
            if order := ordered.get(cv):
                yield (
                    order,
                    self._note("training_ordered", k, **columns, **_order_columns(order, self.timetable.grid)),
                )
            elif limit := plan.ineligible.get(cv):
                self._note("cv_ineligible", k, reason=limit, **columns)
            else:
                self._note("cv_passed_over", k, **columns)

    def _evaluate(self, k: int, cause: int) -> Evaluation | None:
        """Evaluate the model if round k is due or the last one, and note the result."""
        last = not self.timetable.has(k + 1, self._next_slot_ns())
        self.evaluation = None
        if k % self.timetable.evaluate_every and not last:
            return None
        with self.reporting.stopwatch("evaluate"):
            self.evaluation = evaluation = self.model.evaluate()
        if evaluation is not None:
            self._note("model_evaluated", k, cause=cause, accuracy=evaluation.accuracy, loss=evaluation.loss)
        return evaluation

    def _next_slot_ns(self) -> int:
        """Start of the first slot that does not start before now."""
        grid = self.timetable.grid
        return grid.start_ns(grid.ceil(self.env.now))

    def _note(self, kind: str, k: int, **columns: Any) -> int:
        return self.reporting.trace.note(self.env.now, kind, "server", round=k, **columns)


def _cv_columns(observation: Observation, row: int) -> dict[str, Any]:
    """Columns of the events table: what the server knew about a CV when it planned."""
    snapshot = observation.snapshot
    return {
        "distance_m": float(snapshot.distance_m[row]),
        "sojourn_ns": sojourn_ns(float(snapshot.sojourn_s[row])),
        "mean_snr_db": observation.mean_snr_db(row),
        "worst_slots": int(observation.worst_slots[row]),
        "train_limit_ns": int(observation.train_limit_ns[row]),
    }


def _order_columns(order: TrainOrder, grid: SlotGrid) -> dict[str, Any]:
    """Columns of the events table: the contents of an order."""
    return {
        "iterations": order.iterations,
        "cpu_hz": order.cpu_hz,
        "train_ns": order.train_ns,
        "earliest_ns": grid.start_ns(order.earliest_slot),
        "deadline_ns": grid.start_ns(order.deadline_slot),
        "version": order.version,
    }
