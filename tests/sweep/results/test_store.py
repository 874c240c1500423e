"""A folder of results: which one belongs to a point, and how results are stored."""

import json
import os
from pathlib import Path

import pytest

import vefl_sim
from tests.learning.datasets.files import write_mnist
from tests.sweep.results.stored import TINY, measurements, origin, store_result
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.datasets.public import require_whole
from vefl_sim.records.identity import Identity
from vefl_sim.records.run_directory import Run, create_run
from vefl_sim.sweep.points import Sweep, load_sweep
from vefl_sim.sweep.results.collector import ResultCollector, add_runs
from vefl_sim.sweep.results.keys import keys_of
from vefl_sim.sweep.results.measurements import RunMeasurements
from vefl_sim.sweep.results.probes import Probe, Probes, probe_keys, source_digest_of, toml_of
from vefl_sim.sweep.results.result import result_from, write_result
from vefl_sim.sweep.results.store import Store, runs_in


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    (tmp_path / "tiny.toml").write_text(TINY)
    return load_sweep(tmp_path / "tiny.toml")


def learning(sweep: Sweep, tmp_path: Path) -> Sweep:
    return load_sweep(tmp_path / "tiny.toml", ["learning.kind=jax"])


def test_a_run_is_stored_and_found_again(tmp_path: Path, sweep: Sweep) -> None:
    run = vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / "runs")
    store = Store(tmp_path / "results")
    path = store.add(run)
    assert path.stat().st_size < 4000
    for again in (store, Store(tmp_path / "results")):
        found = again.find(sweep.points[0])
        assert found
        assert not found.stale
        assert [again.find(point) for point in sweep.points[1:]] == [None] * 3
        before = RunMeasurements(run)
        assert found.rounds["cost"].to_numpy() == pytest.approx(before.rounds["cost"].to_numpy(float), rel=1e-6)
        assert found.ineligible == before.ineligible
        assert sorted(found.sojourns_s) == pytest.approx(sorted(before.sojourns_s), abs=0.5)
        expected = before.rounds["p_suc_with_ineligible"].to_numpy(float)
        assert found.rounds["p_suc_with_ineligible"].to_numpy(float) == pytest.approx(expected, rel=1e-6)
    store.add(run)
    assert [*(tmp_path / "results").iterdir()] == [path]
    assert store.times_s(sweep.points[1].experiment) == [found.file.cpu_s]


def test_an_older_result_of_the_same_point_is_replaced(tmp_path: Path, sweep: Sweep) -> None:
    run = vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / "runs")
    store = Store(tmp_path / "results")
    path = store.add(run)
    older = path.with_name("made-before-a-key-was-added-0000000000.json.xz")
    path.rename(older)
    again = Store(tmp_path / "results")
    assert again.find(sweep.points[0])
    assert again.add(run) == path
    assert not older.exists()


def test_an_old_run_does_not_replace_a_current_result(tmp_path: Path, sweep: Sweep) -> None:
    point = sweep.points[0]
    run = vefl_sim.simulate(point.experiment, out=tmp_path / "runs")
    keys = probe_keys(keys_of(point.experiment))
    probe = Probe(toml_of(keys), (2, 1), {}, {}, {source_digest_of(run): (1, 1), "now": (2, 1)})
    Probes(tmp_path / "results" / "probes.json", [probe]).write()
    path = store_result(tmp_path / "results", point, [None], "now")
    before = path.read_bytes()
    with pytest.raises(BadInput, match="a current one is stored"):
        Store(tmp_path / "results").add(run)
    assert path.read_bytes() == before
    path.unlink()
    store_result(tmp_path / "results", point, [None], "also old")
    assert Store(tmp_path / "results").add(run) == path
    assert path.read_bytes() != before


def test_of_two_runs_of_a_point_the_later_one_is_stored(tmp_path: Path, sweep: Sweep) -> None:
    runs = [vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / name) for name in ("a", "b")]
    for number, run in enumerate(runs):
        os.utime(run.path / "DONE", (number, number))
        file = run.path / "versions.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"vefl_sim source": f"{number}"}))
    store = Store(tmp_path / "results")
    assert add_runs(store, reversed(runs), sweep.points, print) == 2
    found = store.find(sweep.points[0])
    assert found
    assert found.file.source == source_digest_of(runs[1])


