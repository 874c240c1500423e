"""The pages name exactly what the program has: keys, columns, events, commands, figures, paths, results, version."""

import re
import runpy
import shlex
import tomllib
from importlib import import_module
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
import yaml

from tests.command_line import ROOT, call
from tests.small_runs import VARIANTS, small_run
from vefl_sim.analysis.figures.layout import require_drawable
from vefl_sim.analysis.figures.request import FigureKind
from vefl_sim.experiment.experiment import TABLES, Change
from vefl_sim.protocol.messages import OrderOutcome, RoundReport
from vefl_sim.protocol.trace import KINDS
from vefl_sim.records.schemas import SCHEMAS
from vefl_sim.schemes.observation import CoverageSnapshot, Observation, RoundConstants
from vefl_sim.sweep.points import load_sweep

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "experiments").glob("*.md")]
ORIGINS = r"technical$|paper$|paper: |paper for |ours: "
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


def keys() -> dict[str, set[str]]:
    """The keys of each table of an experiment."""
    return {name: {*table.model_fields} for name, table in {**TABLES, "[change]": Change}.items()}


@pytest.mark.parametrize(
    ("script", "function", "page"),
    [
        ("reference", "design", "design"),
        ("reference", "reference", "experiment"),
        ("commands", "reference", "commands"),
    ],
)
def test_a_written_page_is_up_to_date(script: str, function: str, page: str) -> None:
    assert runpy.run_path(str(DOCS / f"{script}.py"))[function]() == text(f"{page}.md"), f"run python docs/{script}.py"


def test_every_column_and_event_is_documented() -> None:
    page = text("tables.md")
    for name in (*KINDS, *(name for schema in SCHEMAS.values() for name in schema)):
        assert f"`{name}`" in page, name


def test_every_equation_leads_to_code() -> None:
    equations = re.findall(r"^\| `[^|]+ \|[^|]+\| `([\w/]+)\.py` \| `([\w.]+)` \|", text("design.md"), re.MULTILINE)
    twins = re.findall(r"\| `([\w/]+)\.py`, `([\w.]+)` \|$", text("design.md"), re.MULTILINE)
    assert len(equations) > 20
    assert len(twins) > 6
    for file, name in equations + twins:
        module = file.replace("/", ".")
        target: object = import_module(module if file.startswith("tests/") else f"vefl_sim.{module}")
        for part in name.split("."):
            target = getattr(target, part)


def test_every_path_in_the_design_exists() -> None:
    paths = re.findall(r"`([\w/]+/[\w.]+\.(?:py|toml))`", text("design.md"))
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "vefl_sim" / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_to_existing_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_key_has_its_origin() -> None:
    choices = tomllib.loads(text("choices.toml"))
    assert {name: set(table) for name, table in choices.items()} == keys()
    for table, entries in choices.items():
        for key, origin in entries.items():
            assert re.match(ORIGINS, origin), f"{table}.{key}: {origin}"
            assert len(origin) <= 100, f"{table}.{key}: too long for a cell of a table"


def test_every_key_and_column_of_the_glossary_and_of_the_scope_exists() -> None:
    lines = [line.replace("\\|", "¦").strip("|").split("|") for line in text("glossary.md").splitlines()]
    symbols = [cells for cells in lines if len(cells) == 5]  # symbol, meaning, unit, key or column, label
    named = [name for cells in symbols for name in re.findall(r"`([^`]+)`", cells[3])]
    scope = re.findall(r"`(\w+\.\w+)`", text("scope.md"))
    assert len(named) > 60
    assert len(scope) > 12
    for name in named + scope:
        table, column = name.split(".")
        assert column in keys().get(table, set()) or column in SCHEMAS.get(table, {}), name


def test_the_front_page_is_short() -> None:
    page = (ROOT / "README.md").read_text()
    assert len(page.splitlines()) < 120
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


@pytest.mark.parametrize("described", [CoverageSnapshot, RoundConstants, Observation, RoundReport, OrderOutcome])
def test_the_page_of_parts_names_every_field_that_a_scheme_or_watcher_can_read(described: type) -> None:
    written = set(re.findall(r"`(\w+)[`(]", text("parts.md")))
    fields = {name for name in (*described.__dataclass_fields__, *vars(described)) if not name.startswith("_")}
    assert not fields - written


def test_events_fill_the_columns_that_the_page_names() -> None:
    """One test, because it needs all small runs: "always" is always, and "also" is sometimes, but not always."""
    table = rows("tables.md", "| kind | always | also |")
    by_kind = {kind: (set(names(row[1])), set(names(row[2]))) for row in table for kind in names(row[0])}
    assert set(by_kind) == set(KINDS)
    events = pd.concat([small_run(name).events for name in VARIANTS], ignore_index=True)
    for kind, (always, also) in by_kind.items():
        filled = events[events["kind"] == kind].notna()
        assert len(filled), kind
        assert set(filled.columns[filled.all()]) == always | OF_EVERY_EVENT, kind
        assert set(filled.columns[filled.any()]) == always | also | OF_EVERY_EVENT, kind


def test_the_page_names_the_keys_of_a_summary() -> None:
    table = rows("summary.md", "| key | unit | meaning |")
    summary = small_run("selection").summary
    assert sorted(summary) == sorted(key for row in table for key in names(row[0]))
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


def test_a_release_has_one_version_and_the_citation_that_its_format_requires() -> None:
    """Citation File Format 1.2.0: the required keys, and those from which a reference is made."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert project["version"] == citation["version"] == newest[1]
    assert (citation["cff-version"], citation["license"]) == ("1.2.0", project["license"])
    assert citation.keys() >= {"message", "title", "authors"}
    needed = {"type", "title", "authors", "journal", "year", "volume", "issue", "start", "end"}
    assert citation["preferred-citation"].keys() >= needed
