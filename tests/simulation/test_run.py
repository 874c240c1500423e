"""How a run starts: one directory per configuration, and its identity and file read once."""

from pathlib import Path

import pytest

from tests.mobility.recorded.recordings import DATA
from tests.resumable import only
from vefl_sim import Experiment, from_tables, simulate
from vefl_sim.cli.main import main
from vefl_sim.mobility.recorded import recording

SHORT = {
    "run": {"name": "short", "rounds": 1},
    "learning": {"kind": "none"},
    "model": {"factory": "vefl_models.logistic:logistic"},
    "data": {"train_samples": 600, "test_samples": 50, "min_samples": 1},
}


def short() -> Experiment:
    return from_tables(SHORT)


def test_two_that_start_at_once_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sees the directory of the other before it creates its own."""
    monkeypatch.setattr("vefl_sim.simulation.run.existing_run", lambda *_: None)
    first = simulate(short(), out=tmp_path)
    assert simulate(short(), out=tmp_path).path == first.path == only(tmp_path).path


def test_ctrl_c_while_preparing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vefl_sim.simulation.run.build_scenario", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(short(), out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_recording_is_digested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digested, original = [], recording.recording_digest

    def counted(file: str) -> str:
        digested.append(file)
        return original(file)

    monkeypatch.setattr(recording, "recording_digest", counted)
    mobility = {"kind": "playback", "file": str(DATA / "grid_fcd.parquet")}
    simulate(from_tables(SHORT | {"mobility": mobility}), out=tmp_path)
    assert len(digested) == 1


def test_the_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read, original = tmp_path / "short.toml", [], Path.read_text
    file.write_text('run = {name = "short", rounds = 1}\nlearning.kind = "none"\ndata.train_samples = 2000\n')

    def counted(path: Path, *args: str, **options: str) -> str:
        read.append(path)
        return original(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", counted)
    with pytest.raises(SystemExit, match="0"):
        main([str(file), "--out", str(tmp_path / "runs"), "--quiet"])
    assert read.count(file) == 1
    assert original(only(tmp_path / "runs").path / "experiment.toml") == original(file)
