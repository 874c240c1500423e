"""Explains why an update was received or lost: the causal chain of one CV in one round, in sentences."""

from collections.abc import Iterator, Sequence

import pandas as pd

from vefl_sim.analysis.events import Event, causes_of, rows_of, select
from vefl_sim.analysis.reasons import in_words
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.protocol.trace import DEPARTURES, KINDS
from vefl_sim.records.run_directory import Run


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
    """A sentence that says what is missing to choose one update, and names some that were lost."""
    options = {"--cv": cv is None, "one --round": rounds is None or len(rounds) > 1}
    missing = " and ".join(option for option, is_missing in options.items() if is_missing)
    lost = select(run.events, cv=cv, round=rounds, kind="update_lost").head(5)
    pairs = ", ".join(f"--cv {row.cv} --round {row.round}" for row in lost.itertuples())
    named = f" (lost, for example: {pairs})" if pairs else ""
    return f"--why explains one update: add {missing} to choose it{named}."


class Explanations:
    """The explanations of all CVs and rounds of a run; the events are sorted once, so that each is then fast."""

    def __init__(self, events: pd.DataFrame, experiment: Experiment) -> None:
        self._experiment = experiment
        self.by_id: dict[int, Event] = {}
        """All events, in their order."""
        self.by_cv: dict[int, list[Event]] = {}
        self.by_pair: dict[tuple[int, int], list[Event]] = {}
        """By CV and round."""
        self.started: dict[int, Event] = {}
        """The `round_started` event of each round."""
        for event in rows_of(events):
            self.by_id[event["id"]] = event
            round_, cv = event["round"], event["cv"]
            if event["kind"] == "round_started" and round_ is not None:
                self.started.setdefault(round_, event)
            if cv is not None:
                self.by_cv.setdefault(cv, []).append(event)
            if cv is not None and round_ is not None:
                self.by_pair.setdefault((cv, round_), []).append(event)

    def why(self, cv: int, round: int) -> list[str]:
        """The sentences of `vefl_sim.why` for a round that exists."""
        narrator = Narrator(self._experiment, self.started[round], cv)
        mine = self.by_pair.get((cv, round))
        if not mine:
            return [narrator.absence(self.by_cv.get(cv, []))]
        chains = (causes_of(self.by_id, event_id) for event_id in _last_of_each_order(mine))
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


