"""Measure how fast vefl_sim is, and compare it with a stored baseline of the same machine.

    python benchmarks                              # all cases, about three minutes
    python benchmarks --only slots cells --turns 9
    python benchmarks --baseline                   # store the figures as the baseline of this machine
    python benchmarks --check                      # exit code 1 if a figure is over 1.3 times worse than the baseline

All cases run on one thread, in turns: each turn measures every case once. Figures are medians over the turns; times are
CPU times, except for checkpoints and vectors of environments. A ratio is the cost now over the cost of the baseline, so
above 1 is worse; for times it is divided by that of a fixed calculation, which shows how much slower the machine itself
is at the moment. Each run adds one line to benchmarks/history.jsonl.
"""

from harness import Case, Figures, measured, number

import argparse
import sys
from datetime import datetime
from pathlib import Path

from history import Damaged, History, Measurement, ratios, regressions, this_commit, this_machine

CASES = [
    Case("start", "bench_run:start", "start-up of the command line"),
    Case("network", "bench_run:network", "FDPC and PDPC without learning: 35 CVs in coverage, Z = 10"),
    Case("checkpoint", "bench_checkpoint:checkpoint", "writing a checkpoint"),
    Case("slots", "bench_rat:slots", "the MAC by the number of CVs that send, Z = 10"),
    Case("cells", "bench_rat:cells", "a slot with many pRBs and CVs: time and certified gap"),
    Case("planners", "bench_vefl:planners", "the VEFL sub-problem, V = 35"),
    Case("rounds", "bench_gym:rounds", "Round-v0 of Gymnasium beside the bare run, 35 CVs in coverage"),
    Case("steps", "bench_gym:slots", "Slot-v0 of Gymnasium, ten CVs and ten pRBs"),
    Case("vector", "bench_gym:processes", "two processes of Round-v0 beside one, in wall time"),
    Case("learning", "bench_run:learning", "local training and evaluation"),
    Case("mobility", "bench_mobility:mobility", "1000 and 5000 vehicles on the streets, about 300 in coverage"),
]


def options_of(arguments: list[str], cases: list[Case]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python benchmarks",
        description=__doc__,
        epilog="\n".join(["cases:", *(f"  {case.name:12}{case.about}" for case in cases)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [case.name for case in cases]
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=names, default=names, help="cases, see below (all)"
    )
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="how often each case is measured (5)")
    then = parser.add_mutually_exclusive_group()
    then.add_argument("--baseline", action="store_true", help="store the figures as the baseline of this machine")
    then.add_argument("--check", action="store_true", help="fail if a figure is over 1.3 times worse than the baseline")
    then.add_argument("--last", action="store_true", help="print the last figures of this machine, and measure nothing")
    options = parser.parse_args(arguments)
    if options.turns < 1:
        parser.error("--turns must be at least 1")
    if options.baseline and options.only != names:
        parser.error("a baseline has all cases: give --baseline without --only")
    return options


def report(run: Measurement, last: Figures, baseline: Figures) -> str:
    """One line per figure: in this run, in the last run, in the baseline, and the ratio to the baseline."""
    compared, width = ratios(run.figures, baseline), max(map(len, run.figures), default=0) + 2
    lines = [f"{run.machine}; {run.commit}; {run.date}; medians of {run.turns} turns"]
    lines += [f"{'':{width}}{'now':>10}{'last':>10}{'baseline':>10}{'ratio':>8}"]
    for label, value in run.figures.items():
        before = [number(figures[label]) if label in figures else "—" for figures in (last, baseline)]
        worse = f"{compared[label]:.2f}" if label in compared else "—"
        lines += [f"{label:{width}}{number(value):>10}{before[0]:>10}{before[1]:>10}{worse:>8}"]
    return "\n".join(lines)


def about(baseline: Measurement | None, history: History) -> str:
    """Which baseline the ratios refer to, or why there are none."""
    if baseline:
        return f"Baseline of this machine: {baseline.commit}, {baseline.date}, {baseline.turns} turns."
    others = history.other_machines()
    unused = f" Not compared with the baseline of another machine ({'; '.join(others)})." if others else ""
    return f"This machine ({history.machine}) has no baseline yet: --baseline stores one.{unused}"


def main(arguments: list[str], history: History, cases: list[Case] = CASES) -> int:
    """Measure and print what the arguments ask for; returns the exit code."""
    options = options_of(arguments, cases)
    baseline, runs = history.baseline(), history.runs()
    reference = baseline.figures if baseline else {}
    last = {label: value for run in runs for label, value in run.figures.items()}  # not all need to be of the same run
    if options.check and not baseline:
        print(about(baseline, history), file=sys.stderr)
        return 2
    if options.last:
        print(report(runs[-1], {}, reference) if runs else "Nothing has been measured on this machine yet.")
        return 0
    figures, skipped = measured({case.name: case.prepare for case in cases if case.name in options.only}, options.turns)
    now = datetime.now().isoformat(" ", "seconds")
    history.append(new := Measurement(history.machine, this_commit(), now, options.turns, figures))
    print(report(new, last, reference), *(f"{name} was skipped: {why}" for name, why in skipped.items()), sep="\n")
    print(about(new if options.baseline else baseline, history))
    if options.baseline:
        history.store_baseline(new)
    worse = regressions(ratios(figures, reference)) if options.check else {}
    for label, times in worse.items():
        print(f"regression: {label} is {times:.2f} times worse than the baseline", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], History(Path(__file__).parent, this_machine())))
    except Damaged as why:
        print(why, file=sys.stderr)
        sys.exit(2)
