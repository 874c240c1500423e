"""Explanations of updates (`trace --why`) for the golden run, from its trace."""

import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from tests.command_line import call
from tests.protocol.test_asynchronous import THREE
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, Run, from_tables, simulate, why, with_settings
from vefl_sim.analysis.events import rows_of
from vefl_sim.analysis.report.data import visits_of
from vefl_sim.analysis.report.page import report
from vefl_sim.analysis.report.source import Source
from vefl_sim.analysis.timeline import coverage_changes
from vefl_sim.analysis.verify.verification import verify


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    experiment = with_settings(from_tables(EXPERIMENT), "run.rounds=3")
    return simulate(experiment, out=tmp_path_factory.mktemp("why"))


def test_a_delivered_update(run: Run) -> None:
    sentences = "\n".join(why(run, cv=1, round=1))
    for fact in (
        "100.0 m from the gNB", "sojourn bound of 20.000 s", "worst-case upload of 17 slots (8.5 ms)", "T = 0.9915 s",
        "l = 10 iterations (at most 10 were feasible)", "η = 1.0086 GHz", "t_cmp = 0.9915 s",
        "planned to end by 1.0000 s", "0.102 J", "33.0 kbit in 12 slots at a mean SNR of 53.3 dB", "paid 11.03",
        "weight 0.3333",
    ):  # fmt: skip
        assert fact in sentences


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["mac.grant_delay_slots=9", "mac.bsr_slots=5"], "17 slots, which takes {} ms with the wait for a report"),
        (["mac.tdd=DU", "downlink.kind=broadcast"], "ms with the pattern DU and with the broadcast of the model,"),
    ],
)
def test_all_that_is_reserved_adds_up(settings: list[str], words: str, tmp_path: Path) -> None:
    run = simulate(with_settings(from_tables(EXPERIMENT), *settings), out=tmp_path)
    planned = why(run, cv=1, round=1)[0]
    found = re.search(r"which takes (\S+) ms .* left T = (\S+) s", planned)
    assert found
    assert words.format(found[1]) in planned
    assert float(found[1]) > 17 * 0.5
    assert float(found[1]) / 1e3 + float(found[2]) == pytest.approx(1.0, abs=1e-4)  # the round


def test_an_update_lost_to_the_end_of_the_round(run: Run) -> None:
    *_, last = why(run, cv=2, round=2)
    assert "lost because the round ended: 1.4 of 33.0 kbit were not sent yet after 12 slots" in last


def test_an_update_lost_to_leaving_coverage(run: Run) -> None:
    sentences = why(run, cv=3, round=1)
    assert len(sentences) == 2
    lost = "[0.6667 s] The update was lost because the CV left coverage, 500.0 m from the gNB: 33.0 of 33.0 kbit"
    assert lost in sentences[1]


def test_a_cv_that_was_not_in_coverage(run: Run) -> None:
    [sentence] = why(run, cv=3, round=2)
    assert "not in coverage at 1.000 s" in sentence
    assert "left coverage at 0.667 s" in sentence
    assert why(run, cv=99, round=2) == ["CV 99 was never in coverage in this run."]


def test_a_trip_that_ends_in_coverage(tmp_path) -> None:
    experiment = with_settings(from_tables(EXPERIMENT), "mobility.kind=tests.scripted:OneArrives")
    run = simulate(experiment, out=tmp_path)
    assert run.summary["updates_lost"]["trip_ended"] == 1
    assert run.summary["updates_lost"]["coverage_left"] == 0
    assert run.vehicles.query("cv == 3")["reason"].tolist() == ["trip_ended"]
    [gone] = run.events.query("cv == 3 and kind == 'trip_ended'")["time_ns"]
    assert "lost because the CV ended its trip, 480.0 m from the gNB: 33.0 of" in why(run, cv=3, round=1)[-1]
    assert f"; it had ended its trip at {gone / 1e9:.3f} s" in why(run, cv=3, round=2)[0]
    assert coverage_changes(rows_of(run.events)).sum() == 2
    assert visits_of(Source(run))[-1] == [3, 0, gone / 1e6]
    assert all(finding.passed for finding in verify(run))


def test_a_round_that_does_not_exist(run: Run) -> None:
    with pytest.raises(BadInput, match="no round 7"):
        why(run, cv=1, round=7)


def test_passed_over_and_ineligible(tmp_path) -> None:
    picky = with_settings(from_tables(EXPERIMENT), "scheme.selected=1", "sla.energy_budget_j=[0.005, 0.06]")
    run = simulate(picky, out=tmp_path)
    states = run.vehicles.query("round == 1").set_index("cv")["state"].to_dict()
    sentences = {state: "\n".join(why(run, cv=cv, round=1)) for cv, state in states.items()}
    assert "the plan selects other CVs" in sentences["passed_over"]
    tight = simulate(with_settings(picky, "sla.energy_budget_j=[1e-5, 1e-5]"), out=tmp_path)
    assert "a single iteration would have exceeded the energy budget" in why(tight, cv=1, round=1)[0]


def test_without_rounds_every_order_of_a_window_is_explained(tmp_path) -> None:
    run = simulate(from_tables(THREE), out=tmp_path)
    sentences = why(run, cv=1, round=1)
    assert [line[:10] for line in sentences] == [
        "[0.0000 s]", "[0.4000 s]", "[0.4000 s]", "[0.4000 s]", "[0.4060 s]", "[0.4065 s]",
        "[0.4060 s]", "[0.8060 s]", "[0.8060 s]", "[0.8060 s]", "[0.8115 s]", "[0.8125 s]",
        "[0.8115 s]",
    ]  # fmt: skip
    assert "l = 4 iterations from version 0 of the model" in sentences[6]
    assert "After the update had waited 0.0010 s, the buffer was full" in sentences[11]
    assert "trained from version 0 of the model, which was one server step old" in sentences[11]
    assert "did not pay for a single iteration; it waits for the next window" in sentences[12]
    refused, *_ = why(run, cv=3, round=1)
    reason = "no time was left for training after the worst-case upload"
    assert f"{reason}; it asks for an order again after 0.25 s" in refused


def damaged(run: Run, folder: Path) -> Path:
    """A copy of a run in whose events one CV has another number, in a valid file."""
    copy = copytree(run.path, folder / run.path.name)
    events = run.events
    events["cv"] = events["cv"].where(events["cv"] != 3, 4)
    events.to_parquet(copy / "tables" / "events.parquet")
    return copy


def test_nothing_is_explained_from_a_damaged_table(run: Run, tmp_path: Path) -> None:
    copy = damaged(run, tmp_path)
    for options in (["--why", "--cv", 1, "--round", 1], ["--csv"], [], ["--perfetto"]):
        answer = call("trace", copy, *options)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert answer.stderr.startswith(f"error: {copy}/tables/events.parquet has changed since it was written")
    assert call("report", copy).returncode == 2


def test_tables_without_digests_are_not_checked_which_is_said(run: Run, tmp_path: Path) -> None:
    copy = damaged(run, tmp_path)
    summary = {key: figure for key, figure in run.summary.items() if key != "table_digests"}
    (copy / "summary.json").write_text(json.dumps(summary))
    answer = call("trace", copy, "--why", "--cv", 1, "--round", 1)
    assert answer.returncode == 0
    assert answer.stderr == "# not checked: the run has recorded no digests of its tables\n"
    assert "The tables are not checked" in report(Run(copy))
