"""A folder of results: which one belongs to a point, and how results are stored."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest

import vefl_sim
from tests.learning.datasets.files import write_mnist
from tests.sweep.results.stored import TINY, measurements, origin, paper_module, store_result
from vefl_sim.core.errors import BadInput
from vefl_sim.records.identity import Identity, recorded_versions
from vefl_sim.records.run_directory import Run, create_run
from vefl_sim.sweep.points import Point, Sweep, load_sweep
from vefl_sim.sweep.results.keys import keys_of
from vefl_sim.sweep.results.probes import Generations, Probe, Probes, probe_keys, source_digest, toml_of
from vefl_sim.sweep.results.result import Result, RunMeasurements, result_from, write_result
from vefl_sim.sweep.results.store import Store

collector = paper_module("collector")


@dataclass(frozen=True)
class Folder:
    """A folder for a store, with the sweep of its points, without and with learning."""

    results: Path
    sweep: Sweep
    learning: Sweep

    def found(self, point: Point) -> Result:
        found = Store(self.results).find(point)
        assert found
        return found

    def write_probe(self, point: Point, generations: Generations, **sources: Generations) -> None:
        """Write the probe of a point, with the generation that each of these sources gave."""
        probe = Probe(toml_of(probe_keys(keys_of(point.experiment))), generations, {}, {}, sources)
        Probes(self.results / "probes.json", [probe]).write()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return Folder(tmp_path / "results", load_sweep(file), load_sweep(file, ["learning.kind=jax"]))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The finished run of the first point."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "tiny.toml").write_text(TINY)
    return vefl_sim.simulate(load_sweep(folder / "tiny.toml").points[0].experiment, out=folder / "runs")


@pytest.fixture
def run(done: Run, tmp_path: Path) -> Run:
    """A copy of that run, which a test may change."""
    return Run(copytree(done.path, tmp_path / "runs" / done.path.name))


def test_a_run_is_stored_and_found_again(folder: Folder, done: Run) -> None:
    store, before = Store(folder.results), RunMeasurements(done)
    path = store.add(done)
    assert path.stat().st_size < 4000
    for again in (store, Store(folder.results)):
        found = again.find(folder.sweep.points[0])
        assert found
        assert not found.stale
        assert [again.find(point) for point in folder.sweep.points[1:]] == [None] * 3
        for column in ("cost", "p_suc_with_ineligible"):
            assert found.rounds[column].to_numpy(float) == pytest.approx(
                before.rounds[column].to_numpy(float), rel=1e-6
            )
        assert found.ineligible == before.ineligible
        assert sorted(found.sojourns_s) == pytest.approx(sorted(before.sojourns_s), abs=0.5)
    mine = collector.ResultCollector(store, folder.results, print)
    assert mine.expected_s(folder.sweep.points[1]) == found.file.cpu_s
    older = path.with_name("made-before-a-key-was-added-0000000000.json.xz")
    path.rename(older)
    assert Store(folder.results).add(done) == path
    assert [*folder.results.iterdir()] == [path]


def test_an_old_run_does_not_replace_a_current_result(folder: Folder, done: Run) -> None:
    point = folder.sweep.points[0]
    folder.write_probe(point, (2, 1), **{source_digest(recorded_versions(done.path)): (1, 1), "now": (2, 1)})
    path = store_result(folder.results, point, [None], "now")
    before = path.read_bytes()
    with pytest.raises(BadInput, match="a current one is stored"):
        Store(folder.results).add(done)
    assert path.read_bytes() == before


def test_of_two_runs_of_a_point_the_later_one_is_stored(folder: Folder, done: Run, tmp_path: Path) -> None:
    runs = [Run(copytree(done.path, tmp_path / name / done.path.name)) for name in "ab"]
    for number, run in enumerate(runs):
        os.utime(run.path / "DONE", (number, number))
        file = run.path / "versions.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"vefl_sim source": f"{number}"}))
    assert collector.add_runs(Store(folder.results), reversed(runs), folder.sweep.points, print) == 2
    assert folder.found(folder.sweep.points[0]).file.source == source_digest(recorded_versions(runs[1].path))


def test_a_run_with_an_incomplete_public_data_set_is_not_stored(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "some")
    settings = ["data.kind=mnist", f"data.dir={folder}", "data.train_samples=20", "data.test_samples=10"]
    (tmp_path / "tiny.toml").write_text(TINY.replace("image_px = 16", "min_samples = 1"))
    point = load_sweep(tmp_path / "tiny.toml", settings).points[0]
    run = create_run(Identity(point.experiment), tmp_path / "runs")
    with pytest.raises(BadInput, match="does not hold all of mnist"):
        Store(tmp_path / "results").add(run)
    with pytest.raises(BadInput, match="does not hold all of mnist"):
        collector.ResultCollector(Store(tmp_path / "results"), tmp_path / "runs", print).collect([point], 1)


def test_a_result_with_learning_is_found_for_a_point_without_and_loses_its_accuracies(folder: Folder) -> None:
    plain, learnt = folder.sweep.points[0], folder.learning.points[0]
    path = store_result(folder.results, learnt, [0.1, 0.2])
    assert folder.found(plain).rounds["accuracy"].isna().all()
    assert folder.found(learnt).rounds["accuracy"].tolist() == [0.1, 0.2]
    path.unlink()
    store_result(folder.results, plain, [None, None])
    assert Store(folder.results).find(learnt) is None


def test_a_stale_result_does_not_hide_a_current_one_with_learning(folder: Folder) -> None:
    plain, learnt = folder.sweep.points[0], folder.learning.points[0]
    folder.write_probe(learnt, (2, 1), before=(1, 1), now=(2, 1))
    store_result(folder.results, plain, [None], "before")
    store_result(folder.results, learnt, [0.1], "now")
    assert (folder.found(plain).file.source, folder.found(plain).stale) == ("now", False)
    store_result(folder.results, plain, [None, None], "now")
    assert len(folder.found(plain).rounds) == 2  # of two current results the one with exactly these keys


def test_other_inputs_are_another_point(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, learnt = folder.sweep.points[0], folder.learning.points[0]
    store_result(folder.results, plain, [None])
    digests = {"my_scheme:Mine": "d2", "vefl_models.cnn:cnn": "d3"}
    monkeypatch.setattr("vefl_sim.sweep.results.store.part_digests", lambda experiment: digests)
    assert Store(folder.results).find(plain) is None
    made = origin(keys_of(learnt.experiment), inputs={"my_scheme:Mine": "d2"})
    write_result(result_from(measurements([0.1, 0.2, 0.3]), **made), folder.results)
    assert len(folder.found(plain).rounds) == 3  # the one of other inputs does not hide it


def test_files_that_another_process_adds_replaces_or_damages_are_noticed(folder: Folder) -> None:
    store, point = Store(folder.results), folder.sweep.points[0]
    assert store.find(point) is None
    for source in ("before", "now"):
        path = store_result(folder.results, point, [None], source)
        store.refresh()
        found = store.find(point)
        assert found
        assert found.file.source == source
    path.with_name("bad.json.xz").write_bytes(b"nothing")  # does not hide the others
    path.write_bytes(b"damaged")
    store.refresh()
    assert (store.find(point), len(store), len(store.problems)) == (None, 0, 2)
    assert "bad.json.xz is not a stored result" in store.problems[0]


@pytest.mark.parametrize(
    ("generations", "source", "stale"),
    [
        ((2, 2), "now", (False, False)),
        ((2, 2), "before", (True, True)),
        ((1, 2), "before", (False, True)),  # only what is learnt has changed
        ((1, 1), "before", (False, False)),
        ((1, 1), "never probed", (True, True)),
    ],
)
def test_results_of_an_older_generation_are_stale(
    folder: Folder, generations: tuple[int, int], source: str, stale: tuple[bool, bool]
) -> None:
    point = folder.learning.points[0]
    folder.write_probe(point, generations, before=(1, 1), now=generations)
    store_result(folder.results, point, [0.1], source)
    found = [Store(folder.results).find(point, learning=own) for own in (False, True)]
    assert tuple(result.stale for result in found if result) == stale


def test_runs_are_found_in_folders(run: Run, tmp_path: Path) -> None:
    (tmp_path / "runs" / "other").mkdir()
    for folder in (tmp_path / "runs", run.path):
        assert [found.path for found in collector.runs_in([folder])] == [run.path]
    (run.path / "DONE").unlink()
    assert [*collector.runs_in([tmp_path / "runs"])] == []
    with pytest.raises(BadInput, match="nowhere does not exist"):
        next(collector.runs_in([tmp_path / "nowhere"]))


def test_a_run_whose_tables_contradict_its_digest_is_left_out(folder: Folder, run: Run) -> None:
    run.rounds.assign(energy_j=777.0).to_parquet(run.path / "tables" / "rounds.parquet")
    summary = {key: figure for key, figure in run.summary.items() if key != "table_digests"}  # of an old version
    (run.path / "summary.json").write_text(json.dumps(summary))
    lines: list[str] = []
    assert collector.add_runs(Store(folder.results), [Run(run.path)], folder.sweep.points, lines.append) == 0
    assert f"but the summary has {summary['content_digest'][:16]}" in lines[0]
    assert not [*folder.results.glob("*")]
