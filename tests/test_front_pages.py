"""README, glossary, scope and the origin of defaults keep up with the keys, the tables, the results and other pages."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

from tests.command_line import call
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.records.schemas import SCHEMAS

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
ORIGINS = r"technical$|paper$|paper: |paper for |ours: "


def keys() -> dict[str, set[str]]:
    """The keys of each table of an experiment."""
    tables = {name: field.annotation for name, field in Experiment.model_fields.items()}
    models = {name: (get_args(table) or (table,))[0] for name, table in tables.items()}
    return {name: set(model.model_fields) for name, model in models.items()}


def symbols() -> list[list[str]]:
    """The rows of the glossary's tables of symbols: symbol, meaning, unit, key or column, label."""
    lines = [line.replace("\\|", "¦") for line in GLOSSARY.read_text().splitlines()]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [row for row in rows if len(row) == 5 and row[0] != "symbol"]


def test_every_key_has_its_origin() -> None:
    choices = tomllib.loads((ROOT / "docs" / "choices.toml").read_text())
    assert {name: set(table) for name, table in choices.items()} == keys()
    for table, entries in choices.items():
        for key, origin in entries.items():
            assert re.match(ORIGINS, origin), f"{table}.{key}: {origin}"
            assert len(origin) <= 100, f"{table}.{key}: too long for a cell of a table"


def test_every_key_and_column_of_the_glossary_exists() -> None:
    named = [name for row in symbols() for name in re.findall(r"`([^`]+)`", row[3])]
    assert len(named) > 60
    for name in named:
        table, column = name.split(".")
        assert column in keys().get(table, set()) or column in SCHEMAS.get(table, {}), name


def test_every_key_of_the_scope_exists() -> None:
    named = re.findall(r"`(\w+)\.(\w+)`", (ROOT / "docs" / "scope.md").read_text())
    assert len(named) > 12
    for table, key in named:
        assert key in keys()[table], f"{table}.{key}"


def test_the_front_page_is_short() -> None:
    page = (ROOT / "README.md").read_text()
    assert len(page.splitlines()) < 120
    assert "make run" in page
    assert "make test" in page
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
        assert (ROOT / picture).stat().st_size < 1_000_000, picture


@pytest.mark.slow
def test_the_results_of_the_front_page_are_those_of_the_stored_runs(tmp_path: Path) -> None:
    for figure, *seeds in (("fig09", "--seeds", "1-2"), ("fig15", "--seeds", "1-2"), ("fig18",)):
        drawn = call("figure", f"experiments/paper/{figure}.toml", *seeds, "--to", tmp_path, "--out", tmp_path / "runs")
        assert drawn.returncode in ((0, 1) if figure == "fig09" else (0,)), drawn.stderr  # two of its λ may be missing
    page = (ROOT / "README.md").read_text()
    lines = ["FDPC, as in the paper", "FDPC, fair", "FedProx, as in the paper", "FedProx, fair", "PDPC"]
    named = {"fig15": [("", line) for line in lines], "fig09": [("as in the paper", "λ = 0"), ("fair", "λ = 0")]}
    for figure, places in named.items():
        marks = pd.read_csv(tmp_path / f"{figure}_accuracy_marks.csv", dtype={"panel": str}).fillna({"panel": ""})
        last = marks[marks["x"] == 400].set_index(["panel", "line"])
        for place in places:
            assert f"{100 * last['mean'][place]:.1f} ± {100 * last['std'][place]:.1f} %" in page, place
    row = pd.read_csv(tmp_path / "fig18_cost_differences.csv").set_index("line").loc["PDPC"]
    assert f"−{-row['difference']:.0f} ± {row['half_width']:.0f}" in page
