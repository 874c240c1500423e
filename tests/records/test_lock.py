"""One process at a time works on a run; files left by a dead process do not block others."""

import json
from pathlib import Path

import pytest

from vefl_sim.core.errors import RunLocked, RunNotFound
from vefl_sim.records.lock import is_locked, locked


@pytest.fixture(autouse=True)
def is_run(tmp_path: Path) -> None:
    (tmp_path / "resolved.toml").touch()


def test_a_run_is_locked_until_the_lock_is_released(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with locked(tmp_path, {"python": "3"}):
        assert is_locked(tmp_path)
        with pytest.raises(RunLocked, match=r"is being run by process \d+ on .* since .*--fresh"), locked(tmp_path, {}):
            pass
        (tmp_path / "sessions.jsonl").write_text("{")
        with pytest.raises(RunLocked, match="by another process"), locked(tmp_path, {}):
            pass
    assert not is_locked(tmp_path)


def test_sessions_are_logged_and_an_error_releases_the_lock(tmp_path: Path) -> None:
    for version in "ab":
        with pytest.raises(ZeroDivisionError), locked(tmp_path, {"python": version}):
            raise ZeroDivisionError
    log = [json.loads(line) for line in (tmp_path / "sessions.jsonl").read_text().splitlines()]
    assert [session["versions"]["python"] for session in log] == ["a", "b"]
    assert not is_locked(tmp_path)


def test_of_a_run_that_is_no_more_nothing_else_is_removed(tmp_path: Path) -> None:
    run = tmp_path / "removed"
    run.mkdir()
    (run / "experiment.toml").touch()
    with pytest.raises(RunNotFound, match="removed by another process"), locked(run, {}):
        pass
    assert [path.name for path in run.glob("*")] == ["experiment.toml"]
