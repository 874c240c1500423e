import re
import runpy
from pathlib import Path

import pytest

from vefl_sim.protocol.trace import KINDS
from vefl_sim.records.schemas import SCHEMAS

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").glob("*.md")]


def test_the_experiment_reference_is_current() -> None:
    written = (ROOT / "docs" / "experiment.md").read_text()
    assert runpy.run_path(str(ROOT / "docs" / "reference.py"))["reference"]() == written, "run python docs/reference.py"


def test_every_column_and_event_is_documented() -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    for schema in SCHEMAS.values():
        for name in schema:
            assert f"`{name}`" in page, name
    for kind in KINDS:
        assert f"`{kind}`" in page, kind


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
