"""`data.holders`: a shorter run is the beginning of a longer one."""

from pathlib import Path

import pytest

from vefl_sim import Experiment, Simulation, from_tables, simulate, with_settings
from vefl_sim.core.errors import ExperimentError

SMALL = from_tables(
    {
        "run": {"name": "small", "rounds": 2},
        "traffic": {"mean_in_coverage": 12.0, "through_share": 1.0},
        "radio": {"coverage_radius_m": 200.0},
        "scheme": {"selected": 4},
        "vefl": {"round_s": 5.0, "max_local_iterations": 3},
        "data": {"holders": 60, "train_samples": 1200, "test_samples": 60, "image_px": 16},
    }
)


def visitors(run: Simulation) -> set[int]:
    return {*run.vehicles["cv"]}


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["learning.kind=none"], id="dirichlet"),
        pytest.param(["data.partition=shards", "learning.kind=none"], id="shards", marks=pytest.mark.slow),
        pytest.param(
            ["scheme.kind=fdpc", "adversary.share=0.3", "learning.batch_size=7"], id="fdpc", marks=pytest.mark.slow
        ),
    ],
)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(keys: list[str]) -> None:
    experiment = with_settings(SMALL, *keys)
    short, long = (simulate(with_settings(experiment, f"run.rounds={count}"), out=None) for count in (2, 4))
    assert visitors(short) < visitors(long)  # CVs that come later would change the split
    assert long.rounds.iloc[:2].equals(short.rounds)
    assert long.vehicles[long.vehicles["round"] <= 2].reset_index(drop=True).equals(short.vehicles)
    assert long.events.iloc[: len(short.events)].drop(columns="version").equals(short.events.drop(columns="version"))


def refused(experiment: Experiment, *keys: str) -> str:
    with pytest.raises(ExperimentError) as caught:
        simulate(with_settings(experiment, *keys), out="never")
    return str(caught.value)


def test_fewer_shares_than_cvs_are_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "data.holders = 3 has no share for all of them: raise it to" in refused(SMALL, "data.holders=3")
    assert not [*tmp_path.rglob("*.toml")]
