"""Short runs that show whether the code has changed results."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import vefl_sim
from tests.mobility.recorded.recordings import own_table
from tests.sweep.conftest import run_here
from tests.sweep.results.stored import paper_module
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.toml import validated, with_settings
from vefl_sim.experiment.unused_keys import unused_keys
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point, load_sweep
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


@pytest.mark.parametrize(
    ("first", "second", "probes"),
    [
        ([], ["run.seed=4", "data.kind=mnist", "data.dirichlet_alpha=10.0", "vefl.round_s=10.0"], 1),  # only sizes
        ([], ["scheme.kind=fdpc"], 2),
        (["learning.proximal_mu=0.0"], ["learning.proximal_mu=0.1"], 2),
        ([], ["data.partition=iid"], 2),
        (["data.partition=shards"], ["data.partition=shards", "data.shards_per_cv=5"], 2),
        ([], ["data.holders=288"], 2),
        (["data.holders=500"], ["data.holders=288"], 1),
    ],
)
def test_points_that_differ_only_in_size_share_a_probe(first: list[str], second: list[str], probes: int) -> None:
    settings = ("learning.iterations_per_step=50", "scheme.kind=fedprox")
    both = probes_for([with_settings(PLAIN, *settings, *own) for own in (first, second)])
    assert len(both) == probes
    assert {(short.rounds, short.data.kind, short.run.seed) for _, short in both} == {(6, "signs", 1)}


def test_a_probe_takes_several_steps_where_iterations_are_merged() -> None:
    """After one step from the global model, the proximal term would still be 0."""
    for merged, expected in ((50, 8), (8, 8), (1, 1)):
        large = with_settings(PLAIN, f"learning.iterations_per_step={merged}", "vefl.max_local_iterations=200")
        keys = probe_keys(keys_of(large))
        short = probe_experiment(keys)
        assert short.learning.iterations_per_step == expected
        assert short.vefl.max_local_iterations >= 5 * expected
        assert probe_keys(keys) == keys


def test_a_probe_of_recorded_traffic_has_its_file(tmp_path: Path) -> None:
    """Keys contain a file without its folder, which the probe needs."""
    file = own_table(tmp_path / "recorded", [(t, 1, 8.0 * t, 4.0, 8.0) for t in range(31)])
    driven = with_settings(PLAIN, "mobility.kind=playback", f"mobility.file={file}", "run.duration_s=30.0")
    ((keys, short),) = probes_for([driven])
    assert (keys["mobility.file"], short.mobility.file) == (file.name, str(file))
    assert not [*unused_keys(short)]


def test_a_probe_contains_losses_and_ineligible_cvs(run: Run) -> None:
    figures = network_figures(run)
    assert sum(figures["lost"].values()) > 0
    assert sum(figures["eligible"]) < sum(figures["in_coverage"])


def test_equal_figures_give_no_differences_and_other_probes_do_not_change(tmp_path: Path, run: Run) -> None:
    probes = Probes(tmp_path / "probes.json")
    assert probes.compare(KEYS, run, accept=False) == []
    probes.write()
    before = asdict(probes.probes[0])
    again = Probes.in_folder(tmp_path)
    assert again.compare(KEYS, run, accept=False) == []
    again.compare(probe_keys(keys_of(with_settings(PLAIN, "scheme.kind=fdpc"))), run, accept=False)
    assert asdict(again.probes[0]) == before
    assert [probe_name(probe.keys) for probe in again.probes] == ["pdpc", "fdpc"]
    assert before["generations"] == (1, 1)


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


@pytest.mark.parametrize(
    ("name", "before", "now", "differ"),
    [
        ("cost", [100.0], [100.0 + 1e-8], False), ("cost", [100.0], [100.0 + 1e-6], True),
        ("loss", [2.8], [2.8 + 3e-6], False), ("loss", [2.8], [2.8 + 4e-5], True),
        ("lost", {"expired": 1}, {"expired": 2}, True), ("lost", {"expired": 1}, {"expired": 1, "ended": 0}, False),
        ("accuracy", [0.5, None], [0.51, None], False), ("accuracy", [0.5, None], [0.5, 0.5], True),
        ("accuracy", [0.5], [0.53], True),
    ],
)  # fmt: skip
def test_rounding_errors_are_not_differences(name: str, before: object, now: object, differ: bool) -> None:
    assert bool(probe_differences({name: before}, {name: now})) == differ


@pytest.mark.slow
def test_a_probe_detects_a_missing_proximal_term(tmp_path: Path) -> None:
    settings = ("scheme.kind=fdpc", "learning.iterations_per_step=50")
    both = [with_settings(PLAIN, *settings, f"learning.proximal_mu={mu}") for mu in (0.01, 0.0)]
    first, second = (learning_figures(vefl_sim.simulate(short, out=tmp_path / "runs")) for _, short in probes_for(both))
    assert any(difference.startswith("loss was") for difference in probe_differences(first, second))


def written(**changed: object) -> str:
    return json.dumps(
        {"probes": [{"toml": "", "generations": [1, 1], "network": {}, "learning": {}, "sources": {}} | changed]}
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"probes": [{}]}',
        written(toml="["),
        written(sources={"abc": [1]}),
        written(generations=[-1, 1]),
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
    (tmp_path / "probes.json").write_bytes((results / "probes.json").read_bytes())
    stored = Probes.in_folder(results).probes
    points = [Point(None, {}, probe_experiment(probe.keys)) for probe in stored]
    collector = paper_module("collector")
    monkeypatch.setattr(collector, "run_in_process", run_here)
    collector.require_unchanged(collector.ResultCollector(Store(tmp_path), tmp_path / "runs", print).probe(points))


@pytest.mark.slow
def test_every_point_of_the_paper_has_a_probe() -> None:
    probes = Probes.in_folder(PAPER / "results")
    files = [*PAPER.glob("fig*.toml"), PAPER / "table1.toml"]
    wanted = probes_for(point.experiment for file in files for point in load_sweep(file).points)
    assert [probe_name(keys) for keys, _ in wanted if probes.of(keys) is None] == []
