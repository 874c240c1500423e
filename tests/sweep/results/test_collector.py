"""`experiments/paper/run.py`: which points are run next, and how their results are stored."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vefl_sim
from tests.command_line import ROOT, finish, start
from tests.sweep.commands import wait_for
from tests.sweep.conftest import run_here
from tests.sweep.results.stored import TINY, paper_module, paper_sweep, store_result
from vefl_sim.analysis.figures.drawing import draw_figure, drawing_lines
from vefl_sim.learning.datasets.public import Holding
from vefl_sim.sweep.job import Report
from vefl_sim.sweep.points import Point, Sweep, load_sweep
from vefl_sim.sweep.results.keys import key_digest, keys_of, toml_of
from vefl_sim.sweep.results.probes import Probe, Probes, probe_keys
from vefl_sim.sweep.results.store import Store

Command = Callable[..., tuple[int, str]]
collector = paper_module("collector")
SCRIPT = ROOT / "experiments" / "paper" / "run.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return paper_module("run")


def test_the_most_useful_points_come_first(script: ModuleType) -> None:
    sweeps = [paper_sweep(name) for name in ("table1", "fig16", "fig15", "fig05")]
    points = script.in_order(sweeps)
    digests = [key_digest(keys_of(point.experiment)) for point in points]
    assert len(set(digests)) == len(digests)
    first = len(sweeps[3].points)
    assert {point.experiment.learning.kind for point in points[:first]} == {"none"}
    rest = points[first:]
    assert {p.title for p in rest[:20]} == {p.title for p in sweeps[2].points if p.seed <= 2}  # Fig. 15
    assert [point.seed > 2 for point in rest] == sorted(point.seed > 2 for point in rest)
    table = [p for p in rest if p.seed <= 2 and p.label and p.label.startswith("FDPC") and "data.kind" in p.values]
    kinds = [(p.experiment.data.kind, p.experiment.data.dirichlet_alpha) for p in table]
    assert list(dict.fromkeys(kind for kind, _ in kinds)) == ["mnist", "fashion-mnist", "gtsrb", "cifar10"]
    assert list(dict.fromkeys(alpha for kind, alpha in kinds if kind == "mnist")) == [0.1, 0.9, 10.0]


def test_only_complete_data_sets_count_as_downloaded(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["complete", "complete, in compact form: 39209 of", "damaged, in", "incomplete, in", "not there"]
    holdings = [Holding(str(number), Path(), state, 1) for number, state in enumerate(states)]
    monkeypatch.setattr(script, "inventory", lambda parent: holdings)
    assert script.downloaded_data() == ["0", "1"]


@pytest.fixture
def tiny(tmp_path: Path) -> Sweep:
    (tmp_path / "tiny.toml").write_text(TINY)
    return load_sweep(tmp_path / "tiny.toml")


def quiet_collector(tmp_path: Path, out: str = "runs") -> Any:
    return collector.ResultCollector(Store(tmp_path / "results"), tmp_path / out, lambda line: None)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Point]]:
    """Replace probing and running; the list records what would be probed and run."""
    recorded: list[tuple[str, Point]] = []

    def probe(self: Any, points: list[Point], *, again: bool) -> dict[str, list[str]]:
        assert not again
        recorded.extend(("probed", point) for point in points)
        return {}

    def run_and_store(self: Any, point: Point, number: str) -> Report:
        recorded.append(("run", point))
        return Report(point.digest, "done")

    monkeypatch.setattr(collector.ResultCollector, "probe", probe)
    monkeypatch.setattr(collector.ResultCollector, "_run_and_store", run_and_store)
    return recorded


def test_only_points_that_are_run_are_probed(tmp_path: Path, tiny: Sweep, calls: list[tuple[str, Point]]) -> None:
    stored, claimed, third, _ = tiny.points
    store_result(tmp_path / "results", stored, [None, None])
    with quiet_collector(tmp_path, "elsewhere").claim(claimed):  # another process with the same store
        assert quiet_collector(tmp_path).collect(tiny.points, 1) == []
    assert calls == [("probed", third), ("run", third)]


def other_store(folder: Path, tiny: Sweep, source: str = "theirs", slots: int = 5) -> Store:
    """A store in which two of the points are stored, one of them by older sources; its probe is of generation 3."""
    store_result(folder, tiny.points[0], [None, None], source)
    store_result(folder, tiny.points[1], [None, None], "older")
    sources = {source: (3, 3), "older": (2, 3)}
    keys = probe_keys(keys_of(tiny.points[0].experiment))
    probes = Probes(folder / "probes.json", [Probe(toml_of(keys), (3, 3), {"tx_slots": slots}, {}, sources)])
    probes.write()
    return Store(folder)


def without_results(store: Store) -> Store:
    """The store with its probes only."""
    for path in store.folder.glob("*.json.xz"):
        path.unlink()
    return Store(store.folder)


def test_results_of_another_store_are_added_if_its_probes_agree(tmp_path: Path, tiny: Sweep) -> None:
    """Both tiny budgets have the same probe; 3 is a generation of the other store, and 1 is the same one here."""
    store = without_results(other_store(tmp_path / "results", tiny, "ours"))
    store.probes.probes[0].generations = store.probes.probes[0].sources["ours"] = (1, 1)
    store.probes.write()
    other, lines = other_store(tmp_path / "other", tiny), list[str]()
    (tmp_path / "other" / "damaged.json.xz").write_bytes(b"junk")
    assert collector.adopt_store(store, other, lines.append) == 1
    assert "damaged.json.xz is not a stored result" in lines[0]
    assert sum("it is stale, or a current one" in line for line in lines) == 1
    again = Store(tmp_path / "results")
    found = again.find(tiny.points[0])
    assert found
    assert not found.stale
    assert again.find(tiny.points[1]) is None
    assert again.probes.probes[0].sources == {"ours": (1, 1), "theirs": (1, 1), "older": (2, 3)}
    assert collector.adopt_store(again, other_store(tmp_path / "other", tiny), print) == 0  # it is stored


def test_results_of_another_store_are_left_out_if_its_probe_gave_other_figures(
    tmp_path: Path, tiny: Sweep, command: Command
) -> None:
    without_results(other_store(tmp_path / "results", tiny, "ours", slots=6))
    other_store(tmp_path / "other", tiny)
    code, output = command("--add", tmp_path / "other")
    assert "gave other figures there: tx_slots was 6 and is 5" in output
    assert (code, output.splitlines()[-1]) == (0, f"0 results added to {tmp_path / 'results'}")


def test_a_finished_run_is_probed_before_it_is_stored(
    script: ModuleType, tmp_path: Path, tiny: Sweep, calls: list[tuple[str, Point]]
) -> None:
    vefl_sim.simulate(tiny.points[2].experiment, out=tmp_path / "runs")
    mine = quiet_collector(tmp_path)
    assert script.collect(mine, [tiny], 0) == 0
    assert [(what, point.title) for what, point in calls] == [("probed", tiny.points[2].title)]
    assert mine.has_current(tiny.points[2])


def with_folders(tmp_path: Path, *arguments: object) -> list[str]:
    """The arguments, the folder of the runs if the command takes one, and the file of the sweep."""
    out = () if {"--status", "--add"} & {*arguments} else ("--out", tmp_path / "runs")
    return [str(word) for word in (*arguments, *out, tmp_path / "tiny.toml")]


@pytest.fixture
def command(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The script, run in this process, as well as its points; returns exit code and output."""
    monkeypatch.setattr(collector, "run_in_process", run_here)

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["run.py", *with_folders(tmp_path, *arguments)])
        code = script.main()
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def test_a_figure_that_cannot_be_drawn_is_an_error_and_one_without_results_is_not(
    tmp_path: Path, tiny: Sweep, command: Command
) -> None:
    code, output = command("--figures")
    assert code == 0
    assert "none of its 4 points is done" in output
    store_result(tmp_path / "results", tiny.points[0], [None, None])
    (tmp_path / "tiny.toml").write_text(TINY.replace('"cost"', '"accuracy"'))
    code, output = command("--figures")
    assert code == 2
    assert "error: tiny: its runs have no accuracy" in output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--accept --status", "--accept can only be used with --probe"),
        ("FILE", "FILE and --out can only be used with"),
        ("--status --out there", "--out can only be used with --figures, --next and --probe"),
        ("--next 0", "0 points cannot be run: choose 1 or more"),
        ("--status one/a.toml other/b.toml", "the FILEs are in several folders"),
    ],
)
def test_options_without_effect_are_refused(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    problem: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments.split()])
    with pytest.raises(SystemExit, match="2"):
        script.main()
    assert problem in capsys.readouterr().err


