"""How a branch differs from the run that it comes from; both are the same world, so the difference is exact."""

from collections.abc import Iterator

from vefl_sim.core.clock import to_ns
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import metric_of_run


def branch_lines(parent: Run, branch: Run) -> Iterator[str]:
    """A table of what the rounds since the last change of the branch delivered, cost and learnt, in both runs."""
    change = branch.experiment.change[-1]
    first, second = (run.rounds.set_index("round") for run in (parent, branch))
    since = change.from_round or int((second["end_ns"] <= to_ns(change.at_s or 0.0)).sum()) + 1
    metric = metric_of_run(branch)
    yield f"{f'from round {since} on':24}{'before':>12}{'branch':>12}{'difference':>12}"
    for title, name, form in (
        ("updates ordered", "ordered", ".0f"),
        ("updates delivered", "delivered", ".0f"),
        ("paid", "cost", ".1f"),
        ("energy, J", "energy_j", ".1f"),
    ):
        before, after = (float(rounds.loc[since:, name].sum()) for rounds in (first, second))
        yield _line(title, before, after, form)
    if metric is None:
        return
    end, other_end = (metric.of_summary("last", run.summary) for run in (parent, branch))
    if end is not None and other_end is not None:
        yield _line(f"{metric.name} at the end", end, other_end, metric.form)


def _line(title: str, before: float, after: float, form: str) -> str:
    return f"{title:24}{before:>12{form}}{after:>12{form}}{after - before:>+12{form}}"
