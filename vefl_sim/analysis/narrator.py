"""Tells what happened to one CV in a round, in sentences made from its events."""

from collections.abc import Iterator, Sequence

from vefl_sim.analysis.events import Event
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.protocol.trace import DEPARTURES, KINDS


def _waits(experiment: Experiment) -> Iterator[str]:
    """What makes the time of an upload longer than its slots."""
    mac = experiment.mac
    if mac.tdd != "U":
        yield f"with the pattern {mac.tdd}"
    if mac.grant_delay_slots or mac.bsr_slots > 1:
        yield "with the wait for a report and a grant"
    if experiment.downlink.kind == "broadcast":
        yield "with the broadcast of the model"


class Narrator:
    """Turns the events of one CV into sentences; method `_<kind>` describes an event of that kind."""

    def __init__(self, experiment: Experiment, started: Event, cv: int) -> None:
        self.slot_ms = experiment.slots.slot_ns / 1e6
        self.retry_s = experiment.server.retry_s
        self.round_s = experiment.vefl.round_s
        self.constrained = experiment.scheme.constrained
        self.tdd = experiment.mac.tdd != "U"
        self.waits = [*_waits(experiment)]
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
            yield f"{_time(event)} {describe(event)}"
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
        return (
            f"When the server planned, CV {self.cv} was {event['distance_m']:.1f} m from the gNB (mean SNR "
            f"{event['mean_snr_db']:.1f} dB with all power on one pRB), with a sojourn bound of "
            f"{to_s(event['sojourn_ns']):.3f} s, {self._time_limit(event)} and {self._reserve(event)}, "
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
            f"{reserved_s * 1e3:.1f} ms {' and '.join(self.waits)}"
        )

    def _time_limit(self, event: Event) -> str:
        """The time limit of an order besides the sojourn bound."""
        if not self.without_rounds:
            return f"a round of {self.round_s:g} s"
        ends = " (until the end of the run)" if self._limit_s(event) < self.round_s else ""
        return f"at most {self._limit_s(event):g} s for an order{ends}"

    def _limit_s(self, event: Event) -> float:
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
        reasons = {
            "time": "no time was left for training after the worst-case upload",
            "cpu": "its CPU is too slow for a single iteration in that time",
            "energy": "a single iteration would exceed its energy budget",
            "budget": "the rest of its share of the budget does not pay for a single iteration",
        }
        reason = reasons.get(event["reason"], event["reason"])
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
            f"The gNB received the whole update: {event['bits'] / 1e3:.1f} kbit in {event['slots']} "
            f"slots{self._snr(event)}{self._outages(event)}, with the CV {event['distance_m']:.1f} m away. "
            f"{self._bill(event)}"
        )

    def _update_lost(self, event: Event) -> str:
        causes = {
            "round_ended": "the round ended",
            "coverage_left": f"the CV left coverage, {event['distance_m']:.1f} m from the gNB",
            "trip_ended": f"the CV ended its trip, {event['distance_m']:.1f} m from the gNB",
            "training_unfinished": "the time was over before the training was finished",
            "expired": f"its order expired after {self.round_s:g} s",
        }
        cause, total = causes.get(event["reason"], event["reason"]), event["bits"] + event["bits_left"]
        return (
            f"The update was lost because {cause}: {event['bits_left'] / 1e3:.1f} of "
            f"{total / 1e3:.1f} kbit were not sent yet after {event['slots']} "
            f"slots{self._snr(event)}{self._outages(event)}. "
            f"{self._bill(event)}"
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

    def _snr(self, event: Event) -> str:
        return "" if event["mean_snr_db"] is None else f" at a mean SNR of {event['mean_snr_db']:.1f} dB"

    def _outages(self, event: Event) -> str:
        """How many grants were above the capacity of their slot, because the gNB's channel knowledge was old."""
        if event["count"] is None:
            return ""
        return f" (the grants of {event['count']} of these slots were above the capacity and lost)"

    def _bill(self, event: Event) -> str:
        return f"The CV used {event['energy_j']:.3f} J in total and was paid {event['cost']:.2f}."


def _time(event: Event) -> str:
    return f"[{to_s(event['time_ns']):.4f} s]"
