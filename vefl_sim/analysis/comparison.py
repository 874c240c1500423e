"""Prints a comparison: the table of means, and the differences to the first variant."""

import math
from collections.abc import Iterator

import pandas as pd

from vefl_sim.sweep.comparison import Comparison

_DIFFERENCES = (("accuracy", "accuracy", 4), ("p_suc", "p_suc", 4), ("cost", "paid", 1), ("energy_j", "joules", 1))
"""The differences that are printed: name of the figure, column heading and number of digits."""


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """The table of means per round (p_suc: mean over ordered CVs; accuracy: after the last round), then differences."""
    table, several = comparison.table(), len(comparison.seeds) > 1
    width = max(len("per round"), *(len(label) for label in table.index)) + 1
    yield ""
    if several:
        yield f"means over {_seeds(comparison)}, ± half-width of the 95 % confidence interval"
    yield f"{'per round':{width}}{_head(table, several)}"
    for label, row in table.iterrows():
        yield f"{label!s:{width}}{_row(row, table, several)}"
    if several and len(table) > 1:
        yield from _difference_lines(comparison, width)


def _head(table: pd.DataFrame, several: bool) -> str:
    accuracy = f"{'accuracy':>{17 if several else 9}}{'best':>8}" if _learnt(table) else ""
    paid = f"{'paid':>{15 if several else 8}}"
    return f"{'ordered':>8}{'delivered':>10}{'p_suc':>8}{paid}{'joules':>8}{accuracy}{'sim. s':>8}{'wall s':>8}"


def _row(row: pd.Series, table: pd.DataFrame, several: bool) -> str:
    paid = _number(row["cost"], 1, 8) + (_half_width(row["cost_half_width"], 1, 7) if several else "")
    accuracy = ""
    if _learnt(table):
        accuracy = _number(row["accuracy"], 4, 9) + (_half_width(row["accuracy_half_width"], 4, 8) if several else "")
        accuracy += _number(row["best_accuracy"], 4, 8)
    counts = _number(row["ordered"], 1, 8) + _number(row["delivered"], 1, 10) + _number(row["p_suc"], 4, 8)
    times = _number(row["simulated_s"], 1, 8) + _number(row["wall_s"], 1, 8)
    return f"{counts}{paid}{_number(row['energy_j'], 1, 8)}{accuracy}{times}"


def _difference_lines(comparison: Comparison, width: int) -> Iterator[str]:
    differences = comparison.differences().set_index(["variant", "figure"])
    shown = [column for column in _DIFFERENCES if column[0] != "accuracy" or _learnt(comparison.table())]
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
