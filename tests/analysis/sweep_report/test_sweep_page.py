"""The report page of a sweep or comparison: its numbers, its links, and that nothing in its table can act."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from statistics import mean

import pytest

import vefl_sim
from tests.analysis.report.pages import ATTACK, Elements
from tests.command_line import call
from tests.sweep.results.stored import TINY
from vefl_sim.analysis.runs import find_run
from vefl_sim.analysis.sweep_report.page import sweep_report, write_sweep_report
from vefl_sim.analysis.sweep_report.source import SweepSource, find_table
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.comparison import Comparison
from vefl_sim.sweep.index import Index, IndexEntry
from vefl_sim.sweep.points import load_sweep


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table."""
    with path.open("w") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


SVG = "data:image/svg+xml;base64,"[:26]
COMPARED = (
    TINY.replace("vefl.budget = [50, 1000]", "")
    + '[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B & <b>"\nvefl.budget = 50\n'
)


@dataclass(frozen=True)
class Swept:
    """A sweep of four points, of which three are done."""

    out: Path
    runs: dict[tuple[int, int], Run]  # by budget and seed

    @property
    def index(self) -> Path:
        return self.out / "sweeps" / "tiny" / "index.csv"

    def copy(self, folder: Path) -> "Swept":
        return Swept(Path(copytree(self.out, folder / "runs")), self.runs)

    def change(self, **cells: str) -> None:
        """Put these texts in all rows of the index."""
        write_rows(self.index, [row | cells for row in csv.DictReader(self.index.open())])


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    folder = tmp_path_factory.mktemp("swept")
    (folder / "tiny.toml").write_text(TINY)
    sweep, out = load_sweep(folder / "tiny.toml"), folder / "runs"
    entries, runs = {}, {}
    for point in sweep.points[:3]:
        runs[point.values["vefl.budget"], point.seed] = run = vefl_sim.simulate(point.experiment, out=out)
        entries[point.digest] = IndexEntry(run.path.name, "done", 2)
    entries[sweep.points[3].digest] = IndexEntry(status="failed", error="the disk <is> full")
    Index.of(sweep, out).write(entries)
    return Swept(out, runs)


def cells(page: str, label: str) -> list[list[str]]:
    """The cells of the table with this label, as text."""
    start = page.index(f"aria-label='{label}'")
    rows = page[start : page.index("</table>", start)].split("<tr>")[2:]
    return [[Elements(cell).text for cell in row.split("<td>")[1:]] for row in rows]


def test_the_numbers_are_those_of_the_runs(swept: Swept) -> None:
    page = sweep_report(SweepSource(swept.index), swept.index.parent)
    text = Elements(page).text
    assert "2 combinations of variants and swept values, 2 seeds: 3 of 4 runs are done." in text
    assert "1 of 4 runs failed or are damaged" in text
    columns = page[page.index("aria-label='Means over seeds'") :].split("</th>")
    cost = next(place for place, head in enumerate(columns) if head.endswith("mean cost of a round"))
    costs = {key: float(run.rounds["cost"].mean()) for key, run in swept.runs.items()}
    first, second = cells(page, "Means over seeds")
    assert (first[0], first[1], second[0], second[1]) == ("Ξ = 50", "2", "Ξ = 1000", "1 of 2")
    assert first[cost].split(" ± ")[0] == f"{mean([costs[50, 1], costs[50, 2]]):.1f}"
    assert second[cost] == f"{costs[1000, 1]:.1f}"
    ((title, *differences),) = cells(page, "Differences")
    assert (title, differences[cost - 2]) == ("Ξ = 1000", f"{costs[1000, 1] - costs[50, 1]:+.1f}".replace("-", "−"))
    points = cells(page, "Points")
    assert [row[2] for row in points] == ["✓ done", "✓ done", "✓ done", "✗ failedthe disk <is> full"]
    assert page.count("<img ") == page.count("<figure") == 5
    assert "Effects" not in text  # of one key


def test_links_lead_to_pages_that_exist_and_points_of_other_settings_are_left_out(swept: Swept, tmp_path: Path) -> None:
    own = swept.copy(tmp_path)
    table = [*csv.DictReader(own.index.open())]
    table[3]["set"] = "vefl.round_s=3"
    write_rows(own.index, table)
    (own.out / swept.runs[50, 1].path.name / "report.html").write_text("a page")
    for path in (write_sweep_report(own.index), write_sweep_report(own.index, tmp_path / "elsewhere.html")):
        page = Elements(path.read_text())
        links = [a["href"] for tag, a in page.found if tag == "a" and a.get("href", "#")[0] != "#"]
        assert [(path.parent / str(link)).read_text() for link in links] == ["a page"]
        assert "1 points of other settings are left out" in page.text
        assert "all 3 runs are done" in page.text


