"""The edge server: what it does whatever its policy. When it plans, and when it steps, is that of its kind.

`synchronous` has rounds, `asynchronous` has none, `central` needs no CVs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

from simpy import Event, Process

from vefl_sim.core.clock import SlotGrid, Stopwatch
from vefl_sim.core.state import State, Stateful, optional_state
from vefl_sim.learning.learner import Evaluation, Learner
from vefl_sim.protocol.events import NanosecondEnvironment
from vefl_sim.protocol.messages import RoundReport, TrainOrder
from vefl_sim.protocol.trace import Trace
from vefl_sim.protocol.vehicle import ConnectedVehicle
from vefl_sim.schemes.history import SuccessHistory
from vefl_sim.schemes.observation import Observation, sojourn_ns
from vefl_sim.schemes.scheme import Plan


@dataclass(frozen=True)
class Timetable:
    """Rounds of t_th, until there have been enough of them or the time is over."""

    grid: SlotGrid
    round_ns: int  # t_th
    rounds: int | None  # how many, or
    duration_ns: int  # how long
    early_close: bool
    evaluate_every: int

    def has(self, round: int, start_ns: int) -> bool:
        """Whether another round starts."""
        return round <= self.rounds if self.rounds else start_ns + self.round_ns <= self.duration_ns


@dataclass
class EdgeServer(ABC):
    """Orders, aggregates, evaluates; k is counted here and nowhere else."""

    env: NanosecondEnvironment
    timetable: Timetable
    scheme: Any  # Scheme or AsynchronousScheme
    learner: Learner
    observe: Callable[..., Observation]  # round, and more of what a Sighting has
    history: SuccessHistory
    in_coverage: dict[int, ConnectedVehicle]
    trace: Trace
    stopwatch: Stopwatch
    report: Callable[[RoundReport], None]
    checkpoint: Callable[[], bool]  # saves if it is time to; False: the run is to stop here
    averages_models: bool = False  # the next model is a weighted sum of models, not a step from the last one
    round: int = 1  # k, of the round that runs or starts next
    model: Any = None  # ω

    @abstractmethod
    def rounds(self) -> Generator[Event, Any, None]:
        """The server's process: one round after the other until the timetable ends."""

    def on_entered(self, vehicle: ConnectedVehicle) -> None:  # noqa: B027 (with rounds it waits for the next)
        """A CV has entered coverage."""

    def state(self) -> State:
        """k and ω_k; a scheme of the user's may have something to remember, too."""
        return {"round": self.round, "model": self.learner.arrays_of(self.model), "scheme": optional_state(self.scheme)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self.round, self.model = state["round"], self.learner.model_of(state["model"])
        if state["scheme"] is not None:
            cast(Stateful, self.scheme).restore(state["scheme"])

    def _send(
        self, observation: Observation, plan: Plan, orders: Iterator[TrainOrder], cause: int
    ) -> Iterator[tuple[ConnectedVehicle, TrainOrder, Process]]:
        """Order the selected CVs, and say of the others why they are not."""
        k, ordered = observation.snapshot.round, {order.cv: order for order in orders}
        for row, cv in enumerate(observation.cv.tolist()):
            seen = _seen(observation, row) | {"cv": cv, "cause": cause, "max_iterations": plan.max_iterations.get(cv)}
            if order := ordered.get(cv):
                event = self._note("training_ordered", k, **seen, **_asked(order, self.timetable.grid))
                vehicle = self.in_coverage[cv]
                yield vehicle, order, vehicle.accept(order, event)
            elif limit := plan.ineligible.get(cv):
                self._note("cv_ineligible", k, reason=limit, **seen)
            else:
                self._note("cv_passed_over", k, **seen)

    def _evaluate(self, k: int, cause: int) -> Evaluation | None:
        last = not self.timetable.has(k + 1, self._next_slot_ns())
        if k % self.timetable.evaluate_every and not last:
            return None
        with self.stopwatch("evaluate"):
            evaluation = self.learner.evaluate(self.model)
        if evaluation is not None:
            self._note("model_evaluated", k, cause=cause, accuracy=evaluation.accuracy, loss=evaluation.loss)
        return evaluation

    def _next_slot_ns(self) -> int:
        grid = self.timetable.grid
        return grid.start_ns(grid.ceil(self.env.now))

    def _note(self, kind: str, k: int, **columns: Any) -> int:
        return self.trace.note(self.env.now, kind, "server", round=k, **columns)


def _seen(observation: Observation, row: int) -> dict[str, Any]:
    """What the server knew of a CV when it planned."""
    snapshot = observation.snapshot
    return {
        "distance_m": float(snapshot.distance_m[row]),
        "sojourn_ns": sojourn_ns(float(snapshot.sojourn_s[row])),
        "mean_snr_db": observation.mean_snr_db(row),
        "worst_slots": int(observation.worst_slots[row]),
        "train_limit_ns": int(observation.train_limit_ns[row]),
    }


def _asked(order: TrainOrder, grid: SlotGrid) -> dict[str, Any]:
    """What the order asks for."""
    return {
        "iterations": order.iterations,
        "cpu_hz": order.cpu_hz,
        "train_ns": order.train_ns,
        "earliest_ns": grid.start_ns(order.earliest_slot),
        "deadline_ns": grid.start_ns(order.deadline_slot),
        "version": order.version,
    }