class Narrator:
    """Turns the events of one CV into sentences; method `_<kind>` describes an event of that kind."""

    def __init__(self, experiment: Experiment, started: Event, cv: int) -> None:
        self.slot_ms = experiment.slots.slot_ns / 1e6
        self.retry_s = experiment.server.retry_s
        self.round_s = experiment.vefl.round_s
        self.constrained = experiment.scheme.constrained
        self.tdd = experiment.mac.tdd != "U"
        reports = experiment.mac.grant_delay_slots or experiment.mac.bsr_slots > 1
        waits = (  # that make an upload longer than its slots
            f"with the pattern {experiment.mac.tdd}" if self.tdd else "",
            "with the wait for a report and a grant" if reports else "",
            "with the broadcast of the model" if experiment.downlink.kind == "broadcast" else "",
        )
        self.waits = " and ".join(filter(None, waits))
        self.end_ns = experiment.duration_ns
        self.start_s = to_s(started["time_ns"])
        self.started = started
        self.before_ns = 0  # time of the previous event
        self.ordered = False  # whether a previous event was an order
        self.without_rounds = started["version"] is not None
        self.cv = cv

    def sentences(self, event: Event) -> Iterator[str]:
        """Describe one event; event kinds that add no information have no sentence."""
        describe = getattr(self, "_" + event["kind"], None) if event["kind"] in KINDS else None
        if describe is not None:
            yield f"[{to_s(event['time_ns']):.4f} s] {describe(event)}"
        self.before_ns = event["time_ns"]
        self.ordered = self.ordered or event["kind"] == "training_ordered"

    def absence(self, events: Sequence[Event]) -> str:
        """Explain why the CV has no events in the round; `events` are all its events in the run."""
        if not events:
            return f"CV {self.cv} was never in coverage in this run."
        crossed = [event for event in events if event["kind"] in ("coverage_entered", *DEPARTURES)]
        before = [event for event in crossed if event["time_ns"] <= self.start_s * 1e9]
        if before and before[-1]["kind"] == "coverage_entered":
            return f"CV {self.cv} was still working on an order from an earlier window and did not ask for a new one."
        entered = [event for event in crossed[len(before) :] if event["kind"] == "coverage_entered"]
        parts = [f"CV {self.cv} was not in coverage at {self.start_s:.3f} s, when the round started"]
        if before:
            left = "left coverage" if before[-1]["kind"] == "coverage_left" else "ended its trip"
            parts.append(f"it had {left} at {to_s(before[-1]['time_ns']):.3f} s")
        if entered:
            parts.append(f"it entered coverage at {to_s(entered[0]['time_ns']):.3f} s")
        return "; ".join(parts) + "."

    def _situation(self, event: Event) -> str:
        """What the server knew about the CV when it planned."""
        limit_s = self._limit_s(event)
        limit = f"at most {limit_s:g} s for an order" if self.without_rounds else f"a round of {limit_s:g} s"
        return (
            f"When the server planned, CV {self.cv} was {event['distance_m']:.1f} m from the gNB (mean SNR "
            f"{event['mean_snr_db']:.1f} dB with all power on one pRB), with a sojourn bound of "
            f"{to_s(event['sojourn_ns']):.3f} s, {limit} and {self._reserve(event)}, "
            f"which left T = {to_s(event['train_limit_ns']):.4f} s for training."
        )

    def _reserve(self, event: Event) -> str:
        """The worst-case upload, and how long it takes with all that has to be waited for."""
        slots = event["worst_slots"]
        if not self.waits:
            return f"a worst-case upload of {slots} slots ({slots * self.slot_ms:.1f} ms)"
        reserved_s = min(self._limit_s(event), to_s(event["sojourn_ns"])) - to_s(event["train_limit_ns"])
        return (
            f"a worst-case upload of {slots} {'full uplink ' if self.tdd else ''}slots, which takes "
            f"{reserved_s * 1e3:.1f} ms {self.waits}"
        )

    def _limit_s(self, event: Event) -> float:
        """The time limit of an order besides the sojourn bound."""
        left_s = to_s(self.end_ns - event["time_ns"])
        return min(self.round_s, left_s) if self.without_rounds else self.round_s

    def _training_ordered(self, event: Event) -> str:
        version = "" if event["version"] is None else f" from version {event['version']} of the model"
        if not self.constrained:
            return (
                f"When the server planned, CV {self.cv} was {event['distance_m']:.1f} m from the gNB. The server "
                f"ordered l = {event['iterations']} iterations{version} at η = {event['cpu_hz'] / 1e9:.4f} GHz; the "
                f"scheme has no limits on time, energy and cost."
            )
        most = "" if event["max_iterations"] is None else f" (at most {event['max_iterations']} were feasible)"
        return (
            f"{self._situation(event)} "
            f"The server ordered l = {event['iterations']} iterations{version}{most} at "
            f"η = {event['cpu_hz'] / 1e9:.4f} GHz: training takes t_cmp = {to_s(event['train_ns']):.4f} s, the "
            f"upload may start at {to_s(event['earliest_ns']):.4f} s and is planned to end by "
            f"{to_s(event['deadline_ns']):.4f} s."
        )

    def _cv_ineligible(self, event: Event) -> str:
        reason = in_words(event["reason"])
        return f"{self._situation(event)} The CV was not eligible: {reason}{self._wait(event)}."

    def _wait(self, event: Event) -> str:
        """Without rounds, what a CV that got no order does next."""
        if not self.without_rounds:
            return ""
        if event["reason"] in ("time", "cpu") or not self.ordered:
            again = event["time_ns"] + to_ns(self.retry_s) < self.end_ns
            return f"; it asks for an order again after {self.retry_s:g} s" if again else ""
        return "; it waits for the next window" if self.start_s + self.round_s < to_s(self.end_ns) else ""

    def _cv_passed_over(self, event: Event) -> str:
        situation = self._situation(event)
        if self.without_rounds:
            return f"{situation} The scheme did not select the CV; it waits for the next window."
        if event["max_iterations"] is None:
            return f"{situation} The scheme did not select the CV."
        eligible = f"{situation} The CV was eligible and could have done {event['max_iterations']} iterations, but"
        if self.started["reason"] not in ("optimal", "gap"):
            return f"{eligible} the scheme did not select it ({self.started['reason']})."
        return (
            f"{eligible} the plan selects other CVs ({self.started['count']} CVs in coverage, planned cost "
            f"{self.started['cost']:.1f})."
        )

    def _model_received(self, event: Event) -> str:
        return f"The gNB had broadcast the model: the CV began to train, {event['distance_m']:.1f} m from the gNB."

    def _training_finished(self, event: Event) -> str:
        return f"The CV finished training {event['distance_m']:.1f} m from the gNB and used {event['energy_j']:.3f} J."

    def _upload_offered(self, event: Event) -> str:
        wait_ms = (event["earliest_ns"] - event["time_ns"]) / 1e6
        waits = f"; its upload may start {wait_ms:.1f} ms later" if wait_ms >= self.slot_ms else ""
        return f"The CV offered its update of {event['bits'] / 1e3:.1f} kbit to the gNB{waits}."

    def _upload_started(self, event: Event) -> str:
        return "The gNB scheduled the CV for the first time."

    def _upload_received(self, event: Event) -> str:
        if not self.constrained:
            return f"The update counts as delivered without use of the network. {self._bill(event)}"
        return (
            f"The gNB received the whole update: {event['bits'] / 1e3:.1f} kbit in {self._sent(event)}, with the CV "
            f"{event['distance_m']:.1f} m away. {self._bill(event)}"
        )

    def _update_lost(self, event: Event) -> str:
        cause, total = in_words(event["reason"]), event["bits"] + event["bits_left"]
        if event["reason"] in DEPARTURES:
            cause += f", {event['distance_m']:.1f} m from the gNB"
        return (
            f"The update was lost because {cause}: {event['bits_left'] / 1e3:.1f} of "
            f"{total / 1e3:.1f} kbit were not sent yet after {self._sent(event)}. {self._bill(event)}"
        )

    def _update_aggregated(self, event: Event) -> str:
        if event["staleness"] is None:
            return f"The server aggregated the update with weight {event['weight']:.4f}."
        ages = {0: "which was still the current version", 1: "which was one server step old"}
        age = ages.get(event["staleness"], f"which was {event['staleness']} server steps old")
        waited_s = to_s(event["time_ns"] - self.before_ns)
        return (
            f"After the update had waited {waited_s:.4f} s, the buffer was full and the server aggregated it with "
            f"weight {event['weight']:.4f}; it was trained from version {event['version']} of the model, {age}."
        )

    def _sent(self, event: Event) -> str:
        """The slots of an upload, its mean SNR, and how many grants were lost because channel knowledge was old."""
        snr = "" if event["mean_snr_db"] is None else f" at a mean SNR of {event['mean_snr_db']:.1f} dB"
        lost = f" (the grants of {event['count']} of these slots were above the capacity and lost)"
        return f"{event['slots']} slots{snr}{lost if event['count'] is not None else ''}"

    def _bill(self, event: Event) -> str:
        return f"The CV used {event['energy_j']:.3f} J in total and was paid {event['cost']:.2f}."
