"""What happens in a run, as small objects, and the trace that numbers them and passes them on.

Actors note what happens. They do not know who listens: `records/` makes rows of it, the audit checks it, watchers show
it. Every event has a number and, where there is one, the number of the event that caused it, so that an order can be
followed to its training, its upload and its outcome.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform, get_args

from vefl_sim.core.state import SavedAttributes

if TYPE_CHECKING:  # slow to import, and not needed to read traces
    from vefl_sim.experiment.experiment import Experiment
    from vefl_sim.learning.learner import Evaluation
    from vefl_sim.protocol.instants import NanosecondEnvironment
    from vefl_sim.protocol.messages import Applied, Decision, OrderOutcome, TrainOrder
    from vefl_sim.protocol.uplink import Upload

Departure = Literal["coverage_left", "trip_ended"]
DEPARTURES: tuple[Departure, ...] = get_args(Departure)
"""How a CV leaves: it crosses the circle around the gNB, or its trip ends inside."""

LOSSES = ("round_ended", *DEPARTURES, "training_unfinished", "expired")
"""Reasons for the loss of an update; every `update_lost` event has exactly one of them."""


KINDS: list[str] = []
"""The kinds of events in the trace."""


@dataclass_transform(frozen_default=True)
class TraceEvent:
    """Something that happens in a run; subclasses are frozen dataclasses, and `kind` is their name in the trace."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()  # UpdateLost: update_lost
        if not cls.__name__.startswith("_"):  # else it is what several events have in common
            KINDS.append(cls.kind)


class CoverageEntered(TraceEvent):
    """A CV has entered coverage."""

    cv: int
    distance_m: float


class CoverageLeft(TraceEvent):
    """A CV has crossed the circle around the gNB."""

    cv: int
    distance_m: float


class TripEnded(CoverageLeft):
    """A CV has ended its trip in coverage."""


class KeysChanged(TraceEvent):
    """Keys of the experiment have other values from now on."""

    index: int  # of the [[change]]
    keys: "Mapping[str, Any]"
    experiment: "Experiment"  # with all keys in force


class RoundStarted(TraceEvent):
    """A round, or a window of t_th without rounds, has started."""

    round: int
    in_coverage: int
    decision: "Decision | None"  # the plan of the round; None without rounds
    version: int | None  # of the model, without rounds


class _Decided(TraceEvent):
    """What the server has decided on one of the CVs that it observed."""

    decision: "Decision"
    row: int  # of the CV in the observation


class CvIneligible(_Decided):
    """A constraint rules out an order."""


class CvPassedOver(_Decided):
    """The CV could have got an order, but others were preferred."""


class TrainingOrdered(_Decided):
    """The CV has got an order."""

    order: "TrainOrder"


class ModelReceived(TraceEvent):
    """A CV has received the broadcast of the model."""

    order: "TrainOrder"
    distance_m: float


class TrainingFinished(TraceEvent):
    """A CV has finished its local training."""

    order: "TrainOrder"
    distance_m: float


class UploadOffered(TraceEvent):
    """An update waits in the uplink buffer of its CV."""

    order: "TrainOrder"
    earliest_ns: int  # start of the first slot in which it may be sent
    deadline_ns: int


class UploadStarted(TraceEvent):
    """The first slot in which an update is sent has begun."""

    order: "TrainOrder"


class _OrderEnded(TraceEvent):
    """An order has ended."""

    outcome: "OrderOutcome"
    upload: "Upload | None"  # None: the update was never offered
    distance_m: float


class UploadReceived(_OrderEnded):
    """The gNB has the last bit of an update."""


class UpdateLost(_OrderEnded):
    """An update will not arrive; `outcome.lost` says why."""


class RoundEnded(TraceEvent):
    """A round, or a window of t_th without rounds, is over."""

    round: int
    delivered: int | None  # number of updates that arrived, with rounds
    version: int | None  # of the model, without rounds


class UpdateAggregated(TraceEvent):
    """An update is part of the next global model."""

    outcome: "OrderOutcome"
    applied: "Applied"


class ModelAggregated(TraceEvent):
    """The server has a new global model, or keeps the old one because no update arrived."""

    round: int
    applied: "list[Applied]"
    version: int | None  # without rounds


class ModelEvaluated(TraceEvent):
    """The global model was evaluated on the test set."""

    round: int
    evaluation: "Evaluation"


@dataclass(frozen=True)
class Noted:
    """An event with its place in the trace."""

    number: int
    cause: int | None  # number of the event that caused it
    time_ns: int
    event: TraceEvent


class Trace(SavedAttributes):
    """Numbers events, and passes them and other news of a run to those who listen."""

    saved = ("count",)  # of events so far, so that numbers continue after a checkpoint

    def __init__(self, env: "NanosecondEnvironment") -> None:
        self.env, self.count = env, 0
        self._listeners: defaultdict[type, list[Callable[[Any], None]]] = defaultdict(list)

    def on(self, kind: type, listener: Callable[[Any], None]) -> None:
        """Call `listener` with all news of a type; those of the trace are `Noted`."""
        self._listeners[kind].append(listener)

    def tell(self, news: object) -> None:
        """Pass something on that is not in the trace: a scene, the slots of a burst, the report of a round."""
        for kind in type(news).__mro__:
            for listener in self._listeners.get(kind, ()):
                listener(news)

    def note(self, event: TraceEvent, cause: int | None = None, time_ns: int | None = None) -> int:
        """Note an event that happens now, or at `time_ns`; its number is the `cause` of what follows from it."""
        self.count += 1
        self.tell(Noted(self.count, cause, self.env.now if time_ns is None else time_ns, event))
        return self.count
