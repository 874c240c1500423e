"""Run directories: their names, digests and faults, and how a run shows itself in a notebook."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, Run, from_tables, simulate, with_settings
from vefl_sim.core.errors import RunNotFound
from vefl_sim.core.tables import content_digest
from vefl_sim.experiment.toml import resolved
from vefl_sim.records.identity import Identity, config_digest
from vefl_sim.records.run_directory import create_run, existing_run
from vefl_sim.records.totals import energy_text

GOLDEN = from_tables(EXPERIMENT)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(GOLDEN, out=tmp_path_factory.mktemp("golden"))


@pytest.fixture
def copied(golden: Run, tmp_path: Path) -> Run:
    return Run(copytree(golden.path, tmp_path / "run"))


def test_directory_is_named_by_name_and_configuration(tmp_path: Path) -> None:
    run, digest = create_run(Identity(GOLDEN), tmp_path), config_digest(GOLDEN)
    assert run.path.name == f"three-cars-{digest[:8]}"
    assert run.experiment == resolved(GOLDEN)
    assert run.state == "unfinished"
    versions = json.loads((run.path / "versions.json").read_text())
    assert versions["configuration"] == digest
    assert "tests.scripted:ThreeCars" in versions["parts"]


def test_the_configuration_digest_depends_on_every_key() -> None:
    changed = [
        with_settings(GOLDEN, setting)
        for setting in ("run.seed=2", "radio.prbs=3", "vefl.budget=1", "trace.slots=off", "data.min_samples=5")
    ]
    assert len({config_digest(experiment) for experiment in (GOLDEN, *changed)}) == 6


def test_an_edited_part_leads_to_a_new_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    mine = tmp_path / "mine_for_digest.py"
    mine.write_text("def first(backlog, limit):\n    return backlog.cv[:0]\n")
    experiment = with_settings(GOLDEN, "mac.scheduler=mine_for_digest:first")
    before = config_digest(experiment)
    mine.write_text("def first(backlog, limit):\n    return backlog.cv[:1] * 0  # edited\n")
    monkeypatch.delitem(__import__("sys").modules, "mine_for_digest")
    __import__("linecache").checkcache()
    assert config_digest(experiment) != before


def test_a_taken_name_gets_a_number_and_a_finished_run_is_preferred(tmp_path: Path) -> None:
    identity = Identity(GOLDEN)
    assert existing_run(identity, tmp_path) is None
    first, second = create_run(identity, tmp_path), create_run(identity, tmp_path)
    assert second.path.name == first.path.name + "-2"
    first.mark("FAILED", "broken")
    found = existing_run(identity, tmp_path)
    assert found is not None
    assert found.state in ("failed", "unfinished")
    second.mark("DONE", "x")
    found = existing_run(identity, tmp_path)
    assert found is not None
    assert found.path == second.path


def test_the_content_digest_depends_on_values_and_not_on_row_groups(tmp_path: Path) -> None:
    digests, file = [], tmp_path / "timings.parquet"
    for group_size, change in ((50, 0.0), (7, 0.0), (50, 1e-12)):
        table = pa.table({"round": range(50), "wall_s": [number * (1 / 7 + change) for number in range(50)]})
        pq.write_table(table, file, row_group_size=group_size)
        digests.append(content_digest([file]))
    assert digests[0] == digests[1] != digests[2]


def test_the_content_digest_leaves_out_timings(copied: Run) -> None:
    before = copied.content_digest()
    (copied.path / "tables" / "timings.parquet").unlink()
    assert copied.content_digest() == before
    (copied.path / "tables" / "events.parquet").unlink()
    assert copied.content_digest() != before


def test_missing_and_damaged_tables_are_named(copied: Run) -> None:
    with pytest.raises(RunNotFound, match="no table 'nonsense'"):
        copied.table("nonsense")
    table = copied.path / "tables" / "rounds.parquet"
    table.write_bytes(b"PAR1 rubbish")
    with pytest.raises(RunNotFound, match=r"rounds\.parquet cannot be read"):
        _ = copied.rounds
    table.unlink()
    with pytest.raises(RunNotFound, match=r"rounds\.parquet is missing"):
        _ = copied.rounds


def test_a_directory_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="not a run directory"):
        Run(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_parent_without_write_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="cannot be written"):
        create_run(Identity(GOLDEN), tmp_path / "runs")


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        create_run(Identity(GOLDEN), tmp_path / "file")


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
    """The cells that a notebook shows, by their headings; there is nothing but a table, whatever the run holds."""
    table = Cells(run._repr_html_())
    assert table.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert not table.attributes
    half = len(table.texts) // 2
    return dict(zip(table.texts[:half], table.texts[half:], strict=True))


def test_a_finished_run_in_a_notebook(golden: Run) -> None:
    assert cells(golden) == {
        "run": golden.path.name, "state": "done", "scheme": "pdpc", "rounds": "2 of 2", "accuracy": "–",
        "delivered": "3 of 5", "paid": f"{golden.summary['cost']:.1f}",
        "energy": energy_text(golden.summary["energy_j"]), "content digest": golden.content_digest()[:16],
    }  # fmt: skip


def test_an_unfinished_run_in_a_notebook(tmp_path: Path) -> None:
    shown = cells(create_run(Identity(GOLDEN), tmp_path))
    assert (shown["state"], shown["rounds"], shown["content digest"]) == ("unfinished", "0 of 2", "–")
    assert (shown["delivered"], shown["paid"], shown["energy"]) == ("– of –", "–", "–")


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"


def test_nothing_of_a_stranger_becomes_markup(copied: Run) -> None:
    path = copied.path.rename(copied.path.with_name(EVIL.replace("/", "∕")))
    (path / "summary.json").write_text(json.dumps({"rounds": 2, "content_digest": EVIL}))
    shown = cells(Run(path))
    assert shown["run"] == path.name.replace("\x1b", r"\x1b")
    assert shown["content digest"] == EVIL[:16]
    toml = path / "resolved.toml"
    toml.write_text(toml.read_text().replace('kind = "pdpc"', f"kind = {json.dumps(EVIL)}"))
    assert "<script>" in cells(Run(path))["problem"]


@pytest.mark.parametrize("text", ["{", '{"rounds": 2, "cost": 1' + "0" * 400 + "}"])
def test_a_damaged_run_says_so_in_a_notebook(copied: Run, text: str) -> None:
    (copied.path / "summary.json").write_text(text)
    assert cells(copied).keys() == {"run", "state", "problem"}
