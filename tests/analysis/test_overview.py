"""The overview of a run, which `figure RUN` draws."""

from pathlib import Path
from shutil import copytree

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import vefl_sim
from tests.analysis.figures.test_figure_drawing import main_exits
from tests.sweep.results.stored import TINY
from vefl_sim.analysis.overview import _draw, draw_overview
from vefl_sim.core.errors import BadInput, RunNotFound
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import load_sweep


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("overview")
    (folder / "tiny.toml").write_text(TINY)
    return vefl_sim.simulate(load_sweep(folder / "tiny.toml").points[0].experiment, out=folder)


def panels(run: Run, round: int | None = None) -> dict[str, Axes]:
    """The panels of the overview by title."""
    figure = Figure(layout="constrained")
    _draw(figure, run, round)
    return {axes.get_title(): axes for axes in figure.axes}


def test_the_command_writes_into_the_run_or_a_folder(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Path(copytree(run.path, tmp_path / run.path.name))
    main_exits(["figure", str(own)], 0)
    assert capsys.readouterr().out == f"in {own}: overview.pdf, overview.png\n"
    main_exits(["figure", run.path.name[:6], "--out", str(tmp_path), "--to", str(tmp_path / "here")], 0)
    assert {file.name for file in (tmp_path / "here").iterdir()} == {"overview.png", "overview.pdf"}
    assert (own / "overview.png").read_bytes() == (tmp_path / "here" / "overview.png").read_bytes()
    main_exits(["verify", str(own)], 0)


def test_every_vehicle_is_drawn_where_it_was_and_as_what_it_did(run: Run) -> None:
    drawn = panels(run)
    assert list(drawn) == ["Round 1, at 0 s: CVs by outcome", "Delivered share of the orders", "Paid to the vehicles"]
    points = {group.get_label(): group.get_offsets() for group in drawn["Round 1, at 0 s: CVs by outcome"].collections}
    mobility, vehicles = run.table("mobility"), run.vehicles
    scene = mobility[mobility["time_ns"] == 0].set_index("vehicle")
    first = vehicles[vehicles["round"] == 1].set_index("cv")["state"]
    labels = {"ordered, delivered": "delivered", "ordered, lost": "lost", "passed over": "passed_over"}
    for label, offsets in points.items():
        state = labels.get(str(label), str(label))
        cvs = first[first == state].index if state != "out of coverage" else scene.index.difference(first.index)
        assert {(x, y) for x, y in offsets} == set(map(tuple, scene.loc[cvs][["x_m", "y_m"]].to_numpy()))
    assert sum(map(len, points.values())) == len(scene)
    heights = [bar.get_height() for bar in drawn["Paid to the vehicles"].patches]  # type: ignore[attr-defined]
    assert heights == run.rounds["cost"].tolist()


def test_another_round_can_be_chosen(run: Run) -> None:
    assert next(iter(panels(run, 2))) == "Round 2, at 5 s: CVs by outcome"
    with pytest.raises(BadInput, match="has no round 3: choose one from 1 to 2"):
        draw_overview(run, round=3)


def test_without_positions_the_map_is_left_out(run: Run, tmp_path: Path) -> None:
    copy = Run(copytree(run.path, tmp_path / "copy"))
    (copy.path / "tables" / "mobility.parquet").unlink()
    assert list(panels(copy)) == ["Delivered share of the orders", "Paid to the vehicles"]


def test_bad_input_is_one_sentence(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_exits(["figure", str(run.path), "--set", "figure.kind=cost"], 2)
    assert "--set, --seeds and --results have no effect on the overview of a run" in capsys.readouterr().err
    main_exits(["figure", "nothing", "--out", str(tmp_path)], 2)
    assert "no such run directory, and no run in" in capsys.readouterr().err
    main_exits(["figure", str(tmp_path)], 2)
    assert "is not a run directory" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    main_exits(["figure", str(run.path), "--to", str(tmp_path / "file")], 2)
    assert "choose another folder" in capsys.readouterr().err


def test_a_run_that_has_just_begun_or_is_damaged(run: Run, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "resolved.toml").write_text((run.path / "resolved.toml").read_text())
    with pytest.raises(BadInput, match=r"\(unfinished\) has no finished rounds"):
        draw_overview(Run(begun))
    damaged = Run(copytree(run.path, tmp_path / "damaged"))
    (damaged.path / "tables" / "rounds.parquet").unlink()
    with pytest.raises(RunNotFound, match=r"rounds\.parquet is missing"):
        draw_overview(damaged)
