"""Run directories: their names, digests and faults, and how a run shows itself in a notebook."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import Run, from_tables, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import RunNotFound, VeflError
from vefl_sim.core.tables import content_digest
from vefl_sim.experiment.toml import resolved
from vefl_sim.records.identity import Identity, config_digest
from vefl_sim.records.run_directory import create_run, existing_run
from vefl_sim.records.totals import energy_text

GOLDEN = from_tables(EXPERIMENT)


def test_directory_is_named_by_name_and_configuration(tmp_path: Path) -> None:
    run, digest = create_run(Identity(GOLDEN), tmp_path), config_digest(GOLDEN)
    assert run.path.name == f"three-cars-{digest[:8]}"
    assert run.experiment == resolved(GOLDEN)
    assert run.state == "unfinished"
    versions = json.loads((run.path / "versions.json").read_text())
    assert versions["configuration"] == digest
    assert "tests.scripted:ThreeCars" in versions["parts"]


def test_traffic_of_a_user_has_a_file_of_any_format(tmp_path: Path) -> None:
    file, digests = tmp_path / "traffic.csv", set()
    for content in ("1", "2"):
        file.write_text(content)
        digests.add(config_digest(with_settings(GOLDEN, {"mobility.file": str(file)})))
    assert len(digests) == 2


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


def test_a_table_that_no_run_has(golden: Run) -> None:
    with pytest.raises(RunNotFound, match="no table 'nonsense'"):
        golden.table("nonsense")


TABLES = ("events", "rounds", "vehicles", "slots", "mobility", "timings")


@pytest.mark.parametrize("name", ["DONE", "summary.json", "resolved.toml", "versions.json", *TABLES])
def test_any_flipped_bit_of_a_file_is_noticed_or_harmless(name: str, golden_copy: Run) -> None:
    file = golden_copy.path / (f"tables/{name}.parquet" if name in TABLES else name)
    table = name if name in TABLES else "rounds"
    content, rows, noticed = file.read_bytes(), golden_copy.table(table), 0
    for place in range(0, len(content), len(content) // 9 + 1):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            run = Run(golden_copy.path)
            is_same = run.table(table).equals(rows)
            noticed += name not in TABLES and not all(finding.passed for finding in verify(run))
        except VeflError:
            noticed += 1
        else:
            assert is_same or name == "timings"  # no part of the content
    assert noticed or name == "timings"


def cells(run: Run) -> dict[str, str]:
    """The cells that a notebook shows, by their headings; there is nothing but a table, whatever the run holds."""
    table = ElementTree.fromstring(run._repr_html_())
    assert {element.tag for element in table.iter()} == {"table", "thead", "tbody", "tr", "th", "td"}
    return dict(zip(*([cell.text for cell in table.iter(tag)] for tag in ("th", "td")), strict=True))


def test_a_finished_run_in_a_notebook(golden: Run) -> None:
    assert cells(golden) == {
        "run": golden.path.name, "state": "done", "scheme": "pdpc", "rounds": "2 of 2", "accuracy": "–",
        "delivered": "3 of 5", "paid": f"{golden.summary['cost']:.1f}",
        "energy": energy_text(golden.summary["energy_j"]), "content digest": golden.content_digest()[:16],
    }  # fmt: skip


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"


def test_nothing_of_a_stranger_becomes_markup(golden_copy: Run) -> None:
    path = golden_copy.path.rename(golden_copy.path.with_name(EVIL.replace("/", "∕")))
    (path / "summary.json").write_text(json.dumps({"rounds": 2, "content_digest": EVIL}))
    shown = cells(Run(path))
    assert shown["run"] == path.name.replace("\x1b", r"\x1b")
    assert shown["content digest"] == EVIL[:16]
    toml = path / "resolved.toml"
    toml.write_text(toml.read_text().replace('kind = "pdpc"', f"kind = {json.dumps(EVIL)}"))
    problem = cells(Run(path))["problem"]
    assert "<script>" in problem
    assert len(problem) > 50  # the whole sentence
