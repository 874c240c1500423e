"""Whole sweeps: killed, stopped, on a cluster, on a full disk; results are always the same."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import call, finish, start
from tests.sweep.commands import checkpoints, comparison_toml, index, sessions, toml, wait_for, workers
from vefl_sim import load_sweep, run_sweep

pytestmark = pytest.mark.slow
SWEEP: dict[str, object] = {"seeds": [1, 2]}
LONG = {"rounds": 25, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a sweep that ran without interruption, one point after the other."""
    out = tmp_path_factory.mktemp("undisturbed")
    done = call("sweep", toml(out, SWEEP, run=LONG), "--out", out, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 points are done" in done.stdout
    return out


def start_sweep(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return start("-m", "vefl_sim", *arguments, **options)


def continue_sweep(file: Path, out: Path, undisturbed: Path) -> None:
    """Continue the sweep, and require that all points are done, with the same results as without interruption."""
    done = call("sweep", file, "--out", out)
    assert done.returncode == 0, done.stderr
    require_same(out, undisturbed)


def require_same(out: Path, undisturbed: Path) -> None:
    """Require that all points are done, with the same results as without interruption."""
    here, there = index(out), index(undisturbed)
    assert here["status"].tolist() == ["done"] * 2
    assert here["content"].to_dict() == there["content"].to_dict()
    assert here["content"].nunique() == 2


def test_a_sweep_that_is_killed_and_started_again(tmp_path: Path, undisturbed: Path) -> None:
    file = toml(tmp_path, SWEEP, run=LONG)
    process = start_sweep("sweep", file, "--out", tmp_path, "--workers", 2)
    wait_for(lambda: checkpoints(tmp_path))  # a finished run has none, so on a busy machine never both at once
    process.kill()
    process.wait()
    continue_sweep(file, tmp_path, undisturbed)  # its workers have ended and released their locks
    assert sessions(tmp_path) > 2


def test_a_worker_of_a_local_cluster_that_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    file, log = toml(tmp_path, SWEEP, run=LONG), tmp_path / "log"
    with log.open("w") as output:
        process = start_sweep("sweep", file, "--out", tmp_path, "--on", "local-cluster", "--workers", 2, stdout=output)
    wait_for(lambda: checkpoints(tmp_path) == 2)  # both points have made progress
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    assert process.wait(300) == 0, log.read_text()
    assert sessions(tmp_path) > 2
    require_same(tmp_path, undisturbed)


def test_ctrl_c_lets_points_of_a_comparison_save_and_sweep_continues_them(tmp_path: Path, undisturbed: Path) -> None:
    file = comparison_toml(tmp_path, [1, 2], run=LONG | {"checkpoint_every": 1000})
    process = start_sweep(file, "--out", tmp_path)
    wait_for(lambda: [*tmp_path.glob("*/parts")])
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert stopped.returncode == 130, stopped.stdout
    assert "the same command continues" in stopped.stdout
    assert set(index(tmp_path)["status"]) <= {"waiting", "stopped", "done"}
    continue_sweep(file, tmp_path, undisturbed)


def test_a_full_disk_is_reported_and_no_finished_work_is_lost(tmp_path: Path, undisturbed: Path) -> None:
    file = toml(tmp_path, SWEEP, run=LONG)
    failed = finish(start_sweep("sweep", file, "--out", tmp_path, most_bytes=12_000))
    assert failed.returncode == 1, failed.stdout
    assert "cannot be written (File too large)" in failed.stdout
    assert "Traceback" not in failed.stdout
    continue_sweep(file, tmp_path, undisturbed)


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    refused = call("sweep", toml(tmp_path, SWEEP), "--out", tmp_path / "runs", "--on", "tcp://127.0.0.1:9")
    assert refused.returncode == 2
    assert "error: --on tcp://127.0.0.1:9: no cluster answers there" in refused.stderr


def test_run_sweep_from_python(tmp_path: Path, undisturbed: Path) -> None:
    table = run_sweep(load_sweep(undisturbed / "many.toml", seeds=[2]), undisturbed)
    assert table["status"].tolist() == ["done"] * 2
    broken = toml(tmp_path, {"data": {"kind": ["mnist"]}}, data={"dir": "/nowhere", "image_px": 28})
    assert run_sweep(load_sweep(broken), tmp_path / "runs", workers=1)["status"].tolist() == ["failed"]
