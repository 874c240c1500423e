"""Explains why an update was received or lost: the causal chain of one CV in one round, in sentences."""

from collections.abc import Iterable, Sequence

import pandas as pd

from vefl_sim.analysis.events import Event, causes_of, rows_of, select
from vefl_sim.analysis.narrator import Narrator
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.run_directory import Run

_CANDIDATES = 5
"""Updates that are named if none was chosen."""


def why(run: Run, *, cv: int, round: int) -> list[str]:
    """Explain what happened to a CV in a round, from its order (or why it got none) to the outcome of its update.

    Returns one sentence or more per event, with the numbers that decided it. In a scheme without rounds, `round` is the
    number of a window of length t_th, and all orders that the CV got in this window are explained in turn.
    """
    explanations = Explanations(run.events, run.experiment)
    if round not in explanations.started:
        known = run.events["round"].dropna()
        span = f"1 to {known.max()}" if len(known) else "none"
        raise BadInput(f"There is no round {round} in {run.path}: choose one of the recorded rounds ({span}).")
    return explanations.why(cv, round)


def how_to_choose(run: Run, *, cv: int | None, rounds: range | None) -> str:
    """A sentence that says what is missing to choose one update, and names some, lost ones if there are any."""
    missing = " and ".join(
        option
        for option, absent in (("--cv", cv is None), ("one --round", rounds is None or len(rounds) > 1))
        if absent
    )
    ended = select(run.events, cv=cv, round=rounds)
    lost, received = (ended[ended["kind"] == kind] for kind in ("update_lost", "upload_received"))
    shown = lost if len(lost) else received
    pairs = (f"--cv {row.cv} --round {row.round}" for row in shown.head(_CANDIDATES).itertuples())
    named = f" ({'lost' if len(lost) else 'received'}, for example: {', '.join(pairs)})" if len(shown) else ""
    return f"--why explains one update: add {missing} to choose it{named}."


class Explanations:
    """The explanations of all CVs and rounds of a run; the events are sorted once, so that each is then fast."""

    def __init__(self, events: pd.DataFrame, experiment: Experiment) -> None:
        self._experiment = experiment
        self._by_id: dict[int, Event] = {}
        self._by_cv: dict[int, list[Event]] = {}
        self._by_pair: dict[tuple[int, int], list[Event]] = {}
        self.started: dict[int, Event] = {}
        """The `round_started` event of each round."""
        for event in rows_of(events):
            self._add(event)

    def _add(self, event: Event) -> None:
        self._by_id[event["id"]] = event
        round_, cv = event["round"], event["cv"]
        if event["kind"] == "round_started" and round_ is not None:
            self.started.setdefault(round_, event)
        if cv is not None:
            self._by_cv.setdefault(cv, []).append(event)
            if round_ is not None:
                self._by_pair.setdefault((cv, round_), []).append(event)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs (CV, round) that have an event of their own."""
        return [pair for pair in self._by_pair if pair[1] in self.started]

    def events_of(self, cv: int) -> list[Event]:
        """All events of a CV, in their order."""
        return self._by_cv.get(cv, [])

    @property
    def events(self) -> Iterable[Event]:
        """All events, in their order."""
        return self._by_id.values()

    @property
    def cvs(self) -> list[int]:
        """All CVs that have an event."""
        return list(self._by_cv)

    def why(self, cv: int, round: int) -> list[str]:
        """The sentences of `vefl_sim.why` for a round that exists."""
        narrator = Narrator(self._experiment, self.started[round], cv)
        mine = self._by_pair.get((cv, round))
        if not mine:
            return [narrator.absence(self.events_of(cv))]
        chains = (causes_of(self._by_id, event_id) for event_id in _last_of_each_order(mine))
        return [sentence for links in chains for event in links for sentence in narrator.sentences(event)]


def _last_of_each_order(events: Sequence[Event]) -> list[int]:
    """Ids of the last event of each order or refusal of a CV; without rounds there may be several in a window."""
    first: dict[int, int] = {}  # event id -> id of the first event of its order
    last: dict[int, int] = {}  # id of the first event of an order -> id of its last event
    for event in events:
        own: int = event["id"]
        first[own] = first.get(event["cause"], own)
        last[first[own]] = own
    return list(last.values())
