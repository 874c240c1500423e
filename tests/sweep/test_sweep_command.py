"""Whole sweeps: killed, on a cluster, with failing points, on a full disk; results are always the same."""

import os
import signal
from pathlib import Path

import pytest

from tests.sweep.commands import (
    checkpoints,
    comparison_toml,
    index,
    run_command,
    sessions,
    start,
    toml,
    wait_for,
    workers,
)
from vefl_sim import load_sweep, run_sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("sweeps"),
]  # all in one process, which runs the undisturbed sweep once
SWEEP: dict[str, object] = {"seeds": [1, 2]}
LONG = {"rounds": 40, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a sweep that ran without interruption, one point after the other."""
    out = tmp_path_factory.mktemp("undisturbed")
    code, output = run_command("sweep", toml(out, SWEEP, run=LONG), "--out", out, "--workers", 1)
    assert code == 0, output
    assert "2 of 2 points are done" in output
    return out


def require_same(out: Path, undisturbed: Path) -> None:
    """Require that all points are done, with the same results as without interruption."""
    here, there = index(out), index(undisturbed)
    assert here["status"].tolist() == ["done"] * 2
    assert here["content"].to_dict() == there["content"].to_dict()
    assert here["content"].nunique() == 2


def test_finished_points_are_skipped(undisturbed: Path) -> None:
    before = sessions(undisturbed)
    code, output = run_command("sweep", undisturbed / "many.toml", "--out", undisturbed)
    assert code == 0, output
    assert "2 points, 2 of them done" in output
    assert sessions(undisturbed) == before == 2


def test_a_sweep_that_is_killed_and_started_again(tmp_path: Path, undisturbed: Path) -> None:
    file = toml(tmp_path, SWEEP, run=LONG)
    process = start("sweep", file, "--out", tmp_path, "--workers", 2)
    wait_for(lambda: checkpoints(tmp_path))  # a finished run has none, so on a busy machine never both at once
    process.kill()
    process.wait()
    code, output = run_command("sweep", file, "--out", tmp_path)  # its workers have ended and released their locks
    assert code == 0, output
    assert sessions(tmp_path) > 2
    require_same(tmp_path, undisturbed)


def test_a_worker_of_a_local_cluster_that_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    file, log = toml(tmp_path, SWEEP, run=LONG), tmp_path / "log"
    process = start("sweep", file, "--out", tmp_path, "--on", "local-cluster", "--workers", 2, log=log)
    wait_for(lambda: checkpoints(tmp_path) == 2)  # both points have made progress
    os.kill(workers(log)[0], signal.SIGKILL)
    assert process.wait(300) == 0, log.read_text()
    assert sessions(tmp_path) > 2
    require_same(tmp_path, undisturbed)


def test_ctrl_c_lets_points_of_a_comparison_save_and_sweep_continues_them(tmp_path: Path, undisturbed: Path) -> None:
    file = comparison_toml(tmp_path, [1, 2], run=LONG | {"checkpoint_every": 1000})
    process = start(file, "--out", tmp_path)
    wait_for(lambda: [*tmp_path.glob("*/parts")])
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "the same command continues" in output
    assert set(index(tmp_path)["status"]) <= {"waiting", "stopped", "done"}
    code, output = run_command("sweep", file, "--out", tmp_path)
    assert code == 0, output
    require_same(tmp_path, undisturbed)


def test_a_point_that_fails_does_not_stop_the_rest(tmp_path: Path) -> None:
    file = toml(tmp_path, {"seeds": [1], "data": {"kind": ["signs", "mnist"]}}, data={"dir": ""}, run={"rounds": 1})
    code, output = run_command(
        "sweep", file, "--out", tmp_path, "--set", "data.dir=/nowhere", "--set", "model.float_bits=16"
    )
    assert code == 1
    assert "1 of 2 points failed" in output
    assert "train-images-idx3-ubyte.gz is not in /nowhere (data.dir)" in output
    assert sorted(index(tmp_path)["status"]) == ["done", "failed"]
    assert "is not in /nowhere" in index(tmp_path).set_index("status")["error"]["failed"]


def test_a_full_disk_is_reported_and_no_finished_work_is_lost(tmp_path: Path, undisturbed: Path) -> None:
    file = toml(tmp_path, SWEEP, run=LONG)
    code, output = run_command("sweep", file, "--out", tmp_path, most_bytes=12_000)
    assert code == 1, output
    assert "cannot be written (File too large)" in output
    assert "Traceback" not in output
    code, output = run_command("sweep", file, "--out", tmp_path)
    assert code == 0, output
    require_same(tmp_path, undisturbed)


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    code, output = run_command("sweep", toml(tmp_path, SWEEP), "--out", tmp_path / "runs", "--on", "tcp://127.0.0.1:9")
    assert code == 2
    assert "error: --on tcp://127.0.0.1:9: no cluster answers there" in output
    code, output = run_command("sweep", toml(tmp_path, SWEEP), "--out", tmp_path / "runs", "--on", "nonsense")
    assert code == 2, output
    assert "Traceback" not in output


def test_run_sweep_from_python(tmp_path: Path, undisturbed: Path) -> None:
    table = run_sweep(load_sweep(undisturbed / "many.toml", seeds=[2]), undisturbed)
    assert table["status"].tolist() == ["done"] * 2
    broken = toml(tmp_path, {"data": {"kind": ["mnist"]}}, data={"dir": "/nowhere", "image_px": 28})
    assert run_sweep(load_sweep(broken), tmp_path / "runs", workers=1)["status"].tolist() == ["failed"]
