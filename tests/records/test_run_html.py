"""How a run shows itself in a notebook."""

import json
from pathlib import Path
from shutil import copytree
from xml.etree import ElementTree

import pytest

from vefl_sim import Run
from vefl_sim.records.totals import energy_text


def cells(run: Run) -> dict[str, str]:
    """The cells of the only table by their headings."""
    table = ElementTree.fromstring(run._repr_html_())
    return dict(zip(*([cell.text for cell in table.iter(tag)] for tag in ("th", "td")), strict=True))


def test_a_finished_run(golden: Run) -> None:
    assert cells(golden) == {
        "run": golden.path.name, "state": "done", "scheme": "pdpc", "rounds": "2 of 2", "accuracy": "–",
        "delivered": "3 of 5", "paid": f"{golden.summary['cost']:.1f}",
        "energy": energy_text(golden.summary["energy_j"]), "content digest": golden.content_digest()[:16],
    }  # fmt: skip


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"


def test_nothing_of_a_stranger_becomes_markup(golden: Run, tmp_path: Path) -> None:
    path = copytree(golden.path, tmp_path / EVIL.replace("/", "∕"))
    (path / "summary.json").write_text(json.dumps(golden.summary | {"content_digest": EVIL}))
    toml = path / "resolved.toml"
    for text in (toml.read_text(), toml.read_text().replace('kind = "pdpc"', f"kind = {json.dumps(EVIL)}")):
        toml.write_text(text)
        html = Run(path)._repr_html_()
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        assert "<img" not in html
        assert "\x1b" not in html


@pytest.mark.parametrize("text", ["{", '{"rounds": 2, "cost": 1' + "0" * 400 + "}"])
def test_a_damaged_run_says_so(golden: Run, tmp_path: Path, text: str) -> None:
    path = copytree(golden.path, tmp_path / "run")
    (path / "summary.json").write_text(text)
    assert cells(Run(path)).keys() == {"run", "state", "problem"}
