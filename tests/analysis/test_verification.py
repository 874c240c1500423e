"""`verify` detects edited tables and violated constraints."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from tests.resumable import STOPPED, Kill, Killer, Silent, only
from vefl_sim import Run, RunFailed, resume, simulate, why, with_settings
from vefl_sim.analysis.verify import verification
from vefl_sim.analysis.verify.evidence import Evidence
from vefl_sim.analysis.verify.verification import blaming_damage, verify
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


EDITS: dict[str, tuple[str, Callable[[pd.DataFrame], None], str]] = {
    "numbers": ("events", swap, "trace"),
    "outcomes": ("events", remove_an_outcome, "trace"),
    "causes": ("events", lambda rows: rows.__setitem__("cause", rows["id"]), "trace"),
    "cost": ("rounds", add("cost", 1.0), "rounds"),
    "energy": ("rounds", add("energy_j", 1e-6), "rounds"),
    "ordered": ("rounds", add("ordered", 1), "rounds"),
    "C1": ("rounds", add("ordered", 9), "C1"),
    "time": ("vehicles", add("train_ns", 10**9), "C2, C3"),
    "energy budget": ("vehicles", add("worst_j", 100.0), "C4"),
    "price": ("vehicles", add("worst_cost", 0.1), "C5"),
    "iterations": ("vehicles", add("iterations", 100), "C6"),
    "frequency": ("vehicles", add("cpu_hz", 1e10), "C6"),
    "paid": ("vehicles", add("paid", 0.1), "money"),
    "joules": ("vehicles", add("transmit_j", 1e-4), "C7–C12"),
    "pRBs": ("slots", add("prbs", 4), "C7–C12"),
    "power": ("slots", add("power_w", 1.0), "C7–C12"),
    "a slot's power": ("slots", add("power_w", -1e-3), "C7–C12"),
    "order of slots": ("slots", add("slot", 1000), "C7–C12"),
}


@pytest.fixture(scope="module")
def binned(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(with_settings(NETWORK, "trace.slots=uploads"), out=tmp_path_factory.mktemp("binned"))


def twice(rows: pd.DataFrame) -> None:
    rows.loc[1, ["time_ns", "cv"]] = rows.loc[0, ["time_ns", "cv"]]


def served_without_prbs(rows: pd.DataFrame) -> None:
    rows.loc[0, "prbs"] = 0.0


def without_cv(rows: pd.DataFrame) -> None:
    rows.loc[0, "cv"] = pd.NA


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (add("bits", 1.0), "has sent other bits than its orders say"),
        (add("power_w", -1e-4), "has sent other joules than its orders say"),
        (add("prbs", 4), "a value is out of its range"),
        (add("power_w", 1.0), "a value is out of its range"),
        (add("bits_left", -1e9), "a value is out of its range"),
        (add("bits_left", math.inf), "a value is out of its range"),
        (add("bits", math.inf), "a value is out of its range"),
        (add("time_ns", -(10**12)), "a value is out of its range"),
        (served_without_prbs, "a value is out of its range"),
        (without_cv, "a value is out of its range"),
        (add("time_ns", 10**11), "the rows are not in the order of time and CV"),
        (twice, "the rows are not in the order of time and CV"),
    ],
)
def test_edited_uploads_are_detected(edit, sentence: str, binned: Run, tmp_path: Path) -> None:
    assert faults(binned) == {}
    copy = Run(copytree(binned.path, tmp_path / binned.path.name))
    change(copy, "uploads", edit)
    assert sentence in faults(copy)["uploads"]


def test_more_prbs_than_there_are_within_50_ms_are_detected(binned: Run, tmp_path: Path) -> None:
    def crowd(rows: pd.DataFrame) -> None:
        rows["slots"], rows["prbs"] = 100, 4.0
        rows.loc[1, "time_ns"], rows.loc[1, "cv"] = rows.loc[0, "time_ns"], rows.loc[0, "cv"] + 1

    copy = Run(copytree(binned.path, tmp_path / binned.path.name))
    change(copy, "uploads", crowd)
    assert "more pRBs are allocated than there are" in faults(copy)["uploads"]


def test_an_unchanged_run_passes(finished: Run) -> None:
    findings = list(verify(finished))
    assert faults(finished) == {}
    assert [finding.what for finding in findings] == [
        "configuration", "content", "trace", "rounds", "summary", "money", "C7–C12", "C1", "C2, C3", "C4", "C5", "C6",
    ]  # fmt: skip
    assert findings[0].note == "made by this version of vefl_sim"


@pytest.mark.parametrize(("table", "edit", "what"), EDITS.values(), ids=EDITS.keys())
def test_an_edit_is_detected(table: str, edit: Callable[[pd.DataFrame], None], what: str, copy: Run) -> None:
    change(copy, table, edit)
    found = faults(copy)
    assert what in found
    assert "content" not in found


def test_the_budget(copy: Run) -> None:
    """With a budget below the cost of the plans; the edit of the configuration is detected, too."""
    toml = copy.path / "resolved.toml"
    toml.write_text(toml.read_text().replace("budget = 1000.0", "budget = 10.0"))
    assert set(faults(copy)) == {"C5", "configuration"}


def test_an_edited_table_has_another_digest(copy: Run) -> None:
    rows = copy.rounds
    rows.loc[0, "p_suc"] = 0.5
    rows.to_parquet(copy.path / "tables" / "rounds.parquet")
    assert set(faults(copy)) == {"content"}


def test_a_table_without_a_column_or_of_other_types_is_refused_in_one_sentence(copy: Run) -> None:
    rows = copy.rounds
    summary = {key: figure for key, figure in copy.summary.items() if key != "table_digests"}  # as in old versions
    (copy.path / "summary.json").write_text(json.dumps(summary))
    for other in (rows.drop(columns="cost"), rows.assign(cost="x"), rows.assign(cost=None, ordered=[[1]] * len(rows))):
        other.to_parquet(copy.path / "tables" / "rounds.parquet")
        with pytest.raises(
            RunNotFound, match=r"rounds\.parquet has no column (cost|ordered) of (double|int32): it is damaged"
        ):
            _ = copy.rounds
        assert {"content", "rounds", "C1"} <= faults(copy).keys()


def test_values_that_no_run_has_written_are_faults(copy: Run) -> None:
    """Nothing that a table or the summary holds stops the verification."""
    change(copy, "vehicles", lambda rows: rows.__setitem__("cv", -1))
    assert "the files do not allow this check (ValueError: expected non-negative" in faults(copy)["summary"]


def test_an_error_about_a_damaged_run_is_one_sentence_and_about_another_is_ours(copy: Run) -> None:
    with pytest.raises(ZeroDivisionError), blaming_damage(copy):
        _ = 1 / 0
    (copy.path / "tables" / "slots.parquet").unlink()
    with pytest.raises(RunNotFound, match=r"is damaged \(content: the digest of the tables"), blaming_damage(copy):
        _ = 1 / 0


def test_events_that_cause_each_other_are_a_fault(copy: Run) -> None:
    change(copy, "events", lambda rows: rows.__setitem__("cause", rows["id"]))
    cv, round_ = copy.events.dropna(subset=["round", "cv"]).iloc[0][["cv", "round"]]
    with pytest.raises(RunNotFound, match="is damaged"), blaming_damage(copy):
        why(copy, cv=cv, round=round_)


def test_an_edited_summary(copy: Run) -> None:
    (copy.path / "summary.json").write_text(json.dumps(copy.summary | {"updates_delivered": 99}))
    assert faults(copy) == {"summary": "updates_delivered: differs from the tables"}


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


def test_a_failed_run_is_verified_up_to_its_last_checkpoint(tmp_path: Path) -> None:
    class FailsInRound2(Silent):
        def round(self, report) -> None:
            if report.round == 2:
                raise ZeroDivisionError

    rarely = with_settings(NETWORK, "run.checkpoint_every=3")
    for experiment, what in ((rarely, "content"), (with_settings(NETWORK, "run.seed=2"), "so far")):
        with pytest.raises(RunFailed):
            simulate(experiment, out=tmp_path / what, watcher=FailsInRound2())
        findings = list(verify(only(tmp_path / what)))
        assert all(finding.passed for finding in findings)
        assert findings[1].what == what


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
        ("scheme.kind=tests.analysis.test_verification:AllCVs", "C5", "not checked: a user-defined scheme"),
        ("trace.slots=off", "C7–C12", "not checked: no slots were recorded"),
        ("trace.slots=uploads", "C7–C12", "not checked: no slots were recorded"),
        ("scheme.constrained=false", "C4", ""),
    ],
)
def test_checks_that_do_not_apply_are_noted(setting: str, what: str, note: str, tmp_path: Path) -> None:
    findings = {finding.what: finding for finding in verify(simulate(with_settings(NETWORK, setting), out=tmp_path))}
    assert all(finding.passed for finding in findings.values())
    assert findings[what].note.startswith(note)


class AllCVs:
    """A scheme that orders 100 iterations at full speed from all CVs, at any cost."""

    proximal_mu = 0.0

    def __init__(self, experiment) -> None:
        pass

    def plan(self, observation):
        from vefl_sim import Plan

        agreements = observation.snapshot.agreements
        speeds = [agreement.cpu_max_hz for agreement in agreements]
        return Plan(observation.cv, [100] * len(agreements), speeds)

    def aggregate(self, observation, plan, delivered):
        return [0.1] * len(delivered)


def test_all_files_of_a_running_run_are_taken_from_one_checkpoint(tmp_path: Path) -> None:
    """The verification starts in the third round and goes on in the sixth, after three more checkpoints."""

    class Verifying(Silent):
        def round(self, report) -> None:
            if report.round == 3:
                self.evidence = Evidence(only(tmp_path))
                assert len(self.evidence.rounds) == 2
            if report.round == 6:
                checks = verification._CONSISTENCY | verification._CONSTRAINTS
                self.faults = {what: fault for what, check in checks.items() if (fault := check(self.evidence))}

    watcher = Verifying()
    simulate(with_settings(NETWORK, "run.rounds=7"), out=tmp_path, watcher=watcher)
    assert watcher.faults == {}


def test_a_run_that_finishes_meanwhile_is_verified_as_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Kill):
        simulate(NETWORK, out=tmp_path, watcher=Killer(3))
    look, run = verification._configuration, only(tmp_path)
    monkeypatch.setattr(verification, "_configuration", lambda found: look(resume(found)))
    findings = [*verify(run)]
    assert all(finding.passed for finding in findings)
    assert "so far" not in [finding.what for finding in findings]
