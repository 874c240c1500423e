"""A run that one can step through: by rounds, by plans or by slots. Everything else that runs is a loop around it."""

from collections import deque
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simpy import Event, Process

from vefl_sim.core.arrays import NamedArrays
from vefl_sim.core.clock import to_ns, to_s
from vefl_sim.core.errors import BadInput, RunFailed, RunNotFound, first_line
from vefl_sim.core.state import Arrays, Stateful, pack, unpack
from vefl_sim.experiment.changes import begun, with_changes
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.toml import load, with_settings
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.optimize.rat.problem import RatAllocation, RatProblem
from vefl_sim.protocol.control import AllocationDue, PlanDue, RoundDue
from vefl_sim.protocol.instants import Instant, NanosecondEnvironment, Precedence
from vefl_sim.protocol.mac import Burst, require_valid
from vefl_sim.protocol.messages import RoundReport
from vefl_sim.protocol.server.orders import checked_plan
from vefl_sim.protocol.trace import KeysChanged, Noted, Trace
from vefl_sim.radio.link import Link
from vefl_sim.records.recorder import Recorder
from vefl_sim.records.table_parts import MainTables
from vefl_sim.records.totals import Tally
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.scheme import Plan
from vefl_sim.simulation.audit import Audit
from vefl_sim.simulation.scenario import Scenario, build_scenario
from vefl_sim.simulation.wiring import wire

if TYPE_CHECKING:
    import pandas as pd

Q = TypeVar("Q", RoundDue, PlanDue, AllocationDue)


