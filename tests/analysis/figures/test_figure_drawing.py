"""The command `figure`: from a TOML file to pictures, numbers and a report."""

import sys
from pathlib import Path

import pandas as pd
import pytest

import vefl_sim
from tests.analysis.figures.invented_runs import pretend, run, sweep
from tests.sweep.results.stored import TINY
from vefl_sim.analysis.figures.curves import curves
from vefl_sim.analysis.figures.drawing import draw_figure
from vefl_sim.analysis.figures.layout import ResultSources, groups, layout
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.analysis.figures.panel import Curves
from vefl_sim.analysis.figures.report import drawing_lines
from vefl_sim.analysis.figures.request import request_from
from vefl_sim.analysis.figures.style import line_styles
from vefl_sim.cli.main import main
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.points import load_sweep

ENDINGS = {".pdf", ".png", ".csv", "_differences.csv"}
SWEEP = "[sweep]\nseeds = [1, 2, 3]\nradio.prbs = [6, 12]\n"
RUNS = {
    (prbs, seed): run([0.1 * seed, 0.2, 0.3], [prbs, 2.0 * prbs, 3.0], fractions=[1.0, 0.5])
    for prbs, seed in [(6, 1), (6, 2), (12, 1)]
}


def endings(folder: Path, name: str = "s_accuracy") -> set[str]:
    return {file.name.removeprefix(name) for file in folder.iterdir() if file.is_file()}


def test_real_runs_become_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "tiny.toml", tmp_path / "runs"
    file.write_text(TINY)
    points = load_sweep(file).points
    runs = {(p.values["vefl.budget"], p.seed): vefl_sim.simulate(p.experiment, out=out) for p in points[:3]}
    main_exits(["figure", str(file), "--out", str(out)], 1)
    report, problem = capsys.readouterr()
    assert problem == "error: tiny: its figure is incomplete: 1 of 4 points is missing (listed above).\n"
    assert "tiny: from 3 of 4 points" in report
    assert "missing: vefl.budget = 1000, seed 2 (not started)" in report
    folder = out / "figures" / "tiny"
    assert endings(folder, "tiny_cost") == ENDINGS | {"_marks.csv"}
    marks = pd.read_csv(folder / "tiny_cost_marks.csv").set_index("line")
    shares = [(runs[50, seed].rounds["cost"] <= 100).mean() for seed in (1, 2)]
    assert marks.loc["Ξ = 50", "mean"] == pytest.approx(sum(shares) / 2)
    assert marks["seeds"].to_dict() == {"Ξ = 50": 2, "Ξ = 1000": 1}
    (difference,) = pd.read_csv(folder / "tiny_cost_differences.csv").to_dict("records")
    expected = runs[1000, 1].rounds["cost"].mean() - runs[50, 1].rounds["cost"].mean()
    assert (difference["pairs"], difference["difference"]) == (1, pytest.approx(expected))


def main_exits(arguments: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code


def test_nothing_done_is_one_sentence_and_the_others_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('[run]\nname = "first"\nrounds = 2\n[sweep]\nradio.prbs = [7]\n')
    second.write_text('[run]\nname = "second"\nrounds = 2\n[sweep]\nradio.prbs = [6]\n')
    pretend(monkeypatch, {(6, 1): run([0.1, 0.4])})
    main_exits(["figure", str(first), str(second), "--out", str(tmp_path), "--to", str(tmp_path / "here")], 2)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "first.toml: first: none of its 1 points is done" in captured.err
    assert endings(tmp_path / "here", "second_accuracy") == ENDINGS


def test_two_files_of_one_name_do_not_overwrite_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "first.toml", tmp_path / "second.toml"]
    for file in files:
        file.write_text('[run]\nname = "same"\nrounds = 2\n[sweep]\nradio.prbs = [6]\n')
    pretend(monkeypatch, {(6, 1): run([0.1, 0.4])})
    main_exits(["figure", *map(str, files), "--out", str(tmp_path)], 2)
    assert "have the same run.name, 'same'" in capsys.readouterr().err


def test_a_bad_figure_is_reported_before_anything_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.replace("marks", "mark"))
    main_exits(["sweep", str(file), "--out", str(tmp_path / "runs")], 2)
    assert capsys.readouterr().err.startswith("error: figure.mark is not a known key of [figure]; the nearest is")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("", "accuracy"),
        ('x = "time"\ntitle = "5 $ each"', "accuracy_time"),
        ('kind = "failure-rate"\npanels = "radio.prbs"\nlines = []', "failure-rate"),
        ('kind = "cost"\nx_range = [0, 5]\ny_range = [0, 1]', "cost"),
        ('kind = "delivered"\nx = "radio.prbs"\nx_scale = "log"\nx_range = [5, 20]', "delivered_radio-prbs"),
        ('kind = "energy"\nx = "radio.prbs"', "energy_radio-prbs"),
        ('kind = "delay"', "delay"),
        ('kind = "loss"', "loss"),
        ('kind = "total-cost"', "total-cost"),
        ('kind = "total-energy"\nx = "round"', "total-energy_round"),
    ],
)
def test_every_kind_is_drawn_into_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: str, name: str
) -> None:
    pretend(monkeypatch, RUNS)
    draw_figure(sweep(tmp_path, f"{SWEEP}[figure]\n{figure}\n"), tmp_path, tmp_path / "here")
    assert endings(tmp_path / "here", f"s_{name}") == ENDINGS
    assert min(file.stat().st_size for file in (tmp_path / "here").glob("s_*.p*")) > 5_000


