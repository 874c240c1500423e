"""A second process compiles the kernels of the network: the right ones, only if needed, and never after an error."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from tests.protocol.test_burst import BUSY
from vefl_sim import Experiment, simulate, with_settings
from vefl_sim.core.kernel import compiling
from vefl_sim.core.progress import heard_by
from vefl_sim.protocol import mac
from vefl_sim.simulation import compilation
from vefl_sim.simulation.compilation import compiling_ahead, rehearse

MANY_PRBS = with_settings(BUSY, "radio.prbs=20", "run.rounds=1")


@pytest.mark.parametrize("experiment", [BUSY, pytest.param(MANY_PRBS, marks=pytest.mark.slow)])
def test_a_rehearsal_calls_the_kernel_with_the_types_of_the_run(
    monkeypatch: pytest.MonkeyPatch, experiment: Experiment
) -> None:
    types, kernel = [], mac.run_slots

    def noted(*arguments) -> int:
        types.append(tuple(map(numba.typeof, arguments)))
        return kernel(*arguments)

    monkeypatch.setattr(mac, "run_slots", noted)
    rehearse(experiment)
    rehearsed, types[:] = set(types), []
    simulate(experiment, out=None)
    assert len(rehearsed) == 1
    assert set(types) == rehearsed


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Processes that were started, each of which waits for its input to end; the cache is empty."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(experiment: Experiment) -> subprocess.Popen[bytes]:
        code = "import sys; sys.exit(int(sys.stdin.read() or 0))"
        processes.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE))
        return processes[-1]

    monkeypatch.setattr(compilation, "_start", start)
    monkeypatch.setattr(compilation, "cores", lambda: 2)
    monkeypatch.setattr(compilation, "cache_folder", lambda: tmp_path)
    return processes


def test_the_kernels_are_compiled_once(started: list[subprocess.Popen[bytes]]) -> None:
    heard = []
    for code in (b"1", b"0", None):  # the first process fails, the third is not needed
        with heard_by(lambda *words: heard.append(words)), compiling_ahead(BUSY) as compiler:
            assert (compiler is not None) == (code is not None)
            if code:
                started[-1].communicate(code)
    assert [process.returncode for process in started] == [1, 0]
    assert set(heard) == {(compiling(), "")}


def test_the_process_ends_with_an_error_of_the_preparation(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyboardInterrupt), compiling_ahead(BUSY):
        raise KeyboardInterrupt
    assert started[0].poll() is not None


@pytest.mark.parametrize(
    "setting",
    [
        "learning.threads=1",
        "scheme.constrained=false",
        "rat.method=tests.protocol.test_burst:plain_policy",
    ],
)
def test_no_process_where_it_would_not_help(started: list[subprocess.Popen[bytes]], setting: str) -> None:
    table, _, value = setting.partition("=")
    name, _, key = table.partition(".")
    changed = getattr(BUSY, name).model_copy(update={key: {"1": 1, "false": False}.get(value, value)})
    with compiling_ahead(BUSY.model_copy(update={name: changed})):
        pass
    assert not started


@pytest.mark.slow
def test_the_second_process_fills_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEFL_SIM_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "typing.py").write_text("raise SystemExit(1)")  # the current directory is not searched
    assert compilation._start(BUSY).wait() == 0
    assert [*tmp_path.glob("numba/*/*/burst.run_slots*.nbc")], os.listdir(tmp_path)