@pytest.mark.slow
def test_points_are_run_once_stored_drawn_and_listed(tmp_path: Path, command: Command) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.replace("seeds = [1, 2]", "seeds = [1]"))
    both = [start(SCRIPT, *with_folders(tmp_path, "--next", 1)) for _ in range(2)]
    done = [finish(process) for process in both]
    assert [process.returncode for process in done] == [0, 0], done
    results = sorted((tmp_path / "results").glob("*.json.xz"))
    assert len(results) == 2
    assert sum(process.stdout.count("  done in") for process in done) == 2  # no point was run by both
    code, output = command("--next", 1)
    assert (code, output) == (0, "")
    code, output = command("--status")
    assert "tiny           2       2       0        0   nothing to do" in output
    code, output = command("--probe")
    assert (code, output.splitlines()[-1]) == (0, "all probes are as stored")
    sweep = load_sweep(tmp_path / "tiny.toml")
    drawings = [
        draw_figure(sweep, out, tmp_path / out.name, store)
        for out, store in ((tmp_path / "runs", None), (tmp_path / "nowhere", Store(tmp_path / "results")))
    ]
    first, second = ([*drawing_lines(drawing, tmp_path)] for drawing in drawings)
    assert (first[0], second[0]) == (
        "tiny: from all 2 points",
        "tiny: from all 2 points: 0 from runs, 2 from stored results",
    )
    assert first[1:-1] == second[1:-1]
    for path in results:
        path.unlink()
    code, output = command("--add", tmp_path / "runs")
    assert (code, output.splitlines()[-1]) == (0, f"2 results added to {tmp_path / 'results'}")
    assert sorted((tmp_path / "results").glob("*.json.xz")) == results


