"""Prints a comparison: the table of means, and the differences to the first variant."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from vefl_sim.analysis.figures.measures import decimals, difference_decimals
from vefl_sim.analysis.summary import why_empty
from vefl_sim.learning.metric import Metric
from vefl_sim.records.totals import energy_unit
from vefl_sim.sweep.comparison import Comparison, metric_of_run
from vefl_sim.sweep.power import seeds_sentence


def comparison_lines(comparison: Comparison, detect: float | None = None) -> Iterator[str]:
    """The table of means per round (p_suc: over ordered CVs; metric: at the end), then differences.

    `detect`: a difference in the metric, or in p_suc without one, of which the necessary number of seeds is told if
    there is no significant one.
    """
    table, several = comparison.table(), len(comparison.seeds) > 1
    metric, (unit, joules) = _metric(comparison, table), energy_unit(table["energy_j"].max())
    table["energy_j"] /= joules
    yield ""
    if several:
        yield f"means over {_seeds(comparison)}, ± half-width of the 95 % confidence interval"
    yield from _means(table, metric, unit, several)
    if several and len(table) > 1:
        differences, name = comparison.differences(), metric.name if metric else "p_suc"
        yield ""
        yield (
            f"differences to {table.index[0]}, paired over {_seeds(comparison)}, ± as above; * if the interval "
            "excludes 0"
        )
        yield from _differences(differences, metric, unit, joules)
        if sentence := seeds_sentence(differences[differences["figure"] == name], name, detect):
            yield sentence
    yield from _warnings(comparison)


def _means(table: pd.DataFrame, metric: Metric | None, unit: str, several: bool) -> Iterator[str]:
    """One line per variant; with several seeds, money and the metric have their half-widths."""
    forms = {"ordered": ".1f", "delivered": ".1f", "p_suc": ".4f", "cost": ".1f"}
    forms |= {"energy_j": f".{decimals(table['energy_j'], 1)}f"}
    forms |= {metric.name: metric.form, f"best_{metric.name}": metric.form} if metric else {}
    forms |= {"simulated_s": ".1f", "wall_s": ".1f"}
    heads = {"cost": "paid", "energy_j": unit, "simulated_s": "sim. s", "wall_s": "wall s"}
    heads |= {f"best_{metric.name}": "best"} if metric else {}
    with_interval = {"cost", metric.name if metric else ""} if several else set()

    def cells(row: "pd.Series[Any]") -> Iterator[str]:
        for name, form in forms.items():
            yield "–" if math.isnan(row[name]) else f"{row[name]:{form}}"
            if name in with_interval:
                yield _half_width(row[f"{name}_half_width"], form)

    names = [cell for name in forms for cell in (heads.get(name, name), *([""] if name in with_interval else []))]
    yield from _lines({str(label): [*cells(row)] for label, row in table.iterrows()}, names)


def _differences(differences: pd.DataFrame, metric: Metric | None, unit: str, joules: float) -> Iterator[str]:
    """One line per variant but the first; energies are in the unit, which is so many joules."""
    table = differences.set_index(["variant", "figure"])
    table.loc[table.index.get_level_values("figure") == "energy_j", ["difference", "half_width"]] /= joules
    least = {"p_suc": 4, "cost": 1, "energy_j": 1}  # numbers of decimals
    heads = ([metric.name] if metric else []) + ["p_suc", "paid", unit]

    def cells(label: str) -> Iterator[str]:
        for name in [*([metric.name] if metric else []), *least]:
            row: Any = table.loc[(label, name)]
            form = metric.form if metric and name == metric.name else f".{difference_decimals(row, least[name])}f"
            yield "–" if math.isnan(row["difference"]) else f"{row['difference']:+{form}}"
            yield _half_width(row["half_width"], form) + ("*" if row["differs"] else " ")

    rows = {label: [*cells(label)] for label in table.index.unique("variant")}
    yield from _lines(rows, [cell for head in heads for cell in (head, "")])


def _lines(rows: Mapping[str, Sequence[str]], heads: Sequence[str]) -> Iterator[str]:
    """A table of texts as lines."""
    table = pd.DataFrame([*rows.values()], [*rows], [*heads]).rename_axis(columns="per round")
    return (line.rstrip() for line in table.to_string().splitlines())


def _half_width(value: float, form: str) -> str:
    """A half-width as "±…"; empty if there were fewer than two values."""
    return "" if math.isnan(value) else f"±{value:{form}}"


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


def _seeds(comparison: Comparison) -> str:
    """The number of seeds, and the seeds themselves if there are at most 10."""
    seeds = comparison.seeds
    return f"{len(seeds)} seeds" + (f" ({', '.join(map(str, seeds))})" if len(seeds) <= 10 else "")


def _metric(comparison: Comparison, table: pd.DataFrame) -> Metric | None:
    """The metric of all variants; None if none has a value (learning.kind = "none"), or if they have different ones."""
    metric = comparison.metric
    return metric if metric and not table[metric.name].isna().all() else None
