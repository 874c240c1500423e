"""The report page of a run, without a browser: what is in it, what it says of odd runs, and that nothing escapes."""

import json
import re
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from tests.analysis.report.pages import ATTACK, Elements, data_of, hostile
from tests.command_line import ROOT, call
from tests.protocol.test_asynchronous import THREE
from tests.protocol.test_golden import EXPERIMENT
from tests.resumable import Kill, Killer, only
from vefl_sim import Run, from_tables, simulate, why, with_settings
from vefl_sim.analysis.report.data import changes_of
from vefl_sim.analysis.report.document import asset, html, source_hash
from vefl_sim.analysis.report.facts import changed_keys, commands_of
from vefl_sim.analysis.report.page import NAME, report
from vefl_sim.analysis.report.source import Source
from vefl_sim.experiment.toml import to_toml

GOLDEN = from_tables(EXPERIMENT)


@pytest.fixture(scope="module")
def page(golden: Run) -> str:
    return report(golden)


def test_the_page_says_what_the_run_was(page: str, golden: Run) -> None:
    text = Elements(page).text
    assert "PDPC on tests.scripted:sixty_samples (Dirichlet α = 0.1), seed 1: in 2 rounds (2 s of simulated" in text
    assert "3 of 5 ordered updates arrived" in text
    assert f"paid{golden.summary['cost']:.3g}" in text
    assert f"energy{1e3 * golden.summary['energy_j']:.1f} mJ" in text
    assert "auditpassed2 plans, " in text
    assert "vefl.round_s = 1 5" in text  # key, value, default
    assert "40% of the ordered updates were lost" in text
    assert f"left unspent. On average {golden.summary['cost'] / 2:.1f} of Ξ = 1,000 was paid per round" in text
    assert golden.summary["content_digest"] in text
    assert f"{golden.path}/resolved.toml --fresh" in text


def test_every_changed_key_has_its_default_beside_it(rush: Run) -> None:
    settings = ("learning.batch_size=8", "data.train_samples=500", "run.rounds=7", "traffic.through_share=0.3")
    shown = {key: (value, default) for key, value, default in changed_keys(with_settings(rush.experiment, *settings))}
    assert shown["data.train_samples"] == ("500", "12000")
    assert shown["learning.batch_size"] == ("8", "not given")
    assert all(default for _, default in shown.values())
    same = with_settings(rush.experiment, "data.train_samples=12000")  # as many as without the key
    assert "data.train_samples" not in {key for key, _, _ in changed_keys(same)}


def test_changes_during_a_run_are_listed_and_marked(tmp_path: Path) -> None:
    changes = [{"from_round": 2, "vefl": {"budget": 20.0}}, {"at_s": 1.75, "radio": {"on": False}}]
    made = simulate(from_tables(EXPERIMENT | {"change": changes}), out=tmp_path)
    shown = [*changed_keys(made.experiment)][-2:]
    assert [(key, value) for key, value, _ in shown] == [
        ("from round 2: vefl.budget", "20"), ("from 1.75 s: radio.on", "false"),
    ]  # fmt: skip
    marks = changes_of(Source(made))
    assert [mark["text"] for mark in marks] == ["from round 2 vefl.budget=20.0", "from 1.75 s radio.on=False"]
    assert [mark["at"] for mark in marks] == [made.rounds["start_ns"][1] / 1e6, 1750.0]


def test_terms_are_explained_as_in_the_glossary(page: str) -> None:
    rows = [line.split(" | ") for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if "| " in line]
    glossary = {
        row[0].removeprefix("| "): re.sub(r"\[(.+?)\]\(.+?\)", r"\1", row[1].removesuffix(" |")) for row in rows
    }
    terms = data_of(page)["terms"]
    assert {name: meaning for name, meaning, _ in terms}.items() <= glossary.items()
    words = [word for *_, own in terms for word in own]
    assert len({*words}) == len(words) > 30


