"""A run in a process of its own, killed for real: SIGKILL at random moments, SIGTERM, Ctrl-C, a full disk.

VEFL_SIM_KILLS says how often it is killed; `make soak` says 100.
"""

import multiprocessing
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.resumable import STOPPED, contents, figures, only
from vefl_sim import Run, resume, simulate, with_settings
from vefl_sim.cli import main
from vefl_sim.loading import to_toml

KILLS = int(os.environ.get("VEFL_SIM_KILLS", "20"))
LONG = with_settings(STOPPED, "run.rounds=30", "vefl.round_s=0.5")

# Forked from a process that has imported everything: importing it for each of them would take the most time.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.resumable", "vefl_sim.progress", "vefl_sim.learning.jax_learner"])


def command_line(arguments: Sequence[str], errors: Path, most_bytes: int | None, cores: int | None) -> None:
    """In the child: what `python -m vefl_sim` does, its errors in a file, with no file larger and no more cores."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    main(arguments)


def start(arguments: Sequence[str], most_bytes: int | None = None, cores: int | None = None) -> BaseProcess:
    process = processes.Process(target=command_line, args=(arguments, errors(arguments), most_bytes, cores))
    process.start()
    return process


def errors(arguments: Sequence[str]) -> Path:
    return Path(arguments[0]).with_name("errors")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(LONG, out=tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def arguments(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "stopped.toml").write_text(to_toml(LONG))
    return str(tmp_path / "stopped.toml"), "--out", str(tmp_path / "runs"), "--quiet"


def sessions(folder: Path) -> int:
    """How often somebody has begun to work on the run."""
    logs = list(folder.glob("*/sessions.jsonl"))
    return len(logs[0].read_text().splitlines()) if logs else 0


def wait_until(happened: Callable[[], bool], process: BaseProcess) -> None:
    while not happened() and process.is_alive():
        time.sleep(0.002)


def checkpoint(folder: Path) -> int:
    """The round before which the last one was written."""
    return max((int(file.stem) for file in folder.glob("*/checkpoints/*.npz")), default=0)


def test_sigkill_at_random_moments(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Mostly a little after it has begun to work, so that it gets somewhere; sometimes while it prepares."""
    draw, folder, killed = random.Random(KILLS), tmp_path / "runs", 0
    mean_s = 1.5 * undisturbed.summary["wall_s"] / KILLS
    while killed < KILLS and not list(folder.glob("*/DONE")):
        before, process = sessions(folder), start(arguments)
        if draw.random() < 0.9:
            wait_until(lambda before=before: sessions(folder) > before, process)
        process.join(draw.expovariate(1 / mean_s))
        killed += process.is_alive()
        process.kill()
        process.join()
    run = simulate(LONG, out=folder)
    assert killed >= KILLS // 2
    assert contents(run) == contents(undisturbed)
    assert figures(run) == figures(undisturbed)
    assert run.content_digest() == undisturbed.summary["content_digest"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path, number: int) -> None:
    folder, stopped = tmp_path / "runs", 0
    for _ in range(2):
        before, process = checkpoint(folder), start(arguments)
        wait_until(lambda before=before: checkpoint(folder) > before, process)
        time.sleep(random.random() / 5)
        os.kill(process.pid or 0, number)
        process.join(60)
        assert process.exitcode == 130
        stopped += f"stopped after {checkpoint(folder) - 1} rounds" in errors(arguments).read_text()
    run = only(folder)
    assert (stopped, run.state) == (2, "unfinished")
    assert contents(resume(run)) == contents(undisturbed)


def test_a_second_process_is_told_so(arguments: tuple[str, ...], tmp_path: Path) -> None:
    first = start(arguments)
    wait_until(lambda: sessions(tmp_path / "runs") > 0, first)
    run = only(tmp_path / "runs")
    assert run.state == "running"
    second = start(arguments)
    second.join(60)
    assert second.exitcode == 2
    assert f"{run.path} is being run by process {first.pid} on" in errors(arguments).read_text()
    assert first.is_alive()
    first.kill()
    first.join()
    assert run.state == "unfinished"


def test_a_full_disk(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    largest = max(file.stat().st_size for file in (undisturbed.path / "tables").iterdir())
    process = start(arguments, most_bytes=largest - 1)  # the parts fit, the whole table does not
    process.join(120)
    assert process.exitcode == 1
    told = errors(arguments).read_text().strip()
    assert len(told.splitlines()) == 1
    assert "cannot be written (File too large" in told
    assert "run the same command again; what was written before stays." in told
    run = only(tmp_path / "runs")
    assert run.state == "unfinished"
    assert len(run.rounds) == 30
    assert contents(resume(run)) == contents(undisturbed)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_one_core_gives_what_all_give(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    process = start(arguments, cores=1)
    process.join(120)
    assert process.exitcode == 0
    assert contents(only(tmp_path / "runs")) == contents(undisturbed)
