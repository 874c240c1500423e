"""Why did this update make it, or not? The causal chain of one CV in one round, in sentences."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from vefl_sim.analysis.events import chain, select
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.run_directory import Run


def why(run: Run, *, cv: int, round: int) -> list[str]:
    """The story from the order (or from its absence) to the outcome, with the numbers that decided it.

    Without rounds, `round` is a window of t_th: all orders of the CV that were given in it, one after the other.
    """
    events = run.events
    started = select(events, round=round, kind="round_started")
    if started.empty:
        known = events["round"].dropna()
        span = f"1 to {known.max()}" if len(known) else "none"
        raise BadInput(f"There is no round {round} in {run.path}; rounds recorded: {span}.")
    mine = select(events, cv=cv, round=round)
    teller = _Teller(run.experiment, started.iloc[0], cv)
    if mine.empty:
        return [teller.absent(select(events, cv=cv))]
    ends = (chain(events, event_id) for event_id in _last_of_each_order(mine))
    return [sentence for links in ends for event in links for sentence in teller.tell(event)]


def _last_of_each_order(events: pd.DataFrame) -> list[int]:
    """Where each order of a CV, or each refusal, has led to; without rounds there may be several in a window."""
    began: dict[int, int] = {}  # event -> the first of its order
    last: dict[int, int] = {}
    for event, cause in zip(events["id"].tolist(), events["cause"].tolist(), strict=True):
        began[event] = began.get(cause, event)
        last[began[event]] = event
    return list(last.values())


class _Teller:
    """Turns events into sentences."""

    def __init__(self, experiment: Experiment, started: pd.Series, cv: int) -> None:
        self.slot_ms = experiment.slots.slot_ns / 1e6
        self.retry_s = experiment.server.retry_s
        self.round_s = experiment.vefl.round_s
        self.constrained = experiment.scheme.constrained
        self.end_ns, self.radius_m = experiment.duration_ns, experiment.radio.coverage_radius_m
        self.start_s = to_s(int(started["time_ns"]))
        self.started = started
        self.before_ns = 0  # when what was told last happened
        self.ordered = False  # whether what was told has an order in it
        self.without_rounds = not pd.isna(started["version"])
        self.cv = cv

    def tell(self, event: pd.Series) -> Iterator[str]:
        """The sentences of one event; kinds that only repeat another are silent."""
        teller = getattr(self, "_" + event["kind"], None)
        if teller is not None:
            yield f"{_time(event)} {teller(event)}"
        self.before_ns = int(event["time_ns"])
        self.ordered = self.ordered or event["kind"] == "training_ordered"

    def absent(self, events: pd.DataFrame) -> str:
        """A CV that the round knows nothing about was outside."""
        if events.empty:
            return f"CV {self.cv} was never in coverage in this run."
        before = events[events["time_ns"] <= self.start_s * 1e9]
        after = events[events["time_ns"] > self.start_s * 1e9]
        crossed = before[before["kind"].isin(["coverage_entered", "coverage_left"])]
        if len(crossed) and crossed.iloc[-1]["kind"] == "coverage_entered":
            return f"CV {self.cv} was still at work on an order of an earlier window, and asked for none in this one."
        left = before[before["kind"] == "coverage_left"]
        entered = after[after["kind"] == "coverage_entered"]
        parts = [f"CV {self.cv} was not in coverage at {self.start_s:.3f} s, when the round started"]
        if len(left):
            parts.append(f"it had left at {to_s(int(left.iloc[-1]['time_ns'])):.3f} s")
        if len(entered):
            parts.append(f"it came in at {to_s(int(entered.iloc[0]['time_ns'])):.3f} s")
        return "; ".join(parts) + "."

    def _situation(self, event: pd.Series) -> str:
        slots, limit_s = event["worst_slots"], to_s(int(event["train_limit_ns"]))
        return (
            f"{event['distance_m']:.1f} m from the gNB (mean SNR {event['mean_snr_db']:.1f} dB with all power on one "
            f"pRB), sojourn bound {to_s(int(event['sojourn_ns'])):.3f} s {self._at_most(event)}, "
            f"worst-case upload {slots} slots ({slots * self.slot_ms:.1f} ms), so T = {limit_s:.4f} s to train"
        )

    def _at_most(self, event: pd.Series) -> str:
        """What else bounds the time of an order."""
        if not self.without_rounds:
            return f"in a round of {self.round_s:g} s"
        left_s = to_s(self.end_ns - int(event["time_ns"]))
        return f"and {min(self.round_s, left_s):g} s for an order" + (
            ", when the run ends" if left_s < self.round_s else ""
        )

    def _training_ordered(self, event: pd.Series) -> str:
        version = "" if pd.isna(event["version"]) else f" of version {event['version']} of the model"
        if not self.constrained:
            return (
                f"The server saw CV {self.cv} {event['distance_m']:.1f} m from the gNB. Without constraints it ordered "
                f"l = {event['iterations']} iterations{version} at η = {event['cpu_hz'] / 1e9:.4f} GHz, whatever that "
                f"takes."
            )
        most = "" if pd.isna(event["max_iterations"]) else f" (at most {event['max_iterations']} were feasible)"
        return (
            f"The server saw CV {self.cv} {self._situation(event)}. "
            f"It ordered l = {event['iterations']} iterations{version}{most} at η = {event['cpu_hz'] / 1e9:.4f} GHz, "
            f"t_cmp = {to_s(int(event['train_ns'])):.4f} s, to be served from {to_s(int(event['earliest_ns'])):.4f} s "
            f"on and through by {to_s(int(event['deadline_ns'])):.4f} s."
        )

    def _cv_ineligible(self, event: pd.Series) -> str:
        reasons = {
            "time": "no time was left for training after the worst-case upload",
            "cpu": "its CPU is too slow for a single iteration in that time",
            "energy": "a single iteration would exceed its energy budget",
            "budget": "what is left of its share of the money does not buy a single iteration",
        }
        reason = reasons.get(event["reason"], event["reason"])
        return (
            f"The server saw CV {self.cv} {self._situation(event)}. It was not eligible: {reason}{self._wait(event)}."
        )

    def _wait(self, event: pd.Series) -> str:
        """Without rounds, what somebody waits for who got nothing."""
        if not self.without_rounds:
            return ""
        if event["reason"] in ("time", "cpu") or not self.ordered:
            again = int(event["time_ns"]) + to_ns(self.retry_s) < self.end_ns
            return f"; it asks again after {self.retry_s:g} s" if again else ""
        return "; it waits for the next window" if self.start_s + self.round_s < to_s(self.end_ns) else ""

    def _cv_passed_over(self, event: pd.Series) -> str:
        seen = f"The server saw CV {self.cv} {self._situation(event)}."
        if self.without_rounds:
            return f"{seen} The scheme did not order it; it waits for the next window."
        if pd.isna(event["max_iterations"]):
            return f"{seen} The scheme did not order it."
        able = f"{seen} It was eligible and could have done {event['max_iterations']} iterations, but"
        if self.started["reason"] not in ("optimal", "gap"):
            return f"{able} was not among those whom the scheme took ({self.started['reason']})."
        return (
            f"{able} the plan was worth more with others ({self.started['count']} CVs in coverage, planned cost "
            f"{self.started['cost']:.1f})."
        )

    def _training_finished(self, event: pd.Series) -> str:
        return f"It finished training {event['distance_m']:.1f} m from the gNB, having used {event['energy_j']:.3f} J."

    def _upload_offered(self, event: pd.Series) -> str:
        wait_ms = (event["earliest_ns"] - event["time_ns"]) / 1e6
        waits = f"; its first slot is {wait_ms:.1f} ms away" if wait_ms >= self.slot_ms else ""
        return f"It offered {event['bits'] / 1e3:.1f} kbit to the gNB{waits}."

    def _upload_started(self, event: pd.Series) -> str:
        return "The gNB scheduled it for the first time."

    def _upload_received(self, event: pd.Series) -> str:
        if not self.constrained:
            return f"The update counts as delivered, without the network. {self._bill(event)}"
        return (
            f"The last bit arrived: {event['bits'] / 1e3:.1f} kbit in {event['slots']} slots{self._snr(event)}, "
            f"{event['distance_m']:.1f} m from the gNB. {self._bill(event)}"
        )

    def _update_lost(self, event: pd.Series) -> str:
        causes = {
            "round_ended": "the round ended",
            "coverage_left": self._departure(event),
            "training_unfinished": "its time was over before its training was",
            "expired": f"the {self.round_s:g} s of its order were over",
        }
        total = event["bits"] + event["bits_left"]
        return (
            f"The update was lost because {causes[event['reason']]}: {event['bits_left'] / 1e3:.1f} of "
            f"{total / 1e3:.1f} kbit were left after {event['slots']} slots{self._snr(event)}. {self._bill(event)}"
        )

    def _departure(self, event: pd.Series) -> str:
        """Some do not cross the circle: their trip ends within it."""
        what = "left coverage" if event["distance_m"] > self.radius_m - 1 else "came to the end of its trip"
        return f"it {what}, {event['distance_m']:.1f} m from the gNB"

    def _update_aggregated(self, event: pd.Series) -> str:
        if pd.isna(event["staleness"]):
            return f"The server added it to the model with weight {event['weight']:.4f}."
        stale = {0: "which nobody had changed since", 1: "which was one step old by then"}
        age = stale.get(event["staleness"], f"which was {event['staleness']} steps old by then")
        waited_s = to_s(int(event["time_ns"]) - self.before_ns)
        return (
            f"After {waited_s:.4f} s in the buffer, which was full then, the server added it to the model with weight "
            f"{event['weight']:.4f}; it came from version {event['version']}, {age}."
        )

    def _snr(self, event: pd.Series) -> str:
        return "" if pd.isna(event["mean_snr_db"]) else f" at a mean SNR of {event['mean_snr_db']:.1f} dB"

    def _bill(self, event: pd.Series) -> str:
        return f"It used {event['energy_j']:.3f} J in all and was paid {event['cost']:.2f}."


def _time(event: Any) -> str:
    return f"[{to_s(int(event['time_ns'])):.4f} s]"
