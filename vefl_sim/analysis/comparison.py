"""Prints a comparison: the table of means, and the differences to the first variant."""

import math
from collections import Counter
from collections.abc import Iterator

import pandas as pd

from vefl_sim.analysis.figures.drawing import table_lines
from vefl_sim.analysis.figures.measures import decimals, difference_decimals, difference_texts
from vefl_sim.analysis.summary import why_empty
from vefl_sim.learning.metric import Metric
from vefl_sim.records.totals import energy_unit
from vefl_sim.sweep.comparison import Comparison, metric_of_run
from vefl_sim.sweep.paired import seeds_sentence

_HEADS = {"cost": "paid", "simulated_s": "sim. s", "wall_s": "wall s"}


def comparison_lines(comparison: Comparison, detect: float | None = None) -> Iterator[str]:
    """The table of means per round (p_suc: over ordered CVs; metric: at the end), then differences.

    `detect`: a difference in the metric, or in p_suc without one, of which the necessary number of seeds is told if
    there is no significant one.
    """
    table, metric, seeds = comparison.table(), comparison.metric, comparison.seeds
    if metric and table[metric.name].isna().all():  # nothing was learnt
        metric = None
    unit, joules = energy_unit(table["energy_j"].max())
    table["energy_j"] /= joules
    over = f"{len(seeds)} seeds" + (f" ({', '.join(map(str, seeds))})" if len(seeds) <= 10 else "")
    yield ""
    if len(seeds) > 1:
        yield f"means over {over}, ± half-width of the 95 % confidence interval"
    yield from _means(table, metric, unit, {"cost", metric.name if metric else ""} if len(seeds) > 1 else set())
    if len(seeds) > 1 and len(table) > 1:
        differences, name = comparison.differences(), metric.name if metric else "p_suc"
        differences.loc[differences["figure"] == "energy_j", ["difference", "half_width"]] /= joules
        yield ""
        yield f"differences to {table.index[0]}, paired over {over}, ± as above; * if the interval excludes 0"
        yield from _differences(differences, metric, unit)
        if sentence := seeds_sentence(differences[differences["figure"] == name], name, detect):
            yield sentence
    yield from _warnings(comparison)


def _means(table: pd.DataFrame, metric: Metric | None, unit: str, with_interval: set[str]) -> Iterator[str]:
    """One line per variant; some figures have the half-widths of their intervals."""
    forms = {"ordered": ".1f", "delivered": ".1f", "p_suc": ".4f", "cost": ".1f"}
    forms |= {"energy_j": f".{decimals(table['energy_j'], 1)}f"}
    forms |= {metric.name: metric.form, f"best_{metric.name}": metric.form} if metric else {}
    forms |= {"simulated_s": ".1f", "wall_s": ".1f"}
    heads = _HEADS | {"energy_j": unit} | ({f"best_{metric.name}": "best"} if metric else {})
    rows = [["per round"], *([str(label)] for label in table.index)]
    for name, form in forms.items():
        rows[0] += [heads.get(name, name)] + [""] * (name in with_interval)
        for cells, (_, row) in zip(rows[1:], table.iterrows(), strict=True):
            cells.append("–" if math.isnan(row[name]) else f"{row[name]:{form}}")
            if name in with_interval:
                half = row[f"{name}_half_width"]
                cells.append("" if math.isnan(half) else f"±{half:{form}}")
    return table_lines(rows)


def _differences(differences: pd.DataFrame, metric: Metric | None, unit: str) -> Iterator[str]:
    """One line per variant but the first."""
    least = ({metric.name: 4} if metric else {}) | {"p_suc": 4, "cost": 1, "energy_j": 1}
    heads = _HEADS | {"energy_j": unit}
    rows = [["per round", *(cell for name in least for cell in (heads.get(name, name), ""))]]
    for label, own in differences.groupby("variant", sort=False):
        by_figure = {row["figure"]: row for _, row in own.iterrows()}
        known = [(by_figure[name], difference_decimals(by_figure[name], digits)) for name, digits in least.items()]
        rows.append([str(label), *(cell or "–" for row, digits in known for cell in difference_texts(row, digits))])
    return table_lines(rows)


def _warnings(comparison: Comparison) -> Iterator[str]:
    """A line if variants have different metrics, and for each that ordered nobody, or broke constraints."""
    metrics = [metric.name for c in comparison.runs if (metric := metric_of_run(c.run))]
    if len(different := [*dict.fromkeys(metrics)]) > 1:
        names = ", ".join(different)
        yield f"note: the variants are not compared by their models, which have different metrics ({names})"
    for label, runs in comparison.by_label().items():
        if whys := [why for run in runs if (why := why_empty(run))]:
            of = f" in {len(whys)} of {len(runs)} runs" if len(runs) > 1 else ""
            yield f"warning: {label} ordered nobody{of}, so its differences mean little: most often {whys[0]}"
        if broken := sum((Counter(run.summary.get("plan_breaches", {})) for run in runs), Counter()):
            laws = ", ".join(f"{number} × {law}" for law, number in sorted(broken.items()))
            yield f"warning: {label} violates constraints, so it is not on a par with the others: {laws}"
