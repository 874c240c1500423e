import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, Run, from_tables, with_settings
from vefl_sim.core.errors import RunNotFound
from vefl_sim.core.tables import TableWriter, content_digest
from vefl_sim.experiment.toml import resolved
from vefl_sim.records.identity import Identity, config_digest
from vefl_sim.records.run_directory import create_run, existing_run
from vefl_sim.records.schemas import SCHEMAS

GOLDEN = from_tables(EXPERIMENT)


def test_directory_is_named_by_name_and_configuration(tmp_path: Path) -> None:
    run = create_run(Identity(GOLDEN), tmp_path)
    assert run.path.name == f"three-cars-{config_digest(GOLDEN)[:8]}"
    assert run.experiment == resolved(GOLDEN)
    assert run.state == "unfinished"


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


def test_a_taken_name_gets_a_number_and_nothing_is_overwritten(tmp_path: Path) -> None:
    first, second = create_run(Identity(GOLDEN), tmp_path), create_run(Identity(GOLDEN), tmp_path)
    assert second.path.name == first.path.name + "-2"


def test_a_finished_run_is_preferred_to_an_unfinished_one(tmp_path: Path) -> None:
    assert existing_run(Identity(GOLDEN), tmp_path) is None
    first, second = create_run(Identity(GOLDEN), tmp_path), create_run(Identity(GOLDEN), tmp_path)
    first.mark("FAILED", "broken")
    found = existing_run(Identity(GOLDEN), tmp_path)
    assert found is not None
    assert found.state in ("failed", "unfinished")
    second.mark("DONE", "x")
    found = existing_run(Identity(GOLDEN), tmp_path)
    assert found is not None
    assert found.path == second.path


def test_the_content_digest_depends_on_values_and_not_on_row_groups(tmp_path: Path) -> None:
    rows = [{"round": number, "what": "plan", "wall_s": number / 7} for number in range(50)]
    digests = []
    for group_size, change in ((50, 0.0), (7, 0.0), (50, 1e-12)):
        folder = tmp_path / f"{group_size}{change}"
        folder.mkdir()
        writer = TableWriter(folder / "timings.parquet", SCHEMAS["timings"])
        for row in rows:
            writer.append(row | {"wall_s": row["wall_s"] + change * row["round"]})
        writer.close()
        table = pq.read_table(folder / "timings.parquet")
        pq.write_table(table, folder / "timings.parquet", row_group_size=group_size)
        digests.append(content_digest([folder / "timings.parquet"]))
    assert digests[0] == digests[1] != digests[2]


def test_the_content_digest_leaves_out_timings(golden_copy: Run) -> None:
    run = golden_copy
    before = run.content_digest()
    (run.path / "tables" / "timings.parquet").unlink()
    assert run.content_digest() == before
    (run.path / "tables" / "events.parquet").unlink()
    assert run.content_digest() != before


def test_missing_and_damaged_tables_are_named(golden_copy: Run) -> None:
    run = golden_copy
    with pytest.raises(RunNotFound, match="no table 'nonsense'"):
        run.table("nonsense")
    (run.path / "tables" / "rounds.parquet").write_bytes(b"PAR1 rubbish")
    with pytest.raises(RunNotFound, match=r"rounds\.parquet cannot be read"):
        _ = run.rounds
    (run.path / "tables" / "rounds.parquet").unlink()
    with pytest.raises(RunNotFound, match=r"rounds\.parquet is missing"):
        _ = run.rounds


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


def test_versions_are_recorded(tmp_path: Path) -> None:
    run = create_run(Identity(GOLDEN), tmp_path)
    versions = json.loads((run.path / "versions.json").read_text())
    assert versions["configuration"] == config_digest(GOLDEN)
    assert "tests.scripted:ThreeCars" in versions["parts"]
