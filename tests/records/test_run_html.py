"""How a run shows itself in a notebook."""

import json
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import STOPPED, Kill, Killer, only
from vefl_sim import Run, from_tables, simulate, with_settings
from vefl_sim.records.totals import energy_text


class Cells(HTMLParser):
    """The texts of the cells of a table, and all tags and attributes in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = set[str](), list[Any](), list[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[Any]) -> None:
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def cells(run: Run) -> dict[str, str]:
    """The cells by their headings; there is nothing but a table, whatever the run holds."""
    table = Cells(run._repr_html_())
    assert table.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert not table.attributes
    half = len(table.texts) // 2
    return dict(zip(table.texts[:half], table.texts[half:], strict=True))


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(from_tables(EXPERIMENT), out=tmp_path_factory.mktemp("golden"))


def test_a_finished_run(golden: Run) -> None:
    assert cells(golden) == {
        "run": golden.path.name, "state": "done", "scheme": "pdpc", "rounds": "2 of 2", "accuracy": "–",
        "delivered": "3 of 5", "paid": f"{golden.summary['cost']:.1f}",
        "energy": energy_text(golden.summary["energy_j"]), "content digest": golden.content_digest()[:16],
    }  # fmt: skip


def test_an_unfinished_run(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(with_settings(STOPPED, "model.factory=vefl_models.logistic:logistic"), out=tmp_path, watcher=Killer(3))
    shown = cells(only(tmp_path))
    assert (shown["state"], shown["rounds"], shown["content digest"]) == ("unfinished", "2 of 8", "–")
    assert 0 < float(shown["accuracy"]) < 1


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"


def test_nothing_of_a_stranger_becomes_markup(golden: Run, tmp_path: Path) -> None:
    path = copytree(golden.path, tmp_path / EVIL.replace("/", "∕"))
    (path / "summary.json").write_text(json.dumps(golden.summary | {"content_digest": EVIL}))
    shown = cells(Run(path))
    assert shown["run"] == path.name.replace("\x1b", r"\x1b")
    assert shown["content digest"] == EVIL[:16]
    toml = path / "resolved.toml"
    toml.write_text(toml.read_text().replace('kind = "pdpc"', f"kind = {json.dumps(EVIL)}"))
    assert "<script>" in cells(Run(path))["problem"]


@pytest.mark.parametrize("text", ["{", '{"rounds": 2, "cost": 1' + "0" * 400 + "}"])
def test_a_damaged_run_says_so(golden: Run, tmp_path: Path, text: str) -> None:
    path = copytree(golden.path, tmp_path / "run")
    (path / "summary.json").write_text(text)
    assert cells(Run(path)).keys() == {"run", "state", "problem"}


def test_an_older_run_has_dashes(golden: Run, tmp_path: Path) -> None:
    path = copytree(golden.path, tmp_path / "run")
    (path / "summary.json").write_text('{"rounds": 2}')
    shown = cells(Run(path))
    assert (shown["rounds"], shown["delivered"], shown["paid"], shown["energy"]) == ("2 of 2", "– of –", "–", "–")
