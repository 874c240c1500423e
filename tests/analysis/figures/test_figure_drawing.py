"""The command `figure`: from a TOML file to pictures, numbers and a report."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import vefl_sim
from tests.analysis.figures.conftest import DrawFigure
from tests.analysis.figures.invented_runs import pretend, run, sweep
from tests.sweep.results.stored import TINY, store_result
from vefl_sim.analysis.draw import draw as draw_anything
from vefl_sim.analysis.figures.drawing import draw_figure, drawing_lines
from vefl_sim.analysis.figures.names import with_symbols
from vefl_sim.cli.main import main
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.comparison import Compared, Comparison
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.results.store import Store

ENDINGS = {".pdf", ".png", ".csv", "_differences.csv"}
SWEEP = "[sweep]\nseeds = [1, 2, 3]\nradio.prbs = [6, 12]\n"
RUNS = {
    (prbs, seed): run([0.1 * seed, 0.2, 0.3], [prbs, 2.0 * prbs, 3.0], fractions=[1.0, 0.5])
    for prbs, seed in [(6, 1), (6, 2), (12, 1)]
}


def endings(folder: Path, name: str = "s_accuracy") -> set[str]:
    return {file.name.removeprefix(name) for file in folder.iterdir() if file.is_file()}


def main_exits(arguments: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code


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
    # from Python, everything that has a figure
    first = runs[50, 1]
    assert {path.name for path in draw_anything(first)} == {"overview.png", "overview.pdf"}
    assert [path.parent for path in draw_anything(first.path, to=tmp_path / "to")] == [tmp_path / "to"] * 2
    compared = Comparison(out, (Compared("one", 1, first), Compared("two", 1, runs[1000, 1])))
    assert draw_anything(compared, to=tmp_path / "to") == [tmp_path / "to" / "comparison.png"]
    for what in (load_sweep(file), file, str(file)):
        assert {path.suffix for path in draw_anything(what, out)} >= {".png", ".pdf", ".csv"}


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
    first.write_text(second.read_text())  # two files of one name do not overwrite each other
    main_exits(["figure", str(first), str(second), "--out", str(tmp_path)], 2)
    assert "have the same run.name, 'second'" in capsys.readouterr().err


def test_a_bad_figure_is_reported_before_anything_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.replace("marks", "mark"))
    main_exits(["sweep", str(file), "--out", str(tmp_path / "runs")], 2)
    assert capsys.readouterr().err.startswith("error: figure.mark is not a known key of [figure]; the nearest is")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ('x = "time"\ntitle = "5 $ each"', "accuracy_time"),
        ('kind = "failure-rate"\npanels = "radio.prbs"\nlines = []', "failure-rate"),
        ('kind = "cost"\nx_range = [0, 5]\ny_range = [0, 1]', "cost"),
        ('kind = "delivered"\nx = "radio.prbs"\nx_scale = "log"\nx_range = [5, 20]', "delivered_radio-prbs"),
        ('kind = "delay"', "delay"),
        ('kind = "total-cost"', "total-cost"),
        ('kind = "total-energy"\nx = "round"', "total-energy_round"),
    ],
)
def test_every_kind_is_drawn_into_its_own_files(draw: DrawFigure, tmp_path: Path, figure: str, name: str) -> None:
    draw(RUNS, f"{SWEEP}[figure]\n{figure}\n")
    assert endings(tmp_path / "to", f"s_{name}") == ENDINGS
    assert min(file.stat().st_size for file in (tmp_path / "to").glob("s_*.p*")) > 5_000


def test_values_of_text_are_drawn_side_by_side(draw: DrawFigure, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("a scheme with a long name", "another of that kind")
    ticks: list[list[str]] = []
    original = Axes.set_xticks
    monkeypatch.setattr(Axes, "set_xticks", lambda self, *at, **k: ticks.append([*at[1]]) or original(self, *at, **k))
    variants = "".join(f'[[compare]]\nlabel = "{name}"\n' for name in names)
    draw({(name, 1): run([0.1, 0.4]) for name in names}, f'[figure]\nx = "variants"\n{variants}')
    assert ticks == [[*names]]


def test_a_point_without_the_measure_is_named(draw: DrawFigure, tmp_path: Path) -> None:
    drawing = draw({(6, 1): run([0.1, 0.4]), (6, 2): run(costs=[1.0, 2.0])}, SWEEP + '[figure]\nx = "radio.prbs"\n')
    assert "  without this measure: radio.prbs = 6, seed 2" in drawing_lines(drawing, tmp_path)
    assert drawing.incomplete == "s: its figure is incomplete: 4 of 6 points are missing (listed above)."


def test_the_same_runs_make_the_same_bytes(draw: DrawFigure) -> None:
    first, second = ([file.read_bytes() for file in draw(RUNS, SWEEP).files] for _ in range(2))
    assert first == second
    assert not any(b"CreationDate" in content for content in first)


def test_the_report_has_means_and_paired_differences(draw: DrawFigure, tmp_path: Path) -> None:
    finals = {(6, 1): 0.50, (6, 2): 0.60, (6, 3): 0.70, (12, 1): 0.60, (12, 2): 0.71, (12, 3): 0.82}
    drawing = draw({key: run([0.1, final]) for key, final in finals.items()}, SWEEP + "[figure]\nmarks = [1]\n")
    lines = [*drawing_lines(drawing, tmp_path)]
    assert lines[0] == "s: from all 6 points"
    assert [line.split() for line in lines if line.startswith("Z = ")] == [
        ["Z", "=", "6", "0.1000", "±0.0000"],
        ["Z", "=", "12", "0.1000", "±0.0000"],
        ["Z", "=", "6", "0.6000", "±0.1000"],
        ["Z", "=", "12", "0.7100", "±0.1100", "+0.1100", "±0.0248*"],  # 0.10, 0.11, 0.12; t = 4.30265
    ]


def test_many_missing_points_are_counted(draw: DrawFigure, tmp_path: Path) -> None:
    drawing = draw({(6, 1): run([0.1])}, "[sweep]\nseeds = [1, 2]\nradio.prbs = [6, 7, 8, 9, 10, 11, 12, 13]\n")
    lines = [*drawing_lines(drawing, tmp_path)]
    assert sum(line.startswith("  missing: ") for line in lines) == 13
    assert "  missing: 3 more" in lines
    assert "  missing: 11 more" in drawing_lines(drawing, tmp_path, 4)


def test_runs_that_did_not_learn_have_no_accuracy(draw: DrawFigure, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its runs have no accuracy: they do not train a model"):
        draw({(6, 1): run(costs=[1.0, 2.0])}, SWEEP)
    with pytest.raises(BadInput, match="no update was delivered"):
        draw({(6, 1): run(costs=[1.0, 2.0])}, SWEEP + '[figure]\nkind = "delay"\nx = "radio.prbs"\n')
    assert not (tmp_path / "to").exists()


def test_runs_that_diverged_are_drawn_up_to_there(draw: DrawFigure) -> None:
    runs = {(6, 1): run(losses=[1.0, float("inf")]), (6, 2): run(losses=[2.0, float("inf")])}
    drawing = draw(runs, SWEEP + '[figure]\nkind = "loss"\n')
    assert pd.read_csv(drawing.files[0].with_suffix(".csv"))["mean"].tolist() == [1.5]


def test_a_folder_that_cannot_be_written_is_one_sentence(draw: DrawFigure, tmp_path: Path) -> None:
    (tmp_path / "to").write_text("")
    with pytest.raises(BadInput, match="choose another folder"):
        draw({(6, 1): run([0.1])}, SWEEP)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("u_max = 3 m/s", r"$u_{\mathrm{max}}$ = 3 m/s"),
        ("selected CVs (|C_k|)", r"selected CVs ($|\mathcal{C}_k|$)"),
        ("Z = 6, N", "$Z$ = 6, $N$"),
        ("Zoo, my_scheme", "Zoo, my_scheme"),
        ("5 $ or {6 $", r"5 \$ or {6 \$"),
        (r"$\alpha$", r"$\alpha$"),
    ],
)
def test_symbols_are_formulas_and_dollars_stay(text: str, shown: str) -> None:
    assert with_symbols(text) == shown


TWO_SEEDS = "[sweep]\nseeds = [1, 2]\nradio.prbs = [6, 12]\n"


def stored(tmp_path: Path, **accuracies: list[float | None]) -> Store:
    """Results of some points, by number of pRBs and seed."""
    for point in sweep(tmp_path, TWO_SEEDS).points:
        if own := accuracies.get(f"z{point.values['radio.prbs']}s{point.seed}"):
            store_result(tmp_path / "results", point, own)
    return Store(tmp_path / "results")


def test_a_run_wins_over_a_result(draw: DrawFigure, tmp_path: Path) -> None:
    drawing = draw({(6, 1): run([0.5, 0.6])}, TWO_SEEDS, stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4]))
    assert [*drawing_lines(drawing, tmp_path)][:2] == [
        "s: from 2 of 4 points: 1 from runs, 1 from stored results",
        "  missing: radio.prbs = 12, seed 1 (not started)",
    ]
    assert pd.read_csv(tmp_path / "to" / "s_accuracy.csv")["mean"].tolist() == pytest.approx([0.4, 0.5])


@pytest.mark.parametrize("kind", ["failure-rate", "sojourn", "p_suc", "cost", "total-cost", "table"])
def test_every_kind_is_drawn_from_results(draw: DrawFigure, tmp_path: Path, kind: str) -> None:
    store = stored(tmp_path, z6s1=[0.1, 0.2], z12s1=[0.3, 0.4])
    drawing = draw(None, f'{TWO_SEEDS}[figure]\nkind = "{kind}"\n', store)
    assert len(drawing.missing) == 2
    assert not any("without this measure" in line for line in drawing_lines(drawing, tmp_path))


def test_stale_and_damaged_results_are_reported(
    draw: DrawFigure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4])
    (tmp_path / "results" / "bad.json.xz").write_bytes(b"")
    monkeypatch.setattr("vefl_sim.sweep.results.probes.Probes.is_stale", lambda *_, **__: True)
    lines = [*drawing_lines(draw(None, TWO_SEEDS, store), tmp_path)]
    assert lines[0].endswith("2 from stored results, 2 of them stale")
    assert "  stale, because the code gives other results now, or was not probed: radio.prbs = 6, seed 1" in lines
    assert any(line.startswith("  not used: ") and "bad.json.xz" in line for line in lines)


def test_the_command_finds_results_beside_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path, z6s1=[0.1, 0.2])
    where = ["figure", str(tmp_path / "s.toml"), "--out", str(tmp_path / "runs")]
    main_exits(where, 1)
    captured = capsys.readouterr()
    assert "from 1 of 4 points: 0 from runs, 1 from stored results" in captured.out
    assert "3 of 4 points are missing" in captured.err
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    main_exits(where, 2)
    assert "none of its 4 points is done" in capsys.readouterr().err
    main_exits([*where, "--results", str(tmp_path / "elsewhere")], 1)
    main_exits([*where, "--results", str(tmp_path / "nowhere")], 2)
    assert "nowhere is not a folder" in capsys.readouterr().err
    with pytest.raises(BadInput, match=r"none of its 4 points is done in .* or stored in .*results"):
        draw_figure(sweep(tmp_path, TWO_SEEDS), tmp_path, None, Store(tmp_path / "results"))


def test_reference_values_are_printed_and_drawn_with_ours(
    draw: DrawFigure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[tuple[object, ...], dict[str, object]]] = []
    original = Axes.plot
    monkeypatch.setattr(Axes, "plot", lambda self, *at, **k: drawn.append((at, k)) or original(self, *at, **k))
    reference = 'reference = { "Z = 6" = [0.5, nan, 0.9], "Z = 12" = [0.25, 0.35, 0.45] }\n'
    store = stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4])
    lines = [*drawing_lines(draw(None, f"{TWO_SEEDS}[figure]\nmarks = [1, 2, 9]\n{reference}", store), tmp_path)]
    cells = {line.split("  ")[0]: line.split()[3:] for line in lines if line.startswith("Z = ") and "[" in line}
    assert cells == {
        "Z = 6": ["0.2000", "±0.1414", "[0.5000]", "0.3000", "±0.1414", "–", "[0.9000]"],
        "Z = 12": ["–", "[0.2500]", "–", "[0.3500]", "–", "[0.4500]"],
    }
    marks = pd.read_csv(tmp_path / "to" / "s_accuracy_marks.csv").set_index(["line", "x"])
    assert marks.loc[("Z = 6", 1), ["mean", "reference"]].tolist() == pytest.approx([0.2, 0.5])
    assert np.isnan(marks.loc[("Z = 6", 2), "reference"])
    assert np.isnan(marks.loc[("Z = 12", 9), "mean"])
    (colour,) = (style["color"] for _, style in drawn if "color" in style)
    hollow = [(at[0], at[1], style["mec"] == colour) for at, style in drawn if style.get("mfc") == "none"]
    assert hollow == [(1, 0.5, True), (9, 0.9, True), (1, 0.25, False), (2, 0.35, False), (9, 0.45, False)]
