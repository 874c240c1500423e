"""The reference pages name exactly what the program has: commands, columns of events, keys of summary.json, figures."""

import re
import runpy
import shlex
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

from tests.small_runs import VARIANTS, small_run
from vefl_sim.analysis.figures.layout import require_drawable
from vefl_sim.analysis.figures.request import FigureKind
from vefl_sim.protocol.messages import OrderOutcome, RoundReport
from vefl_sim.protocol.trace import KINDS
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants
from vefl_sim.sweep.points import load_sweep

DOCS = Path(__file__).parents[1] / "docs"
OF_EVERY_EVENT = {"id", "time_ns", "kind", "actor"}


def text(page: str) -> str:
    return (DOCS / page).read_text()


def rows(page: str, header: str) -> list[list[str]]:
    """The cells of the table that begins with this header."""
    lines = text(page).split(header, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def names(cell: str) -> list[str]:
    """What stands in backquotes, without remarks in parentheses."""
    return re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)", "", cell))


def columns_by_kind() -> dict[str, tuple[set[str], set[str]]]:
    """Event kind -> columns that it always fills, columns that it may fill, as in docs/tables.md."""
    table = rows("tables.md", "| kind | always | also |")
    return {kind: (set(names(row[1])), set(names(row[2]))) for row in table for kind in names(row[0])}


def test_the_page_of_commands_is_up_to_date() -> None:
    written = runpy.run_path(str(DOCS / "commands.py"))["reference"]()
    assert written == text("commands.md"), "run python docs/commands.py"


@pytest.mark.parametrize("described", [CoverageSnapshot, RoundConstants, Observation, RoundReport, OrderOutcome])
def test_the_page_of_parts_names_every_field_that_a_scheme_or_watcher_can_read(described: type) -> None:
    written = set(re.findall(r"`(\w+)[`(]", text("parts.md")))
    fields = {name for name in (*described.__dataclass_fields__, *vars(described)) if not name.startswith("_")}
    assert not fields - written
    assert {"paid", "energy_j", "bits_lost"} <= written


def test_the_page_names_columns_for_every_kind() -> None:
    assert set(columns_by_kind()) == set(KINDS)


def test_events_fill_the_columns_that_the_page_names() -> None:
    """One test, because it needs all small runs: "always" is always, and "also" is sometimes, but not always."""
    events = pd.concat([small_run(name).events for name in VARIANTS], ignore_index=True)
    for kind, (always, also) in columns_by_kind().items():
        filled = events[events["kind"] == kind].notna()
        assert len(filled), kind
        assert set(filled.columns[filled.all()]) == always | OF_EVERY_EVENT, kind
        assert set(filled.columns[filled.any()]) == always | also | OF_EVERY_EVENT, kind


def test_the_page_names_the_keys_of_a_summary() -> None:
    table = rows("summary.md", "| key | unit | meaning |")
    documented = [key for row in table for key in names(row[0])]
    summary = small_run("selection").summary
    assert sorted(summary) == sorted(documented)
    for key in ("updates_lost", "overruns"):
        [meaning] = [row[2] for row in table if names(row[0]) == [key]]
        assert set(summary[key]) == set(names(meaning))


def test_the_examples_of_figures_can_be_drawn(tmp_path: Path) -> None:
    file = tmp_path / "cells.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", text("figures.md"), re.DOTALL)[0])
    kinds = set()
    for command in re.findall(r"^python -m vefl_sim figure cells.toml(.*)$", text("figures.md"), re.MULTILINE):
        sweep = load_sweep(file, [word for word in shlex.split(command, comments=True) if word != "--set"])
        require_drawable(sweep)
        kinds.add(sweep.figure["kind"])
    assert kinds == set(get_args(FigureKind))