def test_a_page_has_no_scripts_and_asks_for_nothing(swept: Swept) -> None:
    page = sweep_report(SweepSource(swept.index), swept.index.parent)
    found = Elements(page).found
    assert [attributes for tag, attributes in found if tag == "script"] == [{"type": "text/plain", "id": "data"}]
    assert {str(attributes["src"])[:26] for _, attributes in found if "src" in attributes} == {SVG}
    assert not [attributes for _, attributes in found if "style" in attributes]
    assert [tag for tag, _ in found].count("style") == 1
    assert "default-src 'none'; script-src ; style-src 'sha256-" in page
    assert "img-src data:; base-uri 'none'" in page


def test_nothing_in_the_table_acts(swept: Swept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = swept.copy(tmp_path)
    (tmp_path / "evil_part.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    own.change(**{"error": ATTACK, "set": ATTACK, "version": ATTACK, "scheme.kind": "evil_part:Scheme", ATTACK: "1"})
    rows = own.index.read_text().replace("50,1,", '"$\\frac{x <script>hit=1</script>",1,', 1)
    own.index.write_text(rows.replace("evil_part:Scheme", "evil_part:Other", 1))  # so that it is a name of lines
    page = sweep_report(SweepSource(own.index), own.index.parent)
    found = Elements(page).found
    assert "evil_part:Scheme" in page
    assert [attributes for tag, attributes in found if tag == "script"] == [{"type": "text/plain", "id": "data"}]
    assert {str(attributes["src"])[:26] for tag, attributes in found if tag == "img"} == {SVG}
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    assert "evil_part" not in sys.modules


@pytest.mark.parametrize("name", ["../other", "/etc", "..", "."])
def test_a_run_is_only_searched_beside_the_sweep(swept: Swept, tmp_path: Path, name: str) -> None:
    own = swept.copy(tmp_path)
    copytree(swept.runs[50, 1].path, tmp_path / "other")
    own.change(run=name)
    assert {point.state for point in SweepSource(own.index).points} == {"missing", "failed"}


def test_damaged_and_missing_runs_are_named(swept: Swept, tmp_path: Path) -> None:
    own = swept.copy(tmp_path)
    (own.out / swept.runs[50, 1].path.name / "tables" / "rounds.parquet").write_bytes(b"nothing")
    rmtree(own.out / swept.runs[50, 2].path.name)
    source = SweepSource(own.index)
    assert sorted(point.state for point in source.points) == ["damaged", "done", "failed", "missing"]
    assert "rounds.parquet" in next(point.error for point in source.points if point.state == "damaged")
    assert "2 of 4 runs failed or are damaged" in sweep_report(source, tmp_path)


def test_keys_that_vary_together_are_one_axis(swept: Swept, tmp_path: Path) -> None:
    own = swept.copy(tmp_path)
    run = swept.runs[50, 1].path.name
    rows = [f"{v},{prbs},{prbs // 6},1,{run},done" for v in "AB" for prbs in (6, 12)]
    own.index.write_text("\n".join(["variant,radio.prbs,radio.antennas,seed,run,status", *rows]))
    groups = SweepSource(own.index).chart("cost", "radio.prbs").groups
    assert [(group.line, group.x) for group in groups] == [("A", 6), ("A", 12), ("B", 6), ("B", 12)]


def test_a_comparison_has_a_page_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(COMPARED)
    sweep = load_sweep(tmp_path / "both.toml", seeds=[1])
    for point in sweep.points:
        vefl_sim.simulate(point.experiment, out=tmp_path)
    comparison = Comparison.of(sweep, tmp_path)
    comparison.write()
    assert call("report", comparison.path).stdout == f"{comparison.path / 'report.html'}\n"
    page = (comparison.path / "report.html").read_text()
    assert "2 variants, 1 seed: all 2 runs are done." in Elements(page).text
    assert [row[0] for row in cells(page, "Means over seeds")] == ["A", "B & <b>"]
    assert "cost per round, CDF" in Elements(page).text
    result = call("trace", comparison.path)
    assert result.returncode == 2
    for compared in comparison.runs:
        assert f"{compared.run.path.resolve()} ({compared.label}, seed 1)" in result.stderr


def test_a_sweep_is_found_by_folder_name_and_file(swept: Swept, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    for name in (swept.index.parent, "tiny", tmp_path / "tiny.toml"):
        assert find_table(str(name), swept.out) == swept.index
    assert find_table(str(swept.runs[50, 1].path)) is None
    (tmp_path / "one.toml").write_text("[run]\nrounds = 2\n")
    with pytest.raises(BadInput, match=r"one\.toml is one experiment: name its run directory"):
        find_table(str(tmp_path / "one.toml"), tmp_path)
    with pytest.raises(BadInput, match=r"tiny\.toml has no points in .*: run it first"):
        find_table(str(tmp_path / "tiny.toml"), tmp_path)


@pytest.mark.parametrize("command", ["trace", "resume"])
def test_a_command_for_a_run_lists_the_runs_of_a_sweep(swept: Swept, command: str, tmp_path: Path) -> None:
    words = [f"(vefl.budget={budget}, seed {seed})" for budget, seed in swept.runs]
    for name, cwd, before in [
        ("tiny", swept.out.parent, "runs/"),
        ("runs/sweeps/tiny", swept.out.parent, "runs/"),
        ("tiny.toml", swept.out.parent, "runs/"),
        (str(swept.index.parent), tmp_path, f"{swept.out.resolve()}/"),
    ]:
        result = call(command, name, cwd=cwd)
        assert (result.returncode, result.stdout) == (2, "")
        [line] = result.stderr.splitlines()
        assert line.startswith(f"error: {name} is a sweep or comparison, not a run: choose one of its runs")
        runs = [f"{before}{run.path.name} {own}" for run, own in zip(swept.runs.values(), words, strict=True)]
        whole = " To complete all of them, run its TOML file again." if command == "resume" else ""
        assert line.endswith(f": {', '.join(runs)}.{whole}")  # not the point that failed before it had a directory
        assert call("verify", runs[0].split()[0], cwd=cwd).returncode == 0


def test_of_many_runs_some_are_listed(swept: Swept, tmp_path: Path) -> None:
    own = swept.copy(tmp_path)
    rows = [f"{number},1,a-{number},done" for number in range(15)]
    for number in range(14):
        (own.out / f"a-{number}").mkdir()
        (own.out / f"a-{number}" / "resolved.toml").touch()
    own.index.write_text("\n".join(["radio.prbs,seed,run,status", *rows, "99,1,../runs/a-1,done"]))
    with pytest.raises(RunNotFound) as error:
        find_run("tiny", own.out)
    assert str(error.value).count("a-") == 12
    assert str(error.value).endswith("a-11 (radio.prbs=11, seed 1) … and 2 more, which `report tiny` lists.")
    own.change(run="a-1", seed="")
    with pytest.raises(RunNotFound, match=r"choose one of its runs: .*a-1"):
        find_run("tiny", own.out)
    own.change(run="")
    with pytest.raises(RunNotFound, match="and none of its runs is there: run it first"):
        find_run("tiny", own.out)
    copytree(swept.runs[50, 1].path, own.out / "tiny-1a2b3c4d")
    assert find_run("tiny", own.out).path.name == "tiny-1a2b3c4d"  # a run comes before a sweep
    page = call("report", "tiny", "--out", own.out)
    assert page.stdout.strip() == str(own.out / "tiny-1a2b3c4d" / "report.html")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"run,seed\n", b"\x00\xff,\n1"])
def test_a_table_that_is_none_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index.csv").write_bytes(content)
    with pytest.raises(BadInput, match=r"index\.csv (cannot be read|is not the table of a sweep)") as error:
        SweepSource(tmp_path / "index.csv")
    assert len(error.value.problems) == 1


def two_keys(swept: Swept, folder: Path, missing: int = 0) -> SweepSource:
    """A sweep of two keys and two seeds whose points are the three runs in turn; the last points may be missing."""
    own = swept.copy(folder)
    names = [run.path.name for run in swept.runs.values()]
    places = [(budget, prbs, seed) for budget in (50, 1000) for prbs in (5, 10) for seed in (1, 2)]
    rows = [
        {"vefl.budget": budget, "radio.prbs": prbs, "seed": seed, "run": names[number % 3], "status": "done"}
        for number, (budget, prbs, seed) in enumerate(places)
    ]
    for row in rows[len(rows) - missing :]:
        row |= {"run": "", "status": "waiting"}
    write_rows(own.index, rows)
    return SweepSource(own.index)


def test_the_effects_of_two_keys(swept: Swept, tmp_path: Path) -> None:
    source = two_keys(swept, tmp_path)
    page = sweep_report(source, tmp_path)
    label = "Effects on mean cost of a round"
    rows = cells(page, label)
    assert all(row[1] in shares for row, shares in zip(rows, cells(page, "Shares of the variance"), strict=True))
    assert page.count("<details open>") == 1
    assert [(row[0], row[2]) for row in rows] == [
        ("budget per round (Ξ)", "50 → 1000"),
        ("pRBs (Z)", "5 → 10"),
        ("budget per round (Ξ) × pRBs (Z)", "50 → 1000; 5 → 10"),
        ("seeds", "–"),
        ("rest", "–"),
    ]
    assert sum(float(row[1].removesuffix(" %")) for row in rows) == pytest.approx(100, abs=0.3)
    cost = {
        (p.parameters["vefl.budget"], p.parameters["radio.prbs"], p.seed): p.measured.rounds["cost"].mean()
        for p in source.points
        if p.measured
    }
    wanted = mean(cost[1000, prbs, seed] - cost[50, prbs, seed] for prbs in (5, 10) for seed in (1, 2))
    assert float(rows[0][3].split(" ")[0].replace("−", "-")) == pytest.approx(wanted, abs=0.06)
    assert "With 2 seeds, one of " in page
    assert "figure.detect" not in page  # a page has no [figure]


def test_effects_of_an_incomplete_sweep(swept: Swept, tmp_path: Path) -> None:
    text = Elements(sweep_report(two_keys(swept, tmp_path, missing=1), tmp_path)).text
    assert "Not used, because points are missing: seed 2." in text
    few = Elements(sweep_report(two_keys(swept, tmp_path / "few", missing=5), tmp_path)).text
    assert "but 5 of 8 points are missing" in few