class Simulation(MainTables):
    """A run in memory that one steps through; its tables can be read at any time.

    for report in vefl_sim.Simulation("experiments/quickstart.toml"):
        print(report.round, report.evaluation)

    Plans can come from outside: `next_plan` gives what the server observes, and takes the plan for it. Likewise
    `next_slot`, for the pRBs and powers of a slot. The loops can be mixed: each goes on from where the run is.
    """

    def __init__(
        self,
        experiment: Experiment | Scenario | str | Path,
        settings: Settings = (),
        *,
        parts: Path | None = None,
        start_ns: int = 0,
        start_round: int = 1,
    ) -> None:
        """Prepare a run of an experiment, or of the TOML file of one, with other values of keys (`settings`).

        A scenario can be run any number of times. `parts`: the folder in which tables are kept instead of in memory;
        `start_ns`, `start_round`: where a checkpoint was written that is to be restored.
        """
        if isinstance(experiment, Scenario) and settings:
            raise BadInput("A scenario is built with its settings: give them to the experiment.")
        if isinstance(experiment, (str, Path)):
            experiment = load(experiment, settings)
        elif isinstance(experiment, Experiment) and settings:
            experiment = with_settings(experiment, *setting_texts(settings))
        self._first = build_scenario(experiment) if isinstance(experiment, Experiment) else experiment
        self.experiment, self._env = self._first.experiment, NanosecondEnvironment(start_ns)
        self._changes = begun(self.experiment, start_round, start_ns)  # that the actors know
        self.scenario, self._noted = self._first.with_changes(self._changes), {*self._changes}  # by the trace
        self.trace, self._reports = Trace(self._env), deque[RoundReport](maxlen=1000)
        self._end: Process | None = None  # the server's process; None before the first step
        self._failure: BaseException | None = None  # what has ended the run before its end
        self._is_closed = False
        self.audit, self._tally = Audit.of(self.scenario.experiment, self.scenario.link), Tally()
        self.trace.on(Burst, self.audit.burst)
        self.recorder = Recorder(self.experiment, self.trace, parts)
        self.trace.on(Noted, self._note)
        for listener in (self.audit.round, self._tally.add, self._reports.append):
            self.trace.on(RoundReport, listener)
        self.actors = wire(self.scenario, self._env, self.trace, self._first)

    def __iter__(self) -> Iterator[RoundReport]:
        """Simulate round by round, and give the report of each; without rounds, window by window."""
        more = True
        while more:
            more = self.next_round()
            while self._reports:
                yield self._reports.popleft()
        self.close()

    def next_round(self) -> bool:
        """Simulate up to the start of the next round, first to that of round 1; False: the run is over."""
        return self._next(RoundDue) is not None

    def next_plan(self, plan: Plan | None = None) -> Observation | None:
        """Go on with this plan for the last observation, up to the next: what the server observes and plans for.

        None as a plan: the scheme of the experiment plans. The result is None when the run is over. A plan that cannot
        be followed is refused, and another one can be handed in. `new_reports` gives what became of earlier plans:
        a decision is that of the observation with the same `snapshot.time_ns`.
        """
        if plan is not None:
            checked_plan(self._due(PlanDue, "next_plan").observation, plan)
            self.audit.binding = False  # as for a scheme of the user: violations of C1–C6 are counted
        due = self._next(PlanDue, plan)
        if due is None:
            self.close()
        return deepcopy(due.observation) if due else None

    def next_slot(self, allocation: RatAllocation | None = None) -> RatProblem | None:
        """Go on with this allocation of the last slot, up to the next slot in which CVs send.

        None as an allocation: the method of the experiment allocates. The result is None when the run is over. One by
        one, slots take about 0.3 ms each, and sums are rounded otherwise in the last digit: the digest differs.
        """
        if allocation is not None:
            require_valid(self._due(AllocationDue, "next_slot").problem, allocation)
            self.audit.floors = False  # as for a method of the user
        due = self._next(AllocationDue, allocation)
        if due is None:
            self.close()
        return deepcopy(due.problem) if due else None

    def close(self) -> None:
        """At the end of the run: complete the tables, and check that everything adds up."""
        if self.is_over and not self._is_closed:
            self._is_closed = True
            self.recorder.close()
            self.audit.close(self.actors.ledger)

    @property
    def is_over(self) -> bool:
        """Whether all rounds are simulated; a run that has failed is not over."""
        return self._end is not None and self._end.processed and self._failure is None

    @property
    def rounds_done(self) -> int:
        """Number of rounds that have ended; without rounds, the last one is in the tables a window later."""
        return self.actors.server.round - 1

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self._env.now

    def table(self, name: str) -> "pd.DataFrame":
        """A table with all rows so far: rounds, vehicles, events, mobility, …"""
        try:
            return self.recorder.table(name)
        except KeyError:
            raise RunNotFound(f"This run does not record a table {name!r}.") from None

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the run so far, as in summary.json, without times on this machine."""
        sizes = {"simulated_s": to_s(self.now_ns), "payload_bits": self.scenario.payload_bits}
        return self._tally.figures() | self.audit.figures() | sizes

    def content_digest(self) -> str:
        """Digest of all tables so far; that of a run that is over is the one of the same run in a directory."""
        return self.recorder.content_digest()

    @property
    def model(self) -> NamedArrays:
        """The parameters of the current global model, by their names in flax; empty if nothing is learnt."""
        model = self.actors.server.model
        return model.learner.arrays_of(model.parameters)

    def stateful(self) -> dict[str, Stateful]:
        """All parts with a state, by name, in the order in which they are restored."""
        return self.actors.stateful() | {"recorder": self.recorder, "audit": self.audit, "tally": self._tally}

    def new_reports(self) -> list[RoundReport]:
        """The reports of rounds since the last call, at most the last thousand; for loops that do not iterate."""
        reports = [*self._reports]
        self._reports.clear()
        return reports

    def _with(self, changes: Sequence[int]) -> Experiment:
        """The experiment with the keys of these changes, by their index."""
        return without_unused_keys(with_changes(self.experiment, changes))

    def _change_between_rounds(self, round: int) -> bool:
        """If keys change with this round, replace all actors by new ones in the same state; False if none changes.

        Resuming does the same, so a run that is resumed behind a change goes on as it would have done.
        """
        changes = begun(self.experiment, round, self.now_ns)
        if changes == self._changes:
            return False
        if not self.actors.server.model.scheme.resumable:
            raise RunFailed(
                "keys cannot change while a scheme remembers what cannot be saved: give it state and restore."
            )
        for index in changes:
            if index not in self._noted:
                self.trace.note(KeysChanged(index, self.experiment.change[index].keys, self._with(changes)))
        arrays: Arrays = {}
        states = pack({name: part.state() for name, part in self.actors.stateful().items()}, arrays)
        self._env = self.trace.env = NanosecondEnvironment(self.now_ns)
        self.scenario, self._changes = self._first.with_changes(changes), changes
        self.actors = wire(self.scenario, self._env, self.trace, self._first)
        for name, state in unpack(states, arrays).items():
            self.actors.stateful()[name].restore(state)
        self._start()
        return True

    def _change_within_round(self, index: int, _: Event) -> None:
        """Change the keys of the uplink at once; plans know of it from the next round on."""
        experiment = self._with(begun(self.experiment, self.actors.server.round, self.now_ns))
        self.trace.note(KeysChanged(index, self.experiment.change[index].keys, experiment))
        self.actors.gnb.change(Link.of(experiment.radio), experiment.radio.on)

    def _start(self) -> None:
        """Start all processes, and wait for the changes within rounds that are still to come."""
        self._end = self.actors.start()
        for index, change in enumerate(self.experiment.change):
            if change.at_s is not None and (time_ns := to_ns(change.at_s)) > self.now_ns:
                instant = Instant(self._env, time_ns, Precedence.ROUND)
                instant.callbacks.append(partial(self._change_within_round, index))

    def _note(self, noted: Noted) -> None:
        if isinstance(noted.event, KeysChanged):
            self._noted.add(noted.event.index)
            self.audit.use(noted.event.experiment)

    def _due(self, kind: type[Q], call: str) -> Q:
        """The question that is due, which must be of this kind."""
        due = self.actors.control.due
        if isinstance(due, kind):
            return due
        state = "the run is over" if self.is_over else f"the run waits for something else: call {call}() first"
        raise BadInput(f"{call} takes no answer now: {state}.")

    def _next(self, kind: type[Q], answer: Any = None) -> Q | None:
        """Answer the question that is due, and simulate until one of this kind is; None: the run is over."""
        if self._failure is not None:
            raise RunFailed(f"this run has failed ({first_line(self._failure)}): make a new one.") from self._failure
        if self._end is None:
            self._start()
        try:
            while not self.is_over:
                control = self.actors.control
                control.stops_for = kind
                if control.due is not None:
                    control.answer(self._default_answer() if answer is None else answer)
                    answer = None
                while control.due is None and not self.is_over:
                    self._env.step()
                if isinstance(control.due, RoundDue) and self._change_between_rounds(control.due.round):
                    continue
                if isinstance(control.due, kind):
                    return control.due
        except BaseException as failure:
            self._failure = failure
            raise
        return None

    def _default_answer(self) -> Any:
        """The answer to the question that is due: that of the experiment's own parts."""
        due = self.actors.control.due
        if isinstance(due, PlanDue):
            return self.actors.server.planner.scheme.plan(due.observation)
        return self.actors.gnb.mac.policy(due.problem) if isinstance(due, AllocationDue) else None
