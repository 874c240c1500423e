import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from vefl_sim.protocol.trace import KINDS
from vefl_sim.records.schemas import SCHEMAS

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "experiments").glob("*.md")]


def test_the_printed_sources_are_up_to_date() -> None:
    written = (ROOT / "docs" / "design.md").read_text()
    assert written.count("<!-- not run: source of ") >= 4
    assert runpy.run_path(str(ROOT / "docs" / "reference.py"))["design"]() == written, "run python docs/reference.py"


def test_the_experiment_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "experiment.md").read_text()
    assert runpy.run_path(str(ROOT / "docs" / "reference.py"))["reference"]() == written, "run python docs/reference.py"


def test_every_column_and_event_is_documented() -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    for schema in SCHEMAS.values():
        for name in schema:
            assert f"`{name}`" in page, name
    for kind in KINDS:
        assert f"`{kind}`" in page, kind


def test_every_equation_leads_to_code() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    rows = re.findall(r"^\| `[^|]+ \|[^|]+\| `([\w/]+)\.py` \| `([\w.]+)` \|", page, re.MULTILINE)
    twins = re.findall(r"\| `([\w/]+)\.py`, `([\w.]+)` \|$", page, re.MULTILINE)
    assert len(rows) > 20
    assert len(twins) > 6
    for file, name in rows + twins:
        module = file.replace("/", ".")
        target: object = import_module(module if file.startswith("tests/") else f"vefl_sim.{module}")
        for part in name.split("."):
            target = getattr(target, part)


def test_every_path_in_the_design_exists() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    paths = re.findall(r"`([\w/]+/[\w.]+\.(?:py|toml))`", page)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "vefl_sim" / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_point_to_existing_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
