"""Watch a run: print every round, stop the run after the second, and resume it."""

import signal

import vefl_sim


class Printer(vefl_sim.RunWatcher):
    """Prints the progress of a run; may ask for a stop, as Ctrl-C does. Methods that are left out do nothing."""

    def __init__(self, stop_after: int = 0) -> None:
        self.stop_after = stop_after

    def started(self, run, scenario) -> None:
        self.run = run
        print(f"{len(scenario.shards)} CVs will come, updates have {scenario.payload_bits / 1e3:.1f} kbit")

    def resuming(self, checkpoint, notes) -> None:
        print(f"resuming at {checkpoint.time_ns / 1e9:g} s, before round {checkpoint.round}")

    def round(self, report) -> None:
        delivered = [outcome.order.cv for outcome in report.outcomes if outcome.lost is None]
        print(f"round {report.round} ended at {report.end_ns / 1e9:g} s: {len(delivered)} updates delivered")
        if report.round == self.stop_after:
            signal.raise_signal(signal.SIGINT)

    def stopping(self) -> None:
        print("the run will stop before the next round")


tables = {"run": {"name": "watched", "rounds": 3}, "data": {"train_samples": 4000}, "learning": {"kind": "none"}}
watcher = Printer(stop_after=2)
try:
    vefl_sim.simulate(vefl_sim.from_tables(tables), watcher=watcher)
except vefl_sim.VeflError:
    print(watcher.run.state)
print(vefl_sim.resume(watcher.run, watcher=Printer()).state)
