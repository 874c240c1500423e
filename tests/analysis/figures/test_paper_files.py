"""The experiment files of the paper's figures: their points, and which points they share."""

from functools import cache
from pathlib import Path

import pytest

from vefl_sim.analysis.figures.layout import require_drawable
from vefl_sim.sweep.points import Sweep, load_sweep

FOLDER = Path(__file__).parents[3] / "experiments" / "paper"
POINTS = {
    "fig05": 20, "fig07": 40, "fig08": 50, "fig09": 50, "fig10": 40, "fig11": 30, "fig12": 30, "fig13": 15,
    "fig14": 15, "fig15": 50, "fig16": 90, "fig17": 20, "fig18": 20, "table1": 600,
}  # fmt: skip
SHARED = {"table1": 40}  # centralized learning is one run for three α, with four data sets and five seeds


@cache
def paper_sweep(name: str) -> Sweep:
    return load_sweep(FOLDER / f"{name}.toml")


@cache
def digests(name: str) -> frozenset[str]:
    return frozenset(point.digest for point in paper_sweep(name).points)


def with_learning(name: str, kind: str) -> frozenset[str]:
    sweep = load_sweep(FOLDER / f"{name}.toml", [f"learning.kind={kind}"])
    return frozenset(point.digest for point in sweep.points)


@pytest.mark.parametrize(("name", "points"), POINTS.items())
def test_each_loads_and_can_be_drawn(name: str, points: int) -> None:
    assert paper_sweep(name).name == name
    assert len(paper_sweep(name).points) == points
    assert len(digests(name)) == points - SHARED.get(name, 0)
    assert paper_sweep(name).seeds == [1, 2, 3, 4, 5]
    require_drawable(paper_sweep(name))
    text = (FOLDER / f"{name}.toml").read_text()
    assert f"python -m vefl_sim sweep  experiments/paper/{name}.toml" in text
    assert f"python -m vefl_sim figure experiments/paper/{name}.toml" in text


def test_figures_share_runs() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.toml")) == ["base", "claims", *sorted(POINTS)]
    assert digests("fig15") < digests("table1")
    assert digests("fig17") == digests("fig18")
    assert len(digests("fig17") & with_learning("fig15", "none")) == 15  # all but AFA-CD, whose rate differs
    assert digests("fig13") < with_learning("fig12", "none")
    assert digests("fig05") < with_learning("fig10", "none")
    assert len(digests("fig15") & digests("fig16")) == 30  # 20.12 m/s
    assert len(digests("fig14") & digests("fig16")) == 15  # all of PDPC
    assert len(digests("fig10") & digests("fig12")) == 10  # 20.12 m/s and 5 s, in both readings
    assert len(digests("fig10") & digests("fig11")) == 10  # 0.45 m/s and 5 s
    assert len(digests("fig07") & digests("fig08")) == len(digests("fig07") & digests("fig09")) == 10  # λ = 0
    assert len(digests("fig10") & digests("fig08")) == len(digests("fig10") & digests("fig09")) == 10  # λ = 1
    assert len(digests("fig10") & digests("fig15")) == 10


def test_fdpc_and_the_baselines_exist_in_both_readings() -> None:
    for name in ("fig15", "table1"):
        readings = {point.label: point.experiment for point in paper_sweep(name).points}
        for scheme in ("FDPC", "FedProx"):
            paper, fair = (readings[f"{scheme}, {reading}"].aggregation for reading in ("as in the paper", "fair"))
            assert (paper.form, paper.weights_over) == ("models", "coverage")
            assert (fair.form, fair.weights_over) == ("step", None)
        assert readings["AFA-CD, as in the paper"].scheme.rounds
        assert not readings["AFA-CD, fair"].scheme.rounds


def test_the_files_use_the_settings_of_the_paper() -> None:
    for name in POINTS:
        for point in paper_sweep(name).points:
            experiment = point.experiment
            lasts_s = 200 if experiment.scheme.kind == "centralized" else 2000
            assert experiment.rounds == lasts_s // experiment.vefl.round_s
            assert experiment.vefl.budget == 1000
            assert experiment.radio.large_scale == "round"
            is_slow = experiment.mobility.max_speed_mps < 20
            assert experiment.data.holders == (288 if is_slow else 0)
            if name != "table1":
                assert (experiment.data.kind, experiment.data.dirichlet_alpha) == ("fashion-mnist", 0.1)
