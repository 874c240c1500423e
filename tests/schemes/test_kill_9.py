"""A run that is killed with SIGKILL and continued has the bytes of an undisturbed run: all schemes with a memory."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.fuzz import forked
from tests.fuzz.command import require_plain
from tests.resumable import EXPERIMENT, contents, figures, only
from vefl_sim import Run, load, simulate

_WITHOUT_ROUNDS = ("fedasync", "fedbuff")
_SELECTING = ("pdpc", "oort")


def written(folder: Path, kind: str, codec: str) -> Path:
    """The experiment of `tests.resumable` with a scheme and a codec, as a file."""
    tables: dict[str, Any] = {name: dict(table) for name, table in EXPERIMENT.items()}
    tables["scheme"] = {"kind": kind} | ({"selected": 5} if kind in _SELECTING else {})
    tables["update"] = {"codec": codec}
    if kind in _WITHOUT_ROUNDS:
        tables["mac"] = {"start": "ready"}
    toml = folder / "killed.toml"
    toml.write_text(tomli_w.dumps(tables))
    return toml


def finished(toml: Path, out: Path) -> Run:
    """The run of a process that nobody kills."""
    output = out.with_suffix(".output")
    process = forked.start([str(toml), "--out", str(out), "--quiet"], output)
    require_plain(forked.wait(process, output), codes=[0])
    return only(out)


def killed(toml: Path, out: Path, round: int) -> int:
    """Kill the process of a run as soon as it has a checkpoint of this round or a later one; return that round.

    On a busy machine the run may be done before the kill: then once more.
    """
    for _ in range(5):
        shutil.rmtree(out, ignore_errors=True)
        process = forked.start([str(toml), "--out", str(out), "--quiet"], out.with_suffix(".output"))
        while process.is_alive() and last_checkpoint(out) < round:
            time.sleep(0.002)
        process.kill()
        process.join()
        if last_checkpoint(out) < EXPERIMENT["run"]["rounds"]:  # a run is done only after its last checkpoint
            return last_checkpoint(out)
    raise AssertionError(f"no run could be killed in time: {out.with_suffix('.output').read_text()}")


def last_checkpoint(out: Path) -> int:
    """The round of the newest checkpoint in a folder of runs; 0: there is none."""
    return max((int(file.stem) for file in out.glob("*/checkpoints/[0-9]*.npz")), default=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        *((kind, "float32") for kind in ("fedadam", "fedyogi", "scaffold", "feddyn", "oort", "fedasync")),
        *(("pdpc", "top-k"), ("fedbuff", "top-k")),
    ],
)
def test_a_run_after_sigkill_is_the_same(kind: str, codec: str, tmp_path: Path) -> None:
    toml = written(tmp_path, kind, codec)
    undisturbed = simulate(load(toml), out=tmp_path / "undisturbed")
    assert undisturbed.summary["updates_applied"] > 5
    round = killed(toml, tmp_path / "killed", 4)
    assert 4 <= round < EXPERIMENT["run"]["rounds"]  # type: ignore[operator]
    assert not only(tmp_path / "killed").is_done
    resumed = finished(toml, tmp_path / "killed")
    assert contents(resumed) == contents(undisturbed)
    assert figures(resumed) == figures(undisturbed)
    assert resumed.content_digest() == undisturbed.summary["content_digest"]
