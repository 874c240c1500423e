"""Figures from stored results, together with runs and with reference values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.figures.invented_runs import pretend, run, sweep
from tests.analysis.figures.test_figure_drawing import main_exits
from tests.sweep.results.stored import store_result
from vefl_sim.analysis.figures.drawing import draw_figure, require_drawable
from vefl_sim.analysis.figures.report import drawing_lines
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.sweep.results.store import Store

SWEEP = "[sweep]\nseeds = [1, 2]\nradio.prbs = [6, 12]\n"


def stored(tmp_path: Path, text: str = SWEEP, **accuracies: list[float | None]) -> Store:
    """Results of some points, by number of pRBs and seed."""
    for point in sweep(tmp_path, text).points:
        if own := accuracies.get(f"z{point.values['radio.prbs']}s{point.seed}"):
            store_result(tmp_path / "results", point, own)
    return Store(tmp_path / "results")


def lines_of(tmp_path: Path, text: str, store: Store) -> list[str]:
    return [*drawing_lines(draw_figure(sweep(tmp_path, text), tmp_path, tmp_path / "to", store), tmp_path)]


def test_a_run_wins_over_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4])
    pretend(monkeypatch, {(6, 1): run([0.5, 0.6])})
    lines = lines_of(tmp_path, SWEEP, store)
    assert lines[:2] == [
        "s: from 2 of 4 points: 1 from runs, 1 from stored results",
        "  missing: radio.prbs = 12, seed 1 (not started)",
    ]
    rows = pd.read_csv(tmp_path / "to" / "s_accuracy.csv")
    assert rows["mean"].tolist() == pytest.approx([0.4, 0.5])


@pytest.mark.parametrize("kind", ["accuracy", "failure-rate", "sojourn", "p_suc", "cost", "total-cost", "table"])
def test_every_kind_is_drawn_from_results(tmp_path: Path, kind: str) -> None:
    store = stored(tmp_path, z6s1=[0.1, 0.2], z12s1=[0.3, 0.4])
    assert lines_of(tmp_path, f'{SWEEP}[figure]\nkind = "{kind}"\n', store)[0] == (
        "s: from 2 of 4 points: 0 from runs, 2 from stored results"
    )


def test_stale_and_damaged_results_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4])
    (tmp_path / "results" / "bad.json.xz").write_bytes(b"")
    monkeypatch.setattr("vefl_sim.sweep.results.probes.Probes.is_stale", lambda *_, **__: True)
    lines = lines_of(tmp_path, SWEEP, store)
    assert lines[0].endswith("2 from stored results, 2 of them stale")
    assert "  stale, because the code gives other results now, or was not probed: radio.prbs = 6, seed 1" in lines
    assert any(line.startswith("  not used: ") and "bad.json.xz" in line for line in lines)


def test_the_command_finds_results_beside_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path, z6s1=[0.1, 0.2])
    where = ["figure", str(tmp_path / "s.toml"), "--out", str(tmp_path / "runs")]
    main_exits(where, 1)
    captured = capsys.readouterr()
    assert "from 1 of 4 points: 0 from runs, 1 from stored results" in captured.out
    assert captured.err == "error: s: its figure is incomplete: 3 of 4 points are missing (listed above).\n"
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    main_exits(where, 2)
    assert "none of its 4 points is done" in capsys.readouterr().err
    main_exits([*where, "--results", str(tmp_path / "elsewhere")], 1)
    capsys.readouterr()
    main_exits([*where, "--results", str(tmp_path / "nowhere")], 2)
    assert "nowhere is not a folder" in capsys.readouterr().err


def test_nothing_in_the_store_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none of its 4 points is done in .* or stored in .*results"):
        draw_figure(sweep(tmp_path, SWEEP), tmp_path, None, Store(tmp_path / "results"))


REFERENCE = '[figure]\nmarks = [1, 2, 9]\nreference = { "Z = 6" = [0.5, nan, 0.9], "Z = 12" = [0.25, 0.35, 0.45] }\n'


def test_reference_values_are_printed_with_ours(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, SWEEP + REFERENCE, stored(tmp_path, z6s1=[0.1, 0.2], z6s2=[0.3, 0.4]))
    cells = {line.split("  ")[0]: line.split()[3:] for line in lines if line.startswith("Z = ") and "[" in line}
    assert cells == {
        "Z = 6": ["0.2000", "±0.1414", "[0.5000]", "0.3000", "±0.1414", "–", "[0.9000]"],
        "Z = 12": ["–", "[0.2500]", "–", "[0.3500]", "–", "[0.4500]"],
    }
    marks = pd.read_csv(tmp_path / "to" / "s_accuracy_marks.csv").set_index(["line", "x"])
    assert marks.loc[("Z = 6", 1), ["mean", "reference"]].tolist() == pytest.approx([0.2, 0.5])
    assert np.isnan(marks.loc[("Z = 6", 2), "reference"])
    assert np.isnan(marks.loc[("Z = 12", 9), "mean"])


def test_reference_values_are_hollow_markers_in_the_colour_of_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    drawn = []
    original_plot = Axes.plot

    def plot(self: Axes, *values: object, **style: object) -> object:
        drawn.append((values, style))
        return original_plot(self, *values, **style)  # type: ignore[arg-type]

    monkeypatch.setattr(Axes, "plot", plot)
    lines_of(tmp_path, SWEEP + REFERENCE, stored(tmp_path, z6s1=[0.1, 0.2], z12s1=[0.3, 0.4]))
    colours = [style["color"] for values, style in drawn if "color" in style]
    hollow = [(values[0], values[1], style["mec"], style["mfc"]) for values, style in drawn if "mfc" in style]
    assert hollow[0] == (1, 0.5, colours[0], "none")
    assert [(x, y) for x, y, colour, _ in hollow if colour == colours[1]] == [(1, 0.25), (2, 0.35), (9, 0.45)]


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (
            'marks = [1]\nreference = { "Z = 7" = [0.5] }',
            "'Z = 7' is not a line of this figure: did you mean 'Z = 6'?",
        ),
        ('marks = [1, 2]\nreference = { "Z = 6" = [0.5] }', "'Z = 6' has 1 values, but figure.marks has 2: write one"),
        (
            'kind = "table"\nreference = { "Z = 6" = [0.5] }',
            'figure.reference has no effect with figure.kind = "table"',
        ),
        ('kind = "total-cost"\nmarks = [1]\nreference = { "" = [0.5] }', "figure.reference is for lines, not for bars"),
        ('marks = [1]\nreference = { "Z = 6" = 0.5 }', "figure.reference"),
    ],
)
def test_bad_references_get_one_sentence(tmp_path: Path, figure: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        require_drawable(sweep(tmp_path, f"{SWEEP}[figure]\n{figure}\n"))
    assert message in str(error.value)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(("kind", "share"), [("pdpc", 1 / 2), ("random", 1 / 2), ("fdpc", 2 / 3), ("fedbuff", 2 / 3)])
def test_p_suc_is_counted_as_the_paper_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, share: float
) -> None:
    own = run(costs=[1.0, 1.0, 1.0])
    own.rounds["p_suc"] = pd.array([1.0, 0.9, None], dtype="Float64")  # two cases
    own.rounds["p_suc_with_ineligible"] = pd.array([1.0, 0.99, 0.5], dtype="Float64")
    pretend(monkeypatch, {(6, 1): own})
    figure = '[figure]\nkind = "p_suc"\ncount = "paper"\nmarks = [0.99]\n'
    drawing = draw_figure(sweep(tmp_path, f'[scheme]\nkind = "{kind}"\n[sweep]\nradio.prbs = [6]\n{figure}'), tmp_path)
    assert drawing.marks["mean"].tolist() == pytest.approx([share])