@pytest.mark.slow
def test_a_stopped_point_is_continued_and_a_changed_result_is_reported(tmp_path: Path, command: Command) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.replace("rounds = 2", "rounds = 60\ncheckpoint_every = 1"))
    process = start(SCRIPT, *with_folders(tmp_path, "--next", 1))
    wait_for(lambda: [*(tmp_path / "runs").glob("*/checkpoints/*")])
    process.send_signal(signal.SIGTERM)
    stopped = finish(process)
    assert stopped.returncode == 130, stopped.stdout
    assert "stopping" in stopped.stdout
    assert not [*(tmp_path / "results").glob("*.json.xz")]
    file = tmp_path / "results" / "probes.json"
    text = file.read_text()
    changed = text.replace('"tx_slots": ', '"tx_slots": 9', 1)
    file.write_text(changed.replace('"sources": {\n', '"sources": {\n    "other": [1, 1],\n'))
    code, output = command("--probe")
    assert code == 2
    assert "tx_slots was 9" in output
    assert "--probe --accept" in output
    code, output = command("--probe", "--accept")
    assert code == 0
    assert "are stale: tx_slots was 9" in output
    code, output = command("--next", 1)
    assert code == 0
    assert len([*(tmp_path / "runs").glob("pdpc-*")]) == 1  # it was continued
    assert [*(tmp_path / "results").glob("*.json.xz")]