def test_the_data_are_those_of_the_tables(page: str, golden: Run) -> None:
    shown = data_of(page)
    assert shown["rounds"]["delivered"] == golden.rounds["delivered"].tolist() == [2, 1]
    assert shown["decisions"]["reasons"] == [{"lost/coverage_left": 1}, {"lost/round_ended": 1}]
    orders = shown["orders"]
    assert list(zip(orders["cv"], orders["round"], orders["state"], strict=True)) == [
        (1, 1, "delivered"), (2, 1, "delivered"), (3, 1, "lost"), (1, 2, "delivered"), (2, 2, "lost"),
    ]  # fmt: skip
    assert orders["trained"][:3] == [991.5, 991.5, None]  # the third leaves while it trains
    assert orders["ended"][:3] == [997.5, 997.5, 666.67]
    assert shown["visits"] == [[1, 0.0], [2, 0.0], [3, 0.0, 666.67]]


def test_every_explanation_is_that_of_why(rush: Run) -> None:
    told = {(cv, round_): text for cv, round_, text in data_of(report(rush))["why"]}
    ordered = rush.vehicles.dropna(subset=["ordered_ns"])[["cv", "round"]].to_numpy().tolist()
    assert {tuple(pair) for pair in ordered} <= told.keys()
    assert len(told) > len(rush.vehicles)  # also of CVs that came when a round had started
    for cv, round_ in [*[*told][:: len(told) // 15], [*told][-1]]:
        assert told[cv, round_] == "\n".join(why(rush, cv=cv, round=round_))


def test_the_worst_losses_come_with_their_reasons(rush: Run) -> None:
    lost = rush.vehicles.query("state == 'lost'").sort_values("paid", ascending=False)
    text = Elements(report(rush)).text
    shown = re.findall(r"CV (\d+), round (\d+) ", text)
    assert [(int(cv), int(k)) for cv, k in shown] == list(zip(lost["cv"], lost["round"], strict=True))[:10]
    for cv, round_ in lost[["cv", "round"]].to_numpy().tolist():
        assert why(rush, cv=cv, round=round_)[-1] in text


def test_without_losses_the_closest_calls_are_told(calm: Run) -> None:
    page = report(calm)
    orders = pd.DataFrame(data_of(page)["orders"])
    assert set(orders["state"]) == {"delivered"}
    spare_ms = (orders["deadline"] - orders["ended"]).sort_values()
    text = Elements(page).text
    assert "No update was lost. These had the least time left before their deadline." in text
    closest = re.findall(r"CV (\d+), round (\d+) delivered", text)
    chosen = [orders.query(f"cv == {cv} and round == {number}").index[0] for cv, number in closest]
    assert spare_ms[chosen].tolist() == spare_ms.iloc[:10].tolist()
    cv, number = map(int, closest[0])
    assert f"CV {cv}, round {number} delivered in the last slot before its deadline" in text
    assert why(calm, cv=cv, round=number)[-2] in text
    assert text.count("Show on the map") == 10
    assert "Worst losses" not in text


def test_slots_are_shown_as_bins_and_missing_ones_are_named(page: str, golden: Run, rush: Run) -> None:
    uploads = data_of(page)["uploads"]
    assert (uploads["kind"], uploads["bin_ms"]) == ("full", 50)
    first = golden.table("slots").query("cv == 1 and slot < 2000")
    mbps = first["rate_bps"].mean() / 1e6
    assert uploads["cvs"]["1"][:3] == [19, 1.0, pytest.approx(mbps, abs=1e-3)]  # from 0.95 to 1 s, one pRB
    assert "Slots were not recorded" not in page
    assert 'Slots were not recorded (trace.slots = "off")' in Elements(report(rush)).text


def test_divergence_overruns_and_another_version_are_said(golden: Run, tmp_path: Path) -> None:
    copy = copytree(golden.path, tmp_path / "run")
    noted = {"diverged": True, "overruns": {"deadline": 4}, "plan_breaches": {"C5": 1}}
    for name, more in (("summary.json", noted), ("versions.json", {"vefl_sim source": "0" * 16})):
        (copy / name).write_text(json.dumps(json.loads((copy / name).read_text()) | more))
    text = Elements(report(Run(copy))).text
    assert "The training has diverged." in text
    assert "4 × upload ended after its deadline" in text
    assert "The scheme violates constraints. 1 × C5." in text
    assert "audit1 broken" in text
    assert "Another version of vefl_sim made this run" in text


def test_lost_grants_are_shown_in_the_whole_run_and_by_round(page: str, old_knowledge: Run) -> None:
    assert "grants" not in Elements(page).text  # of a run that cannot lose any
    assert data_of(page)["rounds"]["grants_lost_share"] == [None, None]
    page, outages = report(old_knowledge), old_knowledge.table("outages")
    lost, used = outages["lost_slots"].sum(), outages["tx_slots"].sum()
    text = Elements(page).text
    assert f"grants lost{lost / used:.1%}{lost} of {used}" in text
    assert f"{lost / used:.0%} of the grants were lost. {lost} of {used} were above the capacity of their slot" in text
    assert "as it was 4 slots before (radio.csi_delay_slots)" in text
    rounds, by_round = data_of(page)["rounds"], outages.groupby("round")
    assert rounds["grants"] == by_round["tx_slots"].sum().tolist()
    assert rounds["grants_lost"] == by_round["lost_slots"].sum().tolist()
    assert rounds["grants_lost_share"][1] == pytest.approx(rounds["grants_lost"][1] / rounds["grants"][1], abs=1e-4)


def test_a_page_loads_nothing(page: str) -> None:
    elements = Elements(page).found
    policy = next(a["content"] or "" for t, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "data:" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) > 5
    assert all(source_hash(script) in policy for script in scripts)
    assert source_hash(asset("report.css")) in policy
    assert {a["href"][0] for _, a in elements if a.get("href")} == {"#"}
    assert not [a for _, a in elements if "src" in a or "style" in a]
    for name in ("http:", "https:", "innerHTML", "eval(", "import("):
        assert name not in "".join(scripts).replace("http://www.w3.org/2000/svg", "")


def test_nothing_in_a_run_becomes_markup(rush: Run, tmp_path: Path) -> None:
    evil = hostile(rush, tmp_path)
    page = report(evil)
    elements, honest = Elements(page), Elements(report(rush))
    assert len(re.findall("<script", page)) == len(re.findall("<script", report(rush)))
    assert "hit=1</script>" not in page
    assert {tag for tag, _ in elements.found} <= {tag for tag, _ in honest.found} | {"section"}
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]
    assert elements.text.count("<script>hit=1") > 10  # as text
    assert data_of(page)["confusion"]["classes"] == [ATTACK[:60], "b"]
    assert html("\u202e\x00a") == "\ufffd\ufffda"


def test_no_setting_of_a_run_becomes_a_command(golden: Run, tmp_path: Path) -> None:
    copy = copytree(golden.path, tmp_path / "run")
    versions = json.loads((copy / "versions.json").read_text()) | {"set": ["a=1\nrm -rf ~ #", "b=\r\x85\u2028rm -rf ~"]}
    (copy / "versions.json").write_text(json.dumps(versions))
    commands = [*commands_of(Source(Run(copy)))]
    assert commands[0].startswith("# started with the options ")
    assert commands[0].isprintable()
    assert "\n".join(commands).count("\n") == 2


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    short = with_settings(GOLDEN, "run.rounds=3", "run.checkpoint_every=1")
    with pytest.raises(Kill):
        simulate(short, out=tmp_path, watcher=Killer(2))
    text = Elements(report(only(tmp_path))).text
    assert "The run is not finished. This page shows what is recorded, up to round 1." in text
    assert "in 1 of 3 rounds" in text


def test_a_run_without_rounds_so_far_has_a_page(golden: Run, tmp_path: Path) -> None:
    begun = copytree(golden.path, tmp_path / "begun")
    for name in ("DONE", "summary.json"):
        (begun / name).unlink()
    for file in (begun / "tables").iterdir():
        file.unlink()
    (begun / "FAILED").write_text("The disk is <full>.")
    page = report(Run(begun))
    text = Elements(page).text
    assert "no round has been recorded yet" in text
    assert "The run failed. The disk is <full>. No round is recorded yet." in text
    assert "<script>" not in page


def test_without_rounds_orders_may_overlap_windows(tmp_path: Path) -> None:
    run = simulate(from_tables(THREE), out=tmp_path)
    shown = data_of(report(run))
    assert shown["unit"] == "window"
    orders = shown["orders"]
    assert [at for at, cv in zip(orders["at"], orders["cv"], strict=True) if cv == 1] == [0.0, 406.0, 1000.0]
    assert {(cv, k): text for cv, k, text in shown["why"]}[1, 1] == "\n".join(why(run, cv=1, round=1))


@pytest.mark.parametrize("setting", ["scheme.kind=centralized", "scheme.constrained=false"])
def test_schemes_without_constraints_have_a_page(setting: str, tmp_path: Path) -> None:
    tables = {name: table for name, table in EXPERIMENT.items() if name not in ("rat", "trace")}
    tables["scheme"] = {}
    page = report(simulate(with_settings(from_tables(tables), setting), out=tmp_path))
    shown = data_of(page)
    assert shown["budget"] is None
    assert ('id="replay"' in page) == (setting != "scheme.kind=centralized")


def test_the_command_writes_into_the_run_and_changes_nothing_else(golden: Run, tmp_path: Path) -> None:
    copy = copytree(golden.path, tmp_path / "run")
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    (copy / NAME).symlink_to(victim)
    result = call("report", copy)
    assert (result.returncode, result.stdout) == (0, f"{copy / NAME}\n")
    assert (copy / NAME).read_text().startswith("<!doctype html>")
    assert victim.read_text() == "mine"
    assert Run(copy).content_digest() == golden.summary["content_digest"]
    assert call("verify", copy).returncode == 0
    assert call("report", copy, "--to", tmp_path / "mine.html").returncode == 0
    refused = call("report", copy, "--out", tmp_path / "mine.html")
    assert (refused.returncode, "name the file to write with --to" in refused.stderr) == (2, True)
    assert (tmp_path / "mine.html").exists()


def test_what_cannot_be_shown_gets_one_sentence(golden: Run, tmp_path: Path) -> None:
    copy = copytree(golden.path, tmp_path / "run")
    (copy / "tables" / "vehicles.parquet").write_bytes(b"PAR1 nothing PAR1")
    for arguments, sentence in [
        ((copy,), "vehicles.parquet"),
        ((tmp_path / "nobody",), "no such run directory"),
        ((golden.path, "--to", tmp_path), "is a folder: name a file in it"),
        ((golden.path, "--to", tmp_path / "no" / "folder.html"), "cannot be written"),
    ]:
        result = call("report", *arguments)
        assert result.returncode == 2
        assert sentence in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_the_summary_of_a_run_ends_with_the_path_of_its_page(tmp_path: Path) -> None:
    (tmp_path / "cars.toml").write_text(to_toml(GOLDEN))
    result = call(tmp_path / "cars.toml", "--out", tmp_path / "runs")
    path = only(tmp_path / "runs").path / NAME
    assert result.stdout.splitlines()[-1].split() == ["report", str(path)]
    assert path.exists()
    path.unlink()
    again = call(tmp_path / "cars.toml", "--out", tmp_path / "runs")
    assert "python -m vefl_sim report" in again.stdout.splitlines()[-1]
    assert not path.exists()  # a finished run is not changed
    call(tmp_path / "cars.toml", "--out", tmp_path / "quiet", "-q")
    assert not (only(tmp_path / "quiet").path / NAME).exists()