def test_parts_of_a_foreign_run_are_not_imported(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / "runs")
    (tmp_path / "evil_part.py").write_text("open('imported', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    resolved = run.path / "resolved.toml"
    resolved.write_text(resolved.read_text().replace('scheduler = "edf"', 'scheduler = "evil_part:own"'))
    assert add_runs(Store(tmp_path / "results"), [vefl_sim.Run(run.path)], sweep.points, print) == 0
    assert "belongs to none of the points" in capsys.readouterr().out
    assert not (tmp_path / "imported").exists()


def test_a_run_with_an_incomplete_public_data_set_is_not_stored(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "some")
    settings = ["data.kind=mnist", f"data.dir={folder}", "data.train_samples=20", "data.test_samples=10"]
    (tmp_path / "tiny.toml").write_text(TINY.replace("image_px = 16", "min_samples = 1"))
    point = load_sweep(tmp_path / "tiny.toml", settings).points[0]
    run = create_run(Identity(point.experiment), tmp_path / "runs")
    with pytest.raises(BadInput, match="does not hold all of mnist"):
        Store(tmp_path / "results").add(run)
    with pytest.raises(BadInput, match="does not hold all of mnist"):
        ResultCollector(Store(tmp_path / "results"), tmp_path / "runs", print).collect([point], 1)
    require_whole(point.experiment.data.model_copy(update={"dir": ""}))  # a download is complete


def test_a_result_with_learning_is_found_for_a_point_without_and_loses_its_accuracies(
    tmp_path: Path, sweep: Sweep
) -> None:
    store_result(tmp_path / "results", learning(sweep, tmp_path).points[0], [0.1, 0.2])
    found = Store(tmp_path / "results").find(sweep.points[0])
    assert found
    assert found.rounds["accuracy"].isna().all()
    learnt = Store(tmp_path / "results").find(learning(sweep, tmp_path).points[0])
    assert learnt
    assert learnt.rounds["accuracy"].tolist() == [0.1, 0.2]


def test_a_stale_result_does_not_hide_a_current_one_with_learning(tmp_path: Path, sweep: Sweep) -> None:
    learnt = learning(sweep, tmp_path).points[0]
    probe = Probe(toml_of(probe_keys(keys_of(learnt.experiment))), (2, 1), {}, {}, {"before": (1, 1), "now": (2, 1)})
    Probes(tmp_path / "results" / "probes.json", [probe]).write()
    store_result(tmp_path / "results", sweep.points[0], [None], "before")
    store_result(tmp_path / "results", learnt, [0.1], "now")
    found = Store(tmp_path / "results").find(sweep.points[0])
    assert found
    assert (found.file.source, found.stale) == ("now", False)
    store_result(tmp_path / "results", sweep.points[0], [None, None], "now")
    found = Store(tmp_path / "results").find(sweep.points[0])
    assert found
    assert len(found.rounds) == 2  # of two current results the one with exactly these keys


def test_an_exact_result_of_other_inputs_does_not_hide_one_with_learning(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt = learning(sweep, tmp_path).points[0]
    store_result(tmp_path / "results", sweep.points[0], [None])
    monkeypatch.setattr("vefl_sim.sweep.results.store.inputs_of", lambda experiment: {"mobility.file": "d2"})
    made = origin(keys_of(learnt.experiment), inputs={"mobility.file": "d2"})
    write_result(result_from(measurements([0.1, 0.2, 0.3]), **made), tmp_path / "results")
    found = Store(tmp_path / "results").find(sweep.points[0])
    assert found
    assert len(found.rounds) == 3


def test_a_result_without_learning_is_not_found_for_a_point_with_learning(tmp_path: Path, sweep: Sweep) -> None:
    store_result(tmp_path / "results", sweep.points[0], [None, None])
    assert Store(tmp_path / "results").find(learning(sweep, tmp_path).points[0]) is None


def test_other_inputs_are_another_point(tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    store_result(tmp_path / "results", sweep.points[0], [None])

    def changed(experiment: Experiment) -> dict[str, str]:
        return {"my_scheme:Mine": "d2", "vefl_models.cnn:cnn": "d3"}

    monkeypatch.setattr("vefl_sim.sweep.results.store.part_digests", changed)
    assert Store(tmp_path / "results").find(sweep.points[0]) is None


def test_a_damaged_file_does_not_keep_others_from_being_found(tmp_path: Path, sweep: Sweep) -> None:
    store_result(tmp_path / "results", sweep.points[0], [None])
    (tmp_path / "results" / "bad.json.xz").write_bytes(b"nothing")
    store = Store(tmp_path / "results")
    assert store.find(sweep.points[0])
    (problem,) = store.problems
    assert "bad.json.xz is not a stored result" in problem


def test_a_result_that_another_process_adds_is_found(tmp_path: Path, sweep: Sweep) -> None:
    store = Store(tmp_path / "results")
    assert store.find(sweep.points[0]) is None
    store_result(tmp_path / "results", sweep.points[0], [None])
    store.refresh()
    assert store.find(sweep.points[0])


def test_files_that_another_process_replaces_or_removes_are_noticed(tmp_path: Path, sweep: Sweep) -> None:
    path = store_result(tmp_path / "results", sweep.points[0], [None], "before")
    store = Store(tmp_path / "results")
    assert len(store) == 1
    store_result(tmp_path / "results", sweep.points[0], [None], "now")
    store.refresh()
    found = store.find(sweep.points[0])
    assert found
    assert found.file.source == "now"
    path.write_bytes(b"damaged")
    store.refresh()
    assert store.find(sweep.points[0]) is None
    assert len(store.problems) == 1
    path.unlink()
    store.refresh()
    assert (len(store), store.problems) == (0, [])


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
    tmp_path: Path, sweep: Sweep, generations: tuple[int, int], source: str, stale: tuple[bool, bool]
) -> None:
    point = learning(sweep, tmp_path).points[0]
    probe = Probe(toml_of(probe_keys(keys_of(point.experiment))), generations, {}, {})
    probe.sources = {"before": (1, 1), "now": generations}
    Probes(tmp_path / "results" / "probes.json", [probe]).write()
    store_result(tmp_path / "results", point, [0.1], source)
    found = [Store(tmp_path / "results").find(point, learning=own) for own in (False, True)]
    assert tuple(result.stale for result in found if result) == stale


def test_runs_are_found_in_folders(tmp_path: Path, sweep: Sweep) -> None:
    run = vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / "runs")
    (tmp_path / "runs" / "other").mkdir()
    for folder in (tmp_path / "runs", run.path):
        assert [found.path for found in runs_in([folder])] == [run.path]
    (run.path / "DONE").unlink()
    assert [*runs_in([tmp_path / "runs"])] == []
    with pytest.raises(BadInput, match="nowhere does not exist"):
        next(runs_in([tmp_path / "nowhere"]))
    assert Run(run.path).state == "unfinished"


def test_a_run_whose_tables_contradict_its_digest_is_left_out(tmp_path: Path, sweep: Sweep) -> None:
    run = vefl_sim.simulate(sweep.points[0].experiment, out=tmp_path / "runs")
    table = run.path / "tables" / "rounds.parquet"
    run.rounds.assign(energy_j=777.0).to_parquet(table)
    summary = {key: figure for key, figure in run.summary.items() if key != "table_digests"}  # of an old version
    (run.path / "summary.json").write_text(json.dumps(summary))
    lines: list[str] = []
    assert add_runs(Store(tmp_path / "results"), [run], sweep.points, lines.append) == 0
    assert lines == [
        f"{run.path.name} is left out: the digest of the tables is {run.content_digest()[:16]}, but the summary has "
        f"{summary['content_digest'][:16]}: restore its tables, or run it again with --fresh."
    ]
    assert not [*(tmp_path / "results").glob("*")]
