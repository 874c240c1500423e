"""`verify` detects edited tables and violated constraints."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from tests.resumable import STOPPED, Kill, Killer, Silent, only
from vefl_sim import Run, RunFailed, simulate, why, with_settings
from vefl_sim.analysis.verify import verification
from vefl_sim.analysis.verify.verification import Evidence, blaming_damage, verify
from vefl_sim.core.errors import RunNotFound
from vefl_sim.records.table_parts import table_digests

NETWORK = with_settings(STOPPED, "run.rounds=3", "learning.kind=none", "scheme.selected=3")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(NETWORK, out=tmp_path_factory.mktemp("finished"))


@pytest.fixture
def copy(finished: Run, tmp_path: Path) -> Run:
    return Run(copytree(finished.path, tmp_path / finished.path.name))


def faults(run: Run) -> dict[str, str]:
    return {finding.what: finding.fault for finding in verify(run) if finding.fault}


def change(run: Run, table: str, edit: Callable[[pd.DataFrame], None]) -> None:
    """Edit a table, and update the recorded digests so that the edit is not detected by them."""
    rows = run.table(table)
    edit(rows)
    rows.to_parquet(run.path / "tables" / f"{table}.parquet")
    digest = run.content_digest()
    digests = {"content_digest": digest, "table_digests": table_digests(run.path)}
    (run.path / "summary.json").write_text(json.dumps(run.summary | digests))
    (run.path / "DONE").write_text(digest)


def add(column: str, amount: float, state: str = "delivered") -> Callable[[pd.DataFrame], None]:
    def edit(rows: pd.DataFrame) -> None:
        row = rows.index[rows["state"] == state][0] if "state" in rows else rows.index[0]
        rows.loc[row, column] += amount

    return edit


def swap(rows: pd.DataFrame) -> None:
    rows.loc[[0, 1], "id"] = rows.loc[[1, 0], "id"].to_numpy()


def remove_an_outcome(rows: pd.DataFrame) -> None:
    rows.loc[rows.index[rows["kind"] == "upload_received"][0], "kind"] = "upload_started"


Edit = tuple[str, Callable[[pd.DataFrame], None], str, str]  # table, edit, finding, a word of its fault
EDITS: dict[str, Edit] = {
    "numbers": ("events", swap, "trace", "ids"),
    "outcomes": ("events", remove_an_outcome, "trace", "exactly one"),
    "causes": ("events", lambda rows: rows.__setitem__("cause", rows["id"]), "trace", "cause"),
    "cost": ("rounds", add("cost", 1.0), "rounds", "cost"),
    "energy": ("rounds", add("energy_j", 1e-6), "rounds", "energy_j"),
    "ordered": ("rounds", add("ordered", 1), "rounds", "ordered"),
    "C1": ("rounds", add("ordered", 9), "C1–C6", "C1"),
    "time": ("vehicles", add("train_ns", 10**9), "C1–C6", "C2 or C3"),
    "energy budget": ("vehicles", add("worst_j", 100.0), "C1–C6", "C4"),
    "price": ("vehicles", add("worst_cost", 0.1), "C1–C6", "C5"),
    "iterations": ("vehicles", add("iterations", 100), "C1–C6", "C6"),
    "frequency": ("vehicles", add("cpu_hz", 1e10), "C1–C6", "C6"),
    "paid": ("vehicles", add("paid", 0.1), "money", "paid"),
}


def test_an_unchanged_run_passes(finished: Run) -> None:
    findings = list(verify(finished))
    assert faults(finished) == {}
    assert [finding.what for finding in findings] == [
        "configuration", "content", "trace", "rounds", "summary", "money", "C1–C6",
    ]  # fmt: skip
    assert findings[0].note == "made by this version of vefl_sim"


@pytest.mark.parametrize(("table", "edit", "what", "word"), EDITS.values(), ids=EDITS.keys())
def test_an_edit_is_detected(table: str, edit: Callable[[pd.DataFrame], None], what: str, word: str, copy: Run) -> None:
    change(copy, table, edit)
    found = faults(copy)
    assert word in found[what]
    assert "content" not in found


def test_the_budget(copy: Run) -> None:
    """With a budget below the cost of the plans; the edit of the configuration is detected, too."""
    toml = copy.path / "resolved.toml"
    toml.write_text(toml.read_text().replace("budget = 1000.0", "budget = 10.0"))
    assert set(faults(copy)) == {"C1–C6", "configuration"}
    assert "budget" in faults(copy)["C1–C6"]


def test_a_table_without_a_column_or_of_other_types_is_refused_in_one_sentence(copy: Run) -> None:
    rows = copy.rounds
    summary = {key: figure for key, figure in copy.summary.items() if key != "table_digests"}  # as in old versions
    (copy.path / "summary.json").write_text(json.dumps(summary))
    for other in (rows.drop(columns="cost"), rows.assign(cost="x"), rows.assign(cost=None, ordered=[[1]] * len(rows))):
        other.to_parquet(copy.path / "tables" / "rounds.parquet")
        with pytest.raises(RunNotFound, match=r"rounds\.parquet(: column| has no column)"):
            _ = copy.rounds
        assert {"content", "rounds", "C1–C6"} <= faults(copy).keys()


def test_an_error_about_a_damaged_run_is_one_sentence_and_about_another_is_ours(copy: Run) -> None:
    with pytest.raises(ZeroDivisionError), blaming_damage(copy):
        _ = 1 / 0
    change(copy, "events", lambda rows: rows.__setitem__("cause", rows["id"]))
    cv, round_ = copy.events.dropna(subset=["round", "cv"]).iloc[0][["cv", "round"]]
    with pytest.raises(RunNotFound, match=r"is damaged \(trace"), blaming_damage(copy):
        why(copy, cv=cv, round=round_)


def test_an_edited_summary(copy: Run) -> None:
    (copy.path / "summary.json").write_text(json.dumps(copy.summary | {"updates_delivered": 99}))
    assert faults(copy) == {"summary": "updates_delivered: differs from the tables"}


def test_a_failed_run_is_verified_up_to_its_last_checkpoint(tmp_path: Path) -> None:
    class Fails(Silent):
        def round(self, report) -> None:
            if report.round == 2:
                raise ZeroDivisionError

    for every, what in ((3, "content"), (1, "so far")):
        with pytest.raises(RunFailed):
            simulate(with_settings(NETWORK, f"run.checkpoint_every={every}"), out=tmp_path / what, watcher=Fails())
        findings = list(verify(only(tmp_path / what)))
        assert all(finding.passed for finding in findings)
        assert findings[1].what == what


def test_a_damaged_table_is_reported_in_one_sentence(copy: Run) -> None:
    file = copy.path / "tables" / "vehicles.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    assert all("vehicles.parquet cannot be read" in faults(copy)[what] for what in ("content", "money"))
    file.unlink()
    assert "vehicles.parquet is missing" in faults(copy)["money"]
    (copy.path / "summary.json").write_text('{"rounds": 8}')
    assert "the summary has nothing" in faults(copy)["content"]
    (copy.path / "summary.json").write_text("{}")
    assert "summary.json is missing or damaged" in faults(copy)["content"]


def test_an_unfinished_run_is_verified_up_to_its_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(Kill):
        simulate(NETWORK, out=tmp_path, watcher=Killer(3))
    run = only(tmp_path)
    assert faults(run) == {}
    (run.path / "parts" / "rounds-000001.parquet").unlink()
    assert "rounds-000001.parquet is missing" in faults(run)["content"]


@pytest.mark.parametrize(
    ("setting", "what", "note"),
    [
        ("scheme.kind=tests.simulation.test_audit:Spender", "C1–C6", "not checked: a user-defined scheme"),
        ("scheme.constrained=false", "C1–C6", ""),
    ],
)
def test_checks_that_do_not_apply_are_noted(setting: str, what: str, note: str, tmp_path: Path) -> None:
    findings = {finding.what: finding for finding in verify(simulate(with_settings(NETWORK, setting), out=tmp_path))}
    assert all(finding.passed for finding in findings.values())
    assert findings[what].note.startswith(note)


def test_all_files_of_a_running_run_are_taken_from_one_checkpoint(tmp_path: Path) -> None:
    """The verification starts in the third round and goes on in the sixth, after three more checkpoints."""

    class Verifying(Silent):
        def round(self, report) -> None:
            if report.round == 3:
                self.evidence = Evidence(only(tmp_path))
                assert len(self.evidence.rounds) == 2
            if report.round == 6:
                checks = verification._CHECKS.items()
                self.faults = {what: fault for what, check in checks if (fault := check(self.evidence))}

    watcher = Verifying()
    simulate(with_settings(NETWORK, "run.rounds=7"), out=tmp_path, watcher=watcher)
    assert watcher.faults == {}
