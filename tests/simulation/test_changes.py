"""Keys that change during a run: the same world before, verified and resumed after; and branches of runs."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.resumable import Kill, Killer, only
from vefl_sim import BadInput, Experiment, Run, Simulation, branch, from_tables, resume, simulate, with_settings
from vefl_sim.analysis.branches import branch_lines
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.experiment.changes import BETWEEN_ROUNDS, begun, with_changes
from vefl_sim.experiment.toml import load_resolved, to_toml
from vefl_sim.records.identity import config_digest
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.results.keys import keys_of, matches, toml_of

ROUNDS = 8
TABLES: dict[str, Any] = {
    "run": {"name": "if", "rounds": ROUNDS, "checkpoint_every": 1},
    "learning": {"kind": "none"},
    "data": {"train_samples": 1000},
    "vefl": {"round_s": 2.0},
}
BUDGET = {"from_round": 5, "vefl": {"budget": 150.0}}
MANY = [
    {"from_round": 3, "sla": {"base_fee": [100.0, 200.0]}},
    BUDGET,
    {"at_s": 9.5, "radio": {"max_tx_power_w": 0.02}},
    {"from_round": 7, "scheme": {"selected": 3}, "rat": {"efficiency_weight": 2.0}},
]


def experiment(*changes: dict[str, Any], **tables: Any) -> Experiment:
    return from_tables(TABLES | {"change": changes} | tables)


def simulated(*changes: dict[str, Any], **tables: Any) -> Simulation:
    return simulate(experiment(*changes, **tables), out=None)


@pytest.fixture(scope="module")
def plain() -> Simulation:
    return simulated()


def before(table: pd.DataFrame, time_ns: int) -> pd.DataFrame:
    """The rows of what happened before this time."""
    column = next(name for name in ("time_ns", "end_ns", "ordered_ns") if name in table)
    return table[table[column] < time_ns].reset_index(drop=True)


@pytest.mark.parametrize(
    ("change", "time_s"),
    [(BUDGET, 8.0), ({"at_s": 9.5, "radio": {"on": False}}, 9.5), ({"from_round": 4, "radio": {"prbs": 5}}, 6.0)],
)
def test_up_to_the_change_a_run_is_the_run_without_it(plain: Simulation, change: dict[str, Any], time_s: float) -> None:
    changed = simulated(change)
    for name in ("events", "rounds", "mobility"):
        heads = [before(run.table(name), int(time_s * 1e9)) for run in (plain, changed)]
        pd.testing.assert_frame_equal(*heads)
        assert len(heads[0])
    noted = changed.table("events").query("kind == 'keys_changed'")
    assert noted["time_ns"].tolist() == [int(time_s * 1e9)]
    assert changed.content_digest() != plain.content_digest()
    same = ("vehicle", "x_m", "y_m")  # traffic knows nothing of it
    assert plain.table("mobility")[[*same]].equals(changed.table("mobility")[[*same]])


def test_an_outage_loses_updates_and_ends(plain: Simulation) -> None:
    changed = simulated({"at_s": 8.5, "radio": {"on": False}}, {"at_s": 12.5, "radio": {"on": True}})
    events = changed.table("events")
    received = events[events["kind"] == "upload_received"]["time_ns"]
    assert not received.between(8.51e9, 12.5e9).any()
    rounds = changed.rounds.set_index("round")
    assert rounds["delivered"][[5, 6]].tolist() == [0, 0]
    assert rounds["delivered"][8] == plain.rounds.set_index("round")["delivered"][8]


def test_plans_and_the_audit_have_the_keys_in_force() -> None:
    rounds = simulated(*MANY).rounds.set_index("round")
    assert rounds["planned_cost"][:4].max() > 150 >= rounds["planned_cost"][5:].max()
    assert rounds["ordered"][:6].max() > 3 >= rounds["ordered"][7:].max()


def test_terms_change_for_those_who_come_later() -> None:
    changed = Simulation(experiment({"from_round": 3, "sla": {"base_fee": [100.0, 200.0]}}))
    fees = {}
    for _ in changed:
        fees |= {cv: vehicle.agreement.base_fee for cv, vehicle in changed.actors.coverage.in_coverage.items()}
    events = changed.table("events").query("kind == 'coverage_entered'").groupby("cv")["time_ns"].min()
    assert {fees[cv] >= 100 for cv in fees if events[cv] > 4e9} == {True}
    assert {fees[cv] >= 100 for cv in fees if events[cv] <= 4e9} == {False}


@pytest.mark.slow
def test_every_key_that_can_change_does(plain: Simulation) -> None:
    """Each of them to another value; none is refused by what it meets in a run."""
    values: dict[str, Any] = {
        "radio.power": "open-loop", "mac.start": "ready", "mac.scheduler": "edf", "rat.method": "equal",
        "vefl.method": "exact", "vefl.upload_share": "selected", "aggregation.form": "models",
        "aggregation.weights_over": "ordered", "aggregation.p_suc": "history",
    }  # fmt: skip
    for key in sorted(BETWEEN_ROUNDS):
        table, name = key.split(".")
        old = getattr(getattr(plain.experiment, table), name)
        if key in values:
            value = values[key]
        elif isinstance(old, bool):
            value = not old
        elif isinstance(old, tuple):
            value = [1.01 * old[0], 1.01 * old[1]]
        else:
            value = 0.9 * old if isinstance(old, float) else 1
        try:
            changed = experiment({"from_round": 2, table: {name: value}}, run={"name": "x", "rounds": 3})
        except BadInput as error:  # keys that only have an effect beside others
            assert any(words in str(error) for words in ("has no effect", "above")), key  # noqa: PT017
            continue
        simulate(changed, out=None)


@pytest.mark.parametrize("kind", ["pdpc", "fdpc", "fedbuff"])
def test_killed_before_and_after_changes(kind: str, tmp_path: Path) -> None:
    changed = experiment(*(MANY if kind != "fedbuff" else MANY[:3]), scheme={"kind": kind})
    whole = simulate(changed, out=tmp_path / "whole")
    for killed in (2, 5, 7):
        with pytest.raises(Kill):
            simulate(changed, out=tmp_path / str(killed), watcher=Killer(killed))
        assert resume(only(tmp_path / str(killed))).content_digest() == whole.content_digest()
    assert [finding for finding in verify(whole) if not finding.passed] == []
    (whole.path / "resolved.toml").write_text(to_toml(with_settings(changed, "change.2.vefl.budget=100.0")))
    assert {finding.what for finding in verify(whole) if not finding.passed} >= {"configuration"}


def test_learning_and_adversaries_change(tmp_path: Path) -> None:
    tables = {"learning": {"learning_rate": 0.05}, "run": {"name": "x", "rounds": 3, "checkpoint_every": 1}}
    first = simulated(**tables).rounds["accuracy"]
    for change in ({"learning": {"learning_rate": 0.5}}, {"adversary": {"share": 1.0}}):
        changed = simulate(experiment({"from_round": 3, **change}, **tables), out=tmp_path).rounds["accuracy"]
        assert changed[:2].tolist() == first[:2].tolist()
        assert changed[2] != first[2]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"from_round": 9, "vefl": {"budget": 1.0}}, "from_round = 9 is after the last round, 8"),
        ({"from_round": 1, "vefl": {"budget": 1.0}}, "from_round = 1: it must be at least 2"),
        ({"at_s": 16.0, "radio": {"on": False}}, "at_s = 16 is not before the end of the run at 16 s"),
        ({"vefl": {"budget": 1.0}}, "give it either from_round"),
        ({"from_round": 2}, "it changes no key"),
        (
            {"from_round": 2, "run": {"seed": 2}},
            "run.seed cannot change during a run: it belongs to the run as a whole",
        ),
        ({"from_round": 2, "traffic": {"cv_share": 0.5}}, "traffic is driven ahead of the rounds"),
        ({"from_round": 2, "data": {"min_samples": 3}}, "data are split over the CVs at the start"),
        ({"at_s": 3.0, "vefl": {"budget": 1.0}}, "vefl.budget changes only between rounds: use from_round"),
        ({"from_round": 2, "vefl": {"bugdet": 1.0}}, "vefl.bugdet is not a known key of [vefl]; the nearest is"),
        ({"from_round": 2, "vefl": {"budget": "x"}}, 'vefl.budget = "x": it must be a number'),
        ({"from_round": 2, "radio": {"p0_dbm": -70.0}}, "radio.p0_dbm has no effect with radio.power"),
        ({"from_round": 2, "budget": 3}, "budget is a key of [vefl]"),
    ],
)
def test_a_change_that_cannot_be_made_gets_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        experiment(change)
    assert [sentence in problem and problem.startswith("change 1: ") for problem in refused.value.problems] == [True]


def test_the_same_key_at_the_same_time_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^change 2: vefl.budget is changed at the same time by change 1: keep one"):
        experiment(BUDGET, BUDGET)


def test_a_change_is_part_of_names_stored_keys_and_files(tmp_path: Path) -> None:
    plain, changed = experiment(), experiment(*MANY)
    assert config_digest(plain) != config_digest(changed)
    assert not matches(keys_of(plain), keys_of(changed))
    assert not matches(keys_of(changed), keys_of(plain))
    assert matches(keys_of(changed), keys_of(experiment(*MANY)))
    (tmp_path / "stored.toml").write_text(toml_of(keys_of(changed)) + '\n[run]\nname = "x"\n'.replace("[run]\n", ""))
    assert "change" not in to_toml(plain)
    (tmp_path / "resolved.toml").write_text(to_toml(changed))
    assert load_resolved(tmp_path / "resolved.toml").change == changed.change


def test_a_sweep_over_values_of_a_change(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(experiment(BUDGET)) + "\n[sweep]\nchange.1.vefl.budget = [150.0, 600.0]\n")
    points = load_sweep(tmp_path / "s.toml").points
    assert [point.experiment.change[0].keys for point in points] == [{"vefl.budget": 150.0}, {"vefl.budget": 600.0}]
    assert len({point.digest for point in points}) == 2
    (tmp_path / "s.toml").write_text(to_toml(experiment()) + "\n[sweep]\nchange.1.vefl.budget = [150.0]\n")
    with pytest.raises(BadInput):
        load_sweep(tmp_path / "s.toml")


def test_of_two_changes_of_a_key_the_later_in_the_file_counts() -> None:
    changed = experiment(BUDGET, {"from_round": 7, "vefl": {"budget": 600.0}})
    budgets = [with_changes(changed, begun(changed, round, 0)).vefl.budget for round in (4, 5, 6, 7, 8)]
    assert budgets == [1000.0, 150.0, 150.0, 600.0, 600.0]


class TestBranches:
    @pytest.fixture(scope="class")
    def parent(self, tmp_path_factory: pytest.TempPathFactory) -> Run:
        kept = {"run": TABLES["run"] | {"keep_checkpoints": True}}
        return simulate(experiment(**kept), out=tmp_path_factory.mktemp("family"))

    def test_from_a_kept_checkpoint_as_from_the_start(self, parent: Run, tmp_path: Path) -> None:
        made = parent.branch({"vefl.budget": 150.0}, from_round=5)
        alone = simulate(experiment(BUDGET), out=tmp_path)
        assert made.content_digest() == alone.content_digest()
        assert made.path.parent == parent.path.parent
        assert branch(parent, ["vefl.budget=150.0"], from_round=5).path == made.path
        lines = [*branch_lines(parent, made)]
        assert lines[0].startswith("from round 5 on")
        paid = parent.rounds["cost"][4:].sum(), made.rounds["cost"][4:].sum()
        assert lines[3].split() == ["paid", *(f"{value:.1f}" for value in paid), f"{paid[1] - paid[0]:+.1f}"]

    def test_of_a_branch_and_of_a_stopped_run(self, parent: Run, tmp_path: Path) -> None:
        first = parent.branch({"vefl.budget": 150.0}, from_round=5)
        second = first.branch({"radio.on": False}, at_s=13.0)
        changes = [BUDGET, {"at_s": 13.0, "radio": {"on": False}}]
        assert second.content_digest() == simulated(*changes).content_digest()
        with pytest.raises(Kill):
            simulate(experiment(), out=tmp_path, watcher=Killer(6))
        assert only(tmp_path).branch({"vefl.budget": 150.0}, from_round=5).content_digest() == first.content_digest()

    def test_bad_input_leaves_nothing_behind(self, parent: Run) -> None:
        known = {*parent.path.parent.iterdir()}
        with pytest.raises(BadInput, match=r"^from_round = 99 is after the last round, 8"):
            parent.branch({"vefl.budget": 150.0}, from_round=99)
        with pytest.raises(BadInput, match=r"^give it either from_round"):
            parent.branch({"vefl.budget": 150.0})
        assert {*parent.path.parent.iterdir()} == known
