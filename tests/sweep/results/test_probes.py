"""Short runs that show whether the code has changed results."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import vefl_sim
from tests.mobility.recorded.recordings import own_table
from tests.sweep.conftest import run_here
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.toml import validated, with_settings
from vefl_sim.experiment.unused_keys import unused_keys
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point, load_sweep
from vefl_sim.sweep.results.collector import ResultCollector, require_unchanged
from vefl_sim.sweep.results.keys import keys_of
from vefl_sim.sweep.results.probes import (
    Probes,
    learning_figures,
    network_figures,
    probe_differences,
    probe_experiment,
    probe_keys,
    probe_name,
    probes_for,
)
from vefl_sim.sweep.results.store import Store

PAPER = Path(__file__).parents[3] / "experiments" / "paper"
PLAIN = validated({"run": {"name": "x"}})
KEYS = probe_keys(keys_of(PLAIN))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return vefl_sim.simulate(probe_experiment(KEYS), out=tmp_path_factory.mktemp("runs"))


def test_a_probe_is_short_and_shared_by_points_that_differ_in_size() -> None:
    large = with_settings(PLAIN, "run.seed=4", "data.kind=mnist", "data.dirichlet_alpha=10.0", "vefl.round_s=10.0")
    other = with_settings(PLAIN, "scheme.kind=fdpc")
    assert len(probes_for([PLAIN, large, other])) == 2
    assert probe_name(probe_keys(keys_of(other))) == "fdpc"
    short = probe_experiment(probe_keys(keys_of(large)))
    assert (short.rounds, short.data.kind, short.run.seed) == (6, "signs", 1)


def test_a_probe_takes_several_steps_where_iterations_are_merged() -> None:
    """After one step from the global model, the proximal term would still be 0."""
    for merged, expected in ((50, 8), (8, 8), (1, 1)):
        large = with_settings(PLAIN, f"learning.iterations_per_step={merged}", "vefl.max_local_iterations=200")
        keys = probe_keys(keys_of(large))
        short = probe_experiment(keys)
        assert short.learning.iterations_per_step == expected
        assert short.vefl.max_local_iterations >= 5 * expected
        assert probe_keys(keys) == keys


def test_another_weight_of_the_proximal_term_is_another_probe() -> None:
    settings = ("learning.iterations_per_step=50", "scheme.kind=fedprox")
    others = [with_settings(PLAIN, *settings, f"learning.proximal_mu={mu}") for mu in (0.0, 0.1)]
    assert len(probes_for(others)) == 2


def test_a_probe_keeps_the_partition_of_the_data() -> None:
    others = [with_settings(PLAIN, *own) for own in (["data.partition=iid"], ["data.partition=shards"],
              ["data.partition=shards", "data.shards_per_cv=5"], ["data.dirichlet_alpha=10.0"])]  # fmt: skip
    shared = [experiment.data for _, experiment in probes_for([PLAIN, *others])]
    assert [(data.partition, data.shards_per_cv) for data in shared] == [
        ("dirichlet", 2), ("iid", 2), ("shards", 2), ("shards", 5),
    ]  # fmt: skip


def test_a_probe_keeps_that_data_are_split_over_a_fixed_number_of_holders() -> None:
    others = [with_settings(PLAIN, f"data.holders={number}") for number in (288, 500)]
    assert [experiment.data.holders for _, experiment in probes_for([PLAIN, *others])] == [0, 100]


@pytest.mark.slow
def test_a_probe_of_recorded_traffic_runs(tmp_path: Path) -> None:
    """Keys contain a file without its folder, which the probe needs."""
    cars = range(6)
    file = own_table(
        tmp_path / "recorded", [(t, car, 8.0 * t + 60 * car - 300, 4.0, 8.0) for t in range(61) for car in cars]
    )
    driven = with_settings(PLAIN, "mobility.kind=playback", f"mobility.file={file}", "run.duration_s=30.0")
    ((keys, short),) = probes_for([driven])
    assert (keys["mobility.file"], short.mobility.file) == (file.name, str(file))
    assert not [*unused_keys(short)]
    assert vefl_sim.simulate(short, out=tmp_path / "runs").is_done


def test_a_probe_contains_losses_and_ineligible_cvs(run: Run) -> None:
    figures = network_figures(run)
    assert sum(figures["lost"].values()) > 0
    assert sum(figures["eligible"]) < sum(figures["in_coverage"])


def test_equal_figures_give_no_differences(tmp_path: Path, run: Run) -> None:
    probes = Probes(tmp_path / "probes.json")
    assert probes.compare(KEYS, run, accept=False) == []
    probes.write()
    again = Probes.in_folder(tmp_path)
    assert again.compare(KEYS, run, accept=False) == []
    assert again.probes[0].generations == (1, 1)
    assert probe_name(again.probes[0].keys) == "pdpc"


@pytest.mark.parametrize(
    ("part", "figure", "by", "after"),
    [("network", "cost", 1e-6, (2, 1)), ("network", "ordered", 1, (2, 1)), ("learning", "loss", 0.001, (1, 2))],
)
def test_different_figures_are_reported_and_make_a_generation_when_accepted(
    tmp_path: Path, run: Run, part: str, figure: str, by: float, after: tuple[int, int]
) -> None:
    probes = Probes(tmp_path / "probes.json")
    probes.compare(KEYS, run, accept=False)
    (probe,) = probes.probes
    values = getattr(probe, part)[figure]
    values[0] += by
    probe.sources = {"before": (1, 1)}
    (difference,) = probes.compare(KEYS, run, accept=False)
    assert difference.startswith(f"{figure} was [{str(values[0])[:4]}")
    assert (probe.generations, probe.sources) == ((1, 1), {"before": (1, 1)})
    probes.compare(KEYS, run, accept=True)
    assert probe.generations == after
    assert probe.sources.pop("before") == (1, 1)
    assert [*probe.sources.values()] == [after]
    assert probes.compare(KEYS, run, accept=False) == []


def test_rounding_errors_are_not_differences() -> None:
    assert probe_differences({"cost": [100.0]}, {"cost": [100.0 + 1e-8]}) == []
    assert probe_differences({"cost": [100.0]}, {"cost": [100.0 + 1e-6]}) != []
    assert probe_differences({"loss": [2.8]}, {"loss": [2.8 + 3e-6]}) == []
    assert probe_differences({"loss": [2.8]}, {"loss": [2.8 + 4e-5]}) != []
    assert probe_differences({"lost": {"expired": 1}}, {"lost": {"expired": 2}}) != []
    assert probe_differences({"lost": {"expired": 1}}, {"lost": {"expired": 0}}) != []
    assert probe_differences({"lost": {"expired": 1}}, {"lost": {"expired": 1, "trip_ended": 0}}) == []
    assert probe_differences({"accuracy": [0.5, None]}, {"accuracy": [0.51, None]}) == []
    assert probe_differences({"accuracy": [0.5, None]}, {"accuracy": [0.5, 0.5]}) != []
    assert probe_differences({"accuracy": [0.5]}, {"accuracy": [0.53]}) != []


@pytest.mark.slow
def test_a_probe_detects_a_missing_proximal_term(tmp_path: Path) -> None:
    settings = ("scheme.kind=fdpc", "learning.iterations_per_step=50")
    both = [with_settings(PLAIN, *settings, f"learning.proximal_mu={mu}") for mu in (0.01, 0.0)]
    first, second = (learning_figures(vefl_sim.simulate(short, out=tmp_path / "runs")) for _, short in probes_for(both))
    assert any(difference.startswith("loss was") for difference in probe_differences(first, second))


def test_a_new_probe_does_not_change_the_others(tmp_path: Path, run: Run) -> None:
    probes = Probes(tmp_path / "probes.json")
    probes.compare(KEYS, run, accept=False)
    before = asdict(probes.probes[0])
    probes.compare(probe_keys(keys_of(with_settings(PLAIN, "scheme.kind=fdpc"))), run, accept=False)
    assert len(probes.probes) == 2
    assert asdict(probes.probes[0]) == before


def written(**changed: object) -> str:
    return json.dumps(
        {"probes": [{"toml": "", "generations": [1, 1], "network": {}, "learning": {}, "sources": {}} | changed]}
    )


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "probes.json").write_text(written(sources={"abc": [1, 1]}))
    assert Probes.in_folder(tmp_path).probes[0].sources == {"abc": (1, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"probes": 3}',
        '{"probes": [3]}',
        '{"probes": [{}]}',
        '{"probes": [{"toml": "["}]}',
        written(toml="["),
        written(sources=[]),
        written(sources={"abc": [1]}),
        written(sources={"abc": {"1": 1, "2": 2}}),
        written(network=[["a", 1]]),
        written(learning=None),
        written(generations=[1.5, 1]),
        written(generations=[-1, 1]),
        written(generations=["1", 1]),
        written(generations=[1, 1]).replace("[1, 1]", "[1e999, 1]"),
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "probes.json").write_text(text)
    with pytest.raises(BadInput, match=r"probes.json cannot be read .*: restore it from the repository\.$"):
        Probes.in_folder(tmp_path)


@pytest.mark.slow
def test_the_code_gives_the_results_that_are_stored_for_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, code has changed results: run.py --probe lists them, --probe --accept accepts them."""
    results = PAPER / "results"
    if not (results / "probes.json").is_file():
        pytest.skip("no probes are stored yet: python experiments/paper/run.py --probe")
    (tmp_path / "probes.json").write_bytes((results / "probes.json").read_bytes())
    stored = Probes.in_folder(results).probes
    points = [Point(None, {}, probe_experiment(probe.keys)) for probe in stored]
    monkeypatch.setattr("vefl_sim.sweep.results.collector.run_in_process", run_here)
    require_unchanged(ResultCollector(Store(tmp_path), tmp_path / "runs", print).probe(points))


@pytest.mark.slow
def test_every_point_of_the_paper_has_a_probe() -> None:
    probes = Probes.in_folder(PAPER / "results")
    if not probes.probes:
        pytest.skip("no probes are stored yet: python experiments/paper/run.py --probe")
    files = [*PAPER.glob("fig*.toml"), PAPER / "table1.toml"]
    wanted = probes_for(point.experiment for file in files for point in load_sweep(file).points)
    assert [probe_name(keys) for keys, _ in wanted if probes.of(keys) is None] == []
