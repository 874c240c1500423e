"""Prints a comparison: the table of means, and the differences to the first variant."""

import math
from collections.abc import Iterator

import pandas as pd

from vefl_sim.analysis.summary import why_empty
from vefl_sim.records.totals import energy_unit
from vefl_sim.sweep.comparison import Comparison

_DIFFERENCES = (("accuracy", "accuracy", 4), ("p_suc", "p_suc", 4), ("cost", "paid", 1))
"""The differences that are printed besides the energy: name of the figure, column heading and number of digits."""


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """The table of means per round (p_suc: mean over ordered CVs; accuracy: after the last round), then differences."""
    table, several = comparison.table(), len(comparison.seeds) > 1
    unit, joules = energy_unit(table["energy_j"].max())
    table["energy_j"] /= joules
    width = max(len("per round"), *(len(label) for label in table.index)) + 1
    yield ""
    if several:
        yield f"means over {_seeds(comparison)}, ± half-width of the 95 % confidence interval"
    yield f"{'per round':{width}}{_head(table, several, unit)}"
    for label, row in table.iterrows():
        yield f"{label!s:{width}}{_row(row, table, several)}"
    if several and len(table) > 1:
        yield from _difference_lines(comparison, width, unit, joules)
    yield from _warnings(comparison)


def _warnings(comparison: Comparison) -> Iterator[str]:
    """A line for each variant with runs in which no CV got an order: its figures compare nothing."""
    for label, runs in comparison.by_label().items():
        if whys := [why for run in runs if (why := why_empty(run))]:
            of = f" in {len(whys)} of {len(runs)} runs" if len(runs) > 1 else ""
            yield f"warning: {label} ordered nobody{of}, so its differences mean little: most often {whys[0]}"


def _head(table: pd.DataFrame, several: bool, unit: str) -> str:
    accuracy = f"{'accuracy':>{17 if several else 9}}{'best':>8}" if _learnt(table) else ""
    paid = f"{'paid':>{15 if several else 8}}"
    return f"{'ordered':>8}{'delivered':>10}{'p_suc':>8}{paid}{unit:>8}{accuracy}{'sim. s':>8}{'wall s':>8}"


def _row(row: pd.Series, table: pd.DataFrame, several: bool) -> str:
    paid = _number(row["cost"], 1, 8) + (_half_width(row["cost_half_width"], 1, 7) if several else "")
    accuracy = ""
    if _learnt(table):
        accuracy = _number(row["accuracy"], 4, 9) + (_half_width(row["accuracy_half_width"], 4, 8) if several else "")
        accuracy += _number(row["best_accuracy"], 4, 8)
    counts = _number(row["ordered"], 1, 8) + _number(row["delivered"], 1, 10) + _number(row["p_suc"], 4, 8)
    times = _number(row["simulated_s"], 1, 8) + _number(row["wall_s"], 1, 8)
    return f"{counts}{paid}{_number(row['energy_j'], 1, 8)}{accuracy}{times}"


def _difference_lines(comparison: Comparison, width: int, unit: str, joules: float) -> Iterator[str]:
    """The differences to the first variant; energies in the unit, which is so many joules."""
    differences = comparison.differences().set_index(["variant", "figure"])
    energies = differences.index.get_level_values("figure") == "energy_j"
    differences.loc[energies, ["difference", "half_width"]] /= joules
    shown = [column for column in _DIFFERENCES if column[0] != "accuracy" or _learnt(comparison.table())]
    shown.append(("energy_j", unit, 1))
    reference = differences["reference"].iloc[0]
    yield ""
    yield (f"differences to {reference}, paired over {_seeds(comparison)}, ± as above; * if the interval excludes 0")
    yield f"{'per round':{width}}{''.join(f'{heading:>18} ' for _, heading, _ in shown)}".rstrip()
    for label in differences.index.unique("variant"):
        cells = (_cell(differences.loc[(label, figure)], digits) for figure, _, digits in shown)
        yield f"{label!s:{width}}{''.join(cells)}".rstrip()


def _cell(row: pd.Series, digits: int) -> str:
    """One signed difference, 19 characters wide."""
    if math.isnan(row["difference"]):
        return f"{'–':>18} "
    mark = "*" if row["differs"] else " "
    return f"{row['difference']:+10.{digits}f}{_half_width(row['half_width'], digits, 8)}{mark}"


def _seeds(comparison: Comparison) -> str:
    """The number of seeds, and the seeds themselves if there are at most 10."""
    seeds = comparison.seeds
    return f"{len(seeds)} seeds" + (f" ({', '.join(map(str, seeds))})" if len(seeds) <= 10 else "")


def _learnt(table: pd.DataFrame) -> bool:
    """Whether any variant has an accuracy; there is none with learning.kind = "none"."""
    return not table["accuracy"].isna().all()


def _number(value: float, digits: int, width: int) -> str:
    return f"{'–' if math.isnan(value) else format(value, f'.{digits}f'):>{width}}"


def _half_width(value: float, digits: int, width: int) -> str:
    """A half-width as "±…"; empty if there were fewer than two values."""
    return f"{'' if math.isnan(value) else f'±{value:.{digits}f}':>{width}}"
