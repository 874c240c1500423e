"""A run in a process of its own, killed for real: SIGKILL at random moments, SIGTERM, Ctrl-C, a full disk.

`python -m tests.fuzz --only kills` kills more runs, of all schemes.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from shutil import rmtree

import pytest

from tests.fuzz import forked
from tests.resumable import STOPPED, contents, figures, only
from vefl_sim import Run, resume, simulate, with_settings
from vefl_sim.experiment.toml import to_toml

pytestmark = pytest.mark.slow
KILLS = 10
LONG = with_settings(STOPPED, "run.rounds=30", "vefl.round_s=0.5")


def start(arguments: Sequence[str], **limits: int) -> BaseProcess:
    return forked.start(arguments, Path(arguments[0]), **limits)


def errors(arguments: Sequence[str]) -> str:
    return Path(arguments[0]).with_suffix(".errors").read_text()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(LONG, out=tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def arguments(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "stopped.toml").write_text(to_toml(LONG))
    return str(tmp_path / "stopped.toml"), "--out", str(tmp_path / "runs"), "--quiet"


def wait_until(happened: Callable[[], bool], process: BaseProcess) -> None:
    while not happened() and process.is_alive():
        time.sleep(0.002)


def is_at_work(folder: Path, since: float) -> bool:
    """Whether a process has begun to work on the run."""
    return any(written(file) > since for file in folder.glob("*/sessions.jsonl"))


def written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def checkpoint(folder: Path) -> int:
    """The round before which the last checkpoint was written."""
    return max((int(file.stem) for file in folder.glob("*/checkpoints/*.npz")), default=0)


def test_sigkill_at_random_moments(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Kill while the run is prepared, in its first round, while a checkpoint is written, or some rounds later."""
    draw, folder = random.Random(KILLS), tmp_path / "runs"
    killed, resumed_from = 0, []
    while killed < KILLS:
        before, began, process = checkpoint(folder), time.time(), start(arguments)
        if (when := draw.random()) < 0.9:
            wait_until(lambda began=began: is_at_work(folder, began), process)
        if when < 0.75:
            wait_until(lambda before=before: checkpoint(folder) > before, process)
        process.join(draw.uniform(0, 3) * undisturbed.summary["wall_s"] / 30)
        if process.is_alive():
            killed, resumed_from = killed + 1, [*resumed_from, before]
        process.kill()
        process.join()
        if list(folder.glob("*/DONE")):  # the run ended before the kill: compare it, and start again
            compare(only(folder), undisturbed)
            rmtree(folder)
    assert sum(round > 0 for round in resumed_from) > KILLS / 2
    assert len(set(resumed_from)) > min(KILLS / 4, 10)
    compare(simulate(LONG, out=folder), undisturbed)


def compare(run: Run, undisturbed: Run) -> None:
    assert contents(run) == contents(undisturbed)
    assert figures(run) == figures(undisturbed)
    assert run.content_digest() == undisturbed.summary["content_digest"]


def test_requests_to_stop(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        before, process = checkpoint(folder), start(arguments)
        wait_until(lambda before=before: checkpoint(folder) > before, process)
        os.kill(process.pid or 0, number)
        process.join(60)
        assert process.exitcode == 130
        assert f"stopped after {checkpoint(folder) - 1} rounds" in errors(arguments)
    run = only(folder)
    assert run.state == "unfinished"
    assert not list(run.path.glob("**/*.partial"))
    assert contents(resume(run)) == contents(undisturbed)


def test_a_request_while_it_prepares(arguments: tuple[str, ...], tmp_path: Path) -> None:
    process = start(arguments)
    wait_until((tmp_path / "runs").exists, process)  # from then on the run handles signals
    while process.is_alive():  # Python loses an interrupt that comes within a callback of its garbage collector
        process.join(0.5)
        process.terminate()
    assert process.exitcode == 130
    assert not list((tmp_path / "runs").glob("*/DONE"))


@pytest.mark.parametrize("where", ["checkpoint", "table"])
def test_a_full_disk(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path, where: str) -> None:
    """The first checkpoint does not fit; or all parts fit, but the whole table does not."""
    largest = max(file.stat().st_size for file in (undisturbed.path / "tables").iterdir())
    process = start(arguments, most_bytes=largest - 1 if where == "table" else 30_000)
    process.join(120)
    assert process.exitcode == 1
    message = errors(arguments).strip()
    assert len(message.splitlines()) == 1
    assert "cannot be written (File too large" in message
    run = only(tmp_path / "runs")
    assert message.endswith(f"files written before are kept. Continue with: python -m vefl_sim resume {run.path}")
    assert run.state == "unfinished"
    assert run.summary.get("rounds", 0) == (30 if where == "table" else 0)
    assert contents(resume(run)) == contents(undisturbed)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_one_core_gives_what_all_give(undisturbed: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    process = start(arguments, cores=1)
    process.join(120)
    assert process.exitcode == 0
    assert contents(only(tmp_path / "runs")) == contents(undisturbed)
