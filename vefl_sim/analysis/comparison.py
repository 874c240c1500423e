"""Prints a comparison: the table of means, and the differences to the first variant."""

import math
from collections.abc import Iterator

import pandas as pd

from vefl_sim.analysis.figures.measures import decimals, difference_decimals
from vefl_sim.analysis.summary import why_empty
from vefl_sim.learning.metric import Metric
from vefl_sim.records.totals import energy_unit
from vefl_sim.sweep.comparison import Comparison, metric_of_run
from vefl_sim.sweep.power import seeds_sentence

_DIFFERENCES = (("p_suc", "p_suc", 4), ("cost", "paid", 1), ("energy_j", "", 1))
"""The differences that are printed besides the metric: name of the figure, column heading, least number of decimals."""


def comparison_lines(comparison: Comparison, detect: float | None = None) -> Iterator[str]:
    """The table of means per round (p_suc: over ordered CVs; metric: at the end), then differences.

    `detect`: a difference in the metric, or in p_suc without one, of which the necessary number of seeds is told if
    there is no significant one.
    """
    table, several = comparison.table(), len(comparison.seeds) > 1
    unit, joules = energy_unit(table["energy_j"].max())
    table["energy_j"] /= joules
    width = max(len("per round"), *(len(label) for label in table.index)) + 1
    yield ""
    if several:
        yield f"means over {_seeds(comparison)}, ± half-width of the 95 % confidence interval"
    metric = _metric(comparison, table)
    energy_form = f".{decimals(table['energy_j'], 1)}f"
    yield f"{'per round':{width}}{_head(metric, several, unit)}"
    for label, row in table.iterrows():
        yield f"{label!s:{width}}{_row(row, metric, several, energy_form)}"
    if several and len(table) > 1:
        yield from _difference_lines(comparison, metric, width, (unit, joules))
        differences, name = comparison.differences(), metric.name if metric else "p_suc"
        if sentence := seeds_sentence(differences[differences["figure"] == name], name, detect):
            yield sentence
    yield from _warnings(comparison)


def _warnings(comparison: Comparison) -> Iterator[str]:
    """A line if variants have different metrics, and for each with runs in which no CV got an order."""
    metrics = [metric.name for c in comparison.runs if (metric := metric_of_run(c.run))]
    if len(different := [*dict.fromkeys(metrics)]) > 1:
        names = ", ".join(different)
        yield f"note: the variants are not compared by their models, which have different metrics ({names})"
    for label, runs in comparison.by_label().items():
        if whys := [why for run in runs if (why := why_empty(run))]:
            of = f" in {len(whys)} of {len(runs)} runs" if len(runs) > 1 else ""
            yield f"warning: {label} ordered nobody{of}, so its differences mean little: most often {whys[0]}"


def _head(metric: Metric | None, several: bool, unit: str) -> str:
    result = f"{metric.name:>{_width(metric) + (_spread(metric.form) if several else 0)}}{'best':>8}" if metric else ""
    paid = f"{'paid':>{15 if several else 8}}"
    return f"{'ordered':>8}{'delivered':>10}{'p_suc':>8}{paid}{unit:>8}{result}{'sim. s':>8}{'wall s':>8}"


def _row(row: pd.Series, metric: Metric | None, several: bool, energy_form: str) -> str:
    paid = _number(row["cost"], ".1f", 8) + (_half_width(row["cost_half_width"], ".1f", 7) if several else "")
    result = ""
    if metric:
        result = _number(row[metric.name], metric.form, _width(metric))
        if several:
            result += _half_width(row[f"{metric.name}_half_width"], metric.form, _spread(metric.form))
        result += _number(row[f"best_{metric.name}"], metric.form, 8)
    counts = _number(row["ordered"], ".1f", 8) + _number(row["delivered"], ".1f", 10) + _number(row["p_suc"], ".4f", 8)
    times = _number(row["simulated_s"], ".1f", 8) + _number(row["wall_s"], ".1f", 8)
    return f"{counts}{paid}{_number(row['energy_j'], energy_form, 8)}{result}{times}"


def _difference_lines(
    comparison: Comparison, metric: Metric | None, width: int, unit: tuple[str, float]
) -> Iterator[str]:
    """The differences to the first variant; energies in the unit, which is so many joules."""
    differences = comparison.differences().set_index(["variant", "figure"])
    figures = differences.index.get_level_values("figure")
    differences.loc[figures == "energy_j", ["difference", "half_width"]] /= unit[1]
    result: list[tuple[str, str, str | int]] = [(metric.name, metric.name, metric.form)] if metric else []
    shown = [*result, *((name, heading or unit[0], least) for name, heading, least in _DIFFERENCES)]
    reference = differences["reference"].iloc[0]
    yield ""
    yield (f"differences to {reference}, paired over {_seeds(comparison)}, ± as above; * if the interval excludes 0")
    yield f"{'per round':{width}}{''.join(f'{heading:>18} ' for _, heading, _ in shown)}".rstrip()
    for label in differences.index.unique("variant"):
        cells = (_cell(differences.loc[(label, figure)], form) for figure, _, form in shown)
        yield f"{label!s:{width}}{''.join(cells)}".rstrip()


def _cell(row: pd.Series, form: str | int) -> str:
    """One signed difference, 19 characters wide; `form`: its format, or its least number of decimals."""
    if math.isnan(row["difference"]):
        return f"{'–':>18} "
    form = form if isinstance(form, str) else f".{difference_decimals(row, form)}f"
    mark = "*" if row["differs"] else " "
    width = _spread(form)
    return f"{format(row['difference'], '+' + form):>{18 - width}}{_half_width(row['half_width'], form, width)}{mark}"


def _seeds(comparison: Comparison) -> str:
    """The number of seeds, and the seeds themselves if there are at most 10."""
    seeds = comparison.seeds
    return f"{len(seeds)} seeds" + (f" ({', '.join(map(str, seeds))})" if len(seeds) <= 10 else "")


def _metric(comparison: Comparison, table: pd.DataFrame) -> Metric | None:
    """The metric of all variants; None if none has a value (learning.kind = "none"), or if they have different ones."""
    metric = comparison.metric
    return metric if metric and not table[metric.name].isna().all() else None


def _width(metric: Metric) -> int:
    """Width of the column of a metric."""
    return max(9, len(metric.name) + 1)


def _spread(form: str) -> int:
    """Width of a half-width; significant digits of a small one need more than a fixed number of them."""
    return 8 if form.endswith("f") else 9


def _number(value: float, form: str, width: int) -> str:
    return f"{'–' if math.isnan(value) else format(value, form):>{width}}"


def _half_width(value: float, form: str, width: int) -> str:
    """A half-width as "±…"; empty if there were fewer than two values."""
    return f"{'' if math.isnan(value) else f'±{value:{form}}':>{width}}"
