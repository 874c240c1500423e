"""Damaged run directories under the commands that read them, and under `resume`.

No traceback, whatever is damaged; commands that read change nothing; no code of the run is executed; `verify` does not
pass a finished run with changed tables; and what `resume` completes has the tables of the undisturbed run.
"""

import hashlib
import json
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.attack import Broken
from tests.fuzz.command import Answer, command
from tests.fuzz.damages import EVIL, damage, draw_damage
from tests.fuzz.sample_runs import SampleRuns, sample_runs
from vefl_sim.core.errors import VeflError
from vefl_sim.core.tables import content_digest

_INDEX = "sweeps/pair/index.csv"
COMMANDS = [
    line.split()
    for line in """
    runs runs
    runs runs/sweeps
    verify runs/{run}
    verify {run}
    resume runs/{run} -q
    resume runs/{run}
    trace runs/{run} --perfetto page.pftrace
    trace runs/{run} --perfetto page.pftrace --round 1-2
    trace runs/{run} --csv
    trace {run} --kind update_lost
    trace runs/{run} --why --cv 1 --round 1
    trace runs/{run} --why --cv 4 --round 2
    trace runs/{run} --from 0.2 --to 1.5 --cv 3
    sweep sweep.toml --dry-run
    figure sweep.toml --to figures
    report runs/{run} --to page.html
    """.strip().splitlines()
]
Files = dict[str, tuple[int, int, str]]


class RunDirectories:
    """Damages files of the sample runs."""

    name = "run-directories"
    goal = 2000
    limit_s = 40.0

    def make(self, random: Random, folder: Path) -> None:
        """Write down which files of which run are damaged, and which commands look at them."""
        samples = sample_runs()
        run = random.choice(("done", "done", "stopped", "stopped", "first"))
        files = _files_of(samples, run)
        damages = [draw_damage(random, random.choice(files)) for _ in range(random.choice((1, 1, 1, 2, 4)))]
        if random.random() < 0.05:
            damages = [draw_damage(random, f"../{_INDEX}")]
        commands = random.choices(COMMANDS, k=3)
        attempt = {"run": run, "damages": damages, "commands": [["verify", "runs/{run}"], *commands]}
        (folder / "attempt.json").write_text(json.dumps(attempt, indent=1))

    def check(self, folder: Path) -> None:
        """Damage a copy of the sample runs, and give the commands."""
        attempt = json.loads((folder / "attempt.json").read_text())
        samples = sample_runs()
        with tempfile.TemporaryDirectory(prefix="damaged-") as copy, _working_in(Path(copy)):
            shutil.copytree(samples.folder, copy, dirs_exist_ok=True)
            name = samples.names[attempt["run"]]
            run = Path("runs") / name
            (run / "evil.py").write_text(EVIL)
            before = _files(run)
            for one in sorted(attempt["damages"], key=lambda one: one["do"] == "inflate"):  # last: it cannot be read
                damage(one, run)
            after = _files(run)
            damaged = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            for words in attempt["commands"]:
                _give([word.format(run=name) for word in words], attempt, run, samples, damaged)
            for path in run.rglob("*"):
                if not path.is_symlink():
                    path.chmod(0o700)  # so that it can be removed


def _give(words: list[str], attempt: dict[str, Any], run: Path, samples: SampleRuns, damaged: set[str]) -> None:
    """Give one command, and compare the run before and after it."""
    before, changed = _files(run), _digest(run) != _digest_when_done(attempt["run"], samples)
    was_done = (run / "DONE").exists()
    answer = command(*words)
    after = _files(run)
    if (run / "EXECUTED").exists():
        raise Broken(f"{words} has executed code of the run")
    if words[0] != "resume" or was_done:
        _require_same(words, before, after)
    if words[0] == "verify" and answer.code == 0 and was_done and changed:
        raise Broken(f"verify finds nothing wrong, although tables have changed: {answer.out}")
    if words[0] == "resume":
        _require_original(words, before, after, damaged)
        _require_digest(answer, attempt, run, samples, was_done)


def _require_same(words: list[str], before: Files, after: Files) -> None:
    """Raise Broken if a command that only reads has changed a file of the run."""
    if before != after:
        changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        raise Broken(f"{words} has changed {sorted(changed)}")


def _require_original(words: list[str], before: Files, after: Files, damaged: set[str]) -> None:
    """Raise Broken if resuming has changed what describes the run."""
    for path in ("experiment.toml", "resolved.toml", "versions.json"):
        if path not in damaged and before.get(path) != after.get(path):
            raise Broken(f"{words} has changed {path}")


def _require_digest(answer: Answer, attempt: dict[str, Any], run: Path, samples: SampleRuns, was_done: bool) -> None:
    """Raise Broken if a run was completed with other tables; a forged checkpoint in a valid file is not detected."""
    forged = any(one["do"] == "checkpoint" for one in attempt["damages"])
    if answer.code or attempt["run"] != "stopped" or was_done or forged:
        return
    if (digest := (run / "DONE").read_text().strip()) != samples.digest:
        raise Broken(f"the completed run has the digest {digest}, the undisturbed one {samples.digest}")


def _files_of(samples: SampleRuns, run: str) -> list[str]:
    folder = samples.folder / "runs" / samples.names[run]
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def _files(run: Path) -> Files:
    """Type, size and content of everything in a run; the lock's content is left out, which reading may touch."""
    return {
        str(path.relative_to(run)): _state(path)
        for path in sorted(run.rglob("*"))
        if path.name not in ("EXECUTED", "__pycache__")
    }


def _state(path: Path) -> tuple[int, int, str]:
    status = path.lstat()
    small = stat.S_ISREG(status.st_mode) and status.st_size < 2**24
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if small else ""
    return stat.S_IFMT(status.st_mode), status.st_size if stat.S_ISREG(status.st_mode) else 0, digest


def _digest_when_done(run: str, samples: SampleRuns) -> str | None:
    """The digest that the tables of an undamaged sample have; those of `stopped` once it is resumed."""
    return samples.digest if run == "stopped" else _digest(samples.folder / "runs" / samples.names[run])


def _digest(run: Path) -> str | None:
    """The content digest of the tables of a run; None if they cannot be read."""
    files = [file for file in (run / "tables").glob("*.parquet") if file.stem != "timings"]
    if any(not file.is_file() for file in files):
        return None
    try:
        return content_digest(files)
    except VeflError:
        return None


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Work in a folder from which Python imports, as the commands of a user do, and forget what was imported."""
    paths = [*sys.path]
    with chdir(folder):
        try:
            yield
        finally:
            sys.path[:] = paths
            for name in [name for name in sys.modules if name.split(".")[0] in ("runs", "evil")]:
                del sys.modules[name]


ATTACK = RunDirectories()