def test_values_of_text_are_drawn_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(name, 1): run([0.1, 0.4]) for name in ("a scheme with a long name", "another of that kind")})
    variants = "".join(
        f'[[compare]]\nlabel = "{name}"\n' for name in ("a scheme with a long name", "another of that kind")
    )
    draw_figure(sweep(tmp_path, f'[figure]\nx = "variants"\n{variants}'), tmp_path, tmp_path / "here")
    assert endings(tmp_path / "here", "s_accuracy_variants") == ENDINGS


def test_a_point_without_the_measure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run([0.1, 0.4]), (6, 2): run(costs=[1.0, 2.0])})
    loaded = sweep(tmp_path, SWEEP + '[figure]\nx = "radio.prbs"\n')
    drawing = draw_figure(loaded, tmp_path)
    assert "  without this measure: radio.prbs = 6, seed 2" in drawing_lines(drawing, tmp_path)
    assert drawing.incomplete == "s: its figure is incomplete: 4 of 6 points are missing (listed above)."


def test_lines_that_lie_on_each_other_are_dashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same, other = [0.1, 0.5, 0.6, 0.7, 0.7], [0.1, 0.3, 0.4, 0.5, 0.7]
    pretend(monkeypatch, {(6, 1): run(same), (7, 1): run(other), (8, 1): run([*same[:4], 0.69]), (9, 1): run(same)})
    loaded = sweep(tmp_path, "[sweep]\nradio.prbs = [6, 7, 8, 9]\n")
    request = request_from(loaded.figure)
    lines = groups(loaded, layout(loaded, request), ResultSources(tmp_path))
    drawn = Curves(curves(lines, request), lines, request, "")
    assert drawn.covered == {"Z = 6": 0, "Z = 7": 0, "Z = 8": 1, "Z = 9": 2}
    styles = line_styles(drawn.lines, drawn.covered)
    assert [style["ls"] for style in styles[:2]] == ["-", "-"]
    assert len({str(style["ls"]) for style in styles}) == 3
    assert len({style["marker"] for style in styles}) == 4


def test_the_same_runs_make_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, RUNS)
    for place in ("first", "second"):
        draw_figure(sweep(tmp_path, SWEEP), tmp_path, tmp_path / place)
    for ending in ENDINGS:
        first, second = ((tmp_path / place / f"s_accuracy{ending}").read_bytes() for place in ("first", "second"))
        assert first == second
    assert b"CreationDate" not in (tmp_path / "first" / "s_accuracy.pdf").read_bytes()


def test_the_report_has_means_and_paired_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finals = {(6, 1): 0.50, (6, 2): 0.60, (6, 3): 0.70, (12, 1): 0.60, (12, 2): 0.71, (12, 3): 0.82}
    pretend(monkeypatch, {key: run([0.1, final]) for key, final in finals.items()})
    lines = [*drawing_lines(draw_figure(sweep(tmp_path, SWEEP + "[figure]\nmarks = [1]\n"), tmp_path), tmp_path)]
    assert lines[0] == "s: from all 6 points"
    assert [line.split() for line in lines if line.startswith("Z = ")] == [
        ["Z", "=", "6", "0.1000", "±0.0000"],
        ["Z", "=", "12", "0.1000", "±0.0000"],
        ["Z", "=", "6", "0.6000", "±0.1000"],
        ["Z", "=", "12", "0.7100", "±0.1100", "+0.1100", "±0.0248*"],  # 0.10, 0.11, 0.12; t = 4.30265
    ]


def test_many_missing_points_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run([0.1])})
    loaded = sweep(tmp_path, "[sweep]\nseeds = [1, 2]\nradio.prbs = [6, 7, 8, 9, 10, 11, 12, 13]\n")
    lines = [*drawing_lines(draw_figure(loaded, tmp_path), tmp_path)]
    assert sum(line.startswith("  missing: ") for line in lines) == 13
    assert "  missing: 3 more" in lines
    fewer = [*drawing_lines(draw_figure(loaded, tmp_path), tmp_path, 4)]
    assert "  missing: 11 more" in fewer


def test_runs_that_did_not_learn_have_no_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run(costs=[1.0, 2.0])})
    with pytest.raises(BadInput, match="s: its runs have no accuracy, because they do not train a model"):
        draw_figure(sweep(tmp_path, SWEEP), tmp_path)
    with pytest.raises(BadInput, match="s: its runs have no delay, because no update was delivered"):
        draw_figure(sweep(tmp_path, SWEEP + '[figure]\nkind = "delay"\nx = "radio.prbs"\n'), tmp_path)
    assert not (tmp_path / "figures").exists()


def test_runs_that_diverged_are_drawn_up_to_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run(losses=[1.0, float("inf")]), (6, 2): run(losses=[2.0, float("inf")])})
    drawing = draw_figure(sweep(tmp_path, SWEEP + '[figure]\nkind = "loss"\n'), tmp_path)
    assert pd.read_csv(drawing.files[0].with_suffix(".csv"))["mean"].tolist() == [1.5]


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run([0.1])})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"pip install 'vefl_sim\[report\]'"):
        draw_figure(sweep(tmp_path, SWEEP), tmp_path)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {(6, 1): run([0.1])})
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="choose another --to"):
        draw_figure(sweep(tmp_path, SWEEP), tmp_path, tmp_path / "file" / "deep")


def test_symbols_are_set_as_formulas_and_dollars_stay() -> None:
    assert with_symbols("u_max = 3 m/s") == r"$u_{\mathrm{max}}$ = 3 m/s"
    assert with_symbols("my_scheme") == "my_scheme"
    assert with_symbols("5 $ or {6 $") == r"5 \$ or {6 \$"
    assert with_symbols(r"$\alpha$") == r"$\alpha$"
