"""Damaged run directories under the commands that read them, and under `resume`.

No traceback, whatever is damaged; commands that read change nothing; no code of the run is executed; `verify` does not
pass a finished run with changed tables; and what `resume` completes has the tables of the undisturbed run.
"""

import atexit
import hashlib
import json
import shutil
import stat
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import tomli_w

from tests.fuzz import damages
from tests.fuzz.command import Broken, command
from tests.resumable import Kill, Killer
from vefl_sim import from_tables, load_sweep, simulate, with_settings
from vefl_sim.core.errors import VeflError
from vefl_sim.core.tables import content_digest

_INDEX = "../sweeps/pair/index.csv"
COMMANDS = """
runs runs
runs runs/sweeps
verify runs/{run}
verify {run}
resume runs/{run}
trace runs/{run} --perfetto page.pftrace --round 1-2
trace runs/{run} --csv
trace {run} --kind update_lost
trace runs/{run} --why --cv 1 --round 1
trace runs/{run} --from 0.2 --to 1.5 --cv 3
sweep sweep.toml --dry-run
figure sweep.toml --to figures
report runs/{run} --to page.html
"""

# The runs that are damaged

SWEEP = """
run = { name = "pair", rounds = 2 }
roads.blocks = 3
traffic.mean_in_coverage = 6
radio = { coverage_radius_m = 120.0, prbs = 4 }
vefl = { round_s = 0.5, max_local_iterations = 5 }
data = { train_samples = 600, test_samples = 50, image_px = 16, min_samples = 5 }
model.factory = "tests.scripted:thousand_weights"
learning.kind = "none"
sweep = { seeds = [1], scheme.selected = [2, 3] }
figure = { kind = "cost", marks = [1] }
"""


class SampleRuns(NamedTuple):
    """A folder with sweep.toml and runs/, in which one run is done, one was stopped, and two are points of a sweep."""

    folder: Path
    names: dict[str, str]  # what damages call a run -> its directory in runs/
    digest: str  # of the tables that `stopped` will have


@cache
def sample_runs() -> SampleRuns:
    """Make the runs, once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="sample-runs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file, out = folder / "sweep.toml", folder / "runs"
    file.write_text(SWEEP)
    points = load_sweep(file).points
    first = simulate(points[0].experiment, out=out).path.name
    command("sweep", str(file), "--out", str(out), "--quiet", codes=[0])  # simulates the other one, writes the index
    tables = points[0].experiment.model_dump(exclude_none=True, exclude_defaults=True)
    traced = with_settings(from_tables(tables), "trace.slots=full", "run.rounds=4", "run.checkpoint_every=1")
    done = simulate(traced, out=folder / "others").path.rename(out / "done")
    with suppress(Kill):
        simulate(traced, out=folder / "others", watcher=Killer(round=4))
    [stopped] = (folder / "others").iterdir()
    stopped.rename(out / "stopped")
    digest = (done / "DONE").read_text().strip()
    return SampleRuns(folder, {"done": "done", "stopped": "stopped", "first": first}, digest)


# Damages, each a JSON object, so that an attempt can be written down and repeated

Damage = dict[str, Any]
EVIL = (
    "from pathlib import Path\nPath(__file__).with_name('EXECUTED').touch()\n\n\ndef x(*arguments):\n    return None\n"
)
"""A module that shows by a file that it was imported."""
HOSTILE_PARTS = "runs.done.evil:x runs.stopped.evil:x evil:x os:system subprocess:run antigravity:x builtins:exec no:x"
PART_KEYS = "scheme.kind mobility.kind radio.channel mac.scheduler rat.method data.kind model.factory"
SUITED: dict[str, damages.Damage] = {
    **{".json": damages.json_values, ".jsonl": damages.json_values},
    **{".parquet": damages.parquet, ".npz": damages.checkpoint},
}
CONTENTS = {damage.__name__: damage for damage in (*damages.BYTES, *SUITED.values())}
PLACES = {damage.__name__: damage for damage in damages.PLACES}


def draw_damage(random: Random, file: str) -> Damage:
    """A damage of a kind that suits the file; half of them are those that only its format can have."""
    if file == "resolved.toml" and random.random() < 0.5:
        key, name = random.choice(PART_KEYS.split()), random.choice(HOSTILE_PARTS.split())
        return {"do": "part", "file": file, "key": key, "name": name}
    kinds = [*damages.BYTES, *damages.BYTES, *damages.PLACES]
    if suited := SUITED.get(Path(file).suffix):
        kinds += [suited] * len(kinds)
    return {"do": random.choice(kinds).__name__, "file": file, "seed": random.randrange(10**6)}


def do_damage(damage: Damage, run: Path) -> None:
    """Damage a file of a run."""
    path, random, kind = run / damage["file"], Random(damage.get("seed")), damage["do"]
    if kind == "part":  # a part that is code of the run, or does harm when it is called
        table, key = damage["key"].split(".")
        tables = tomllib.loads(path.read_text())
        tables.setdefault(table, {})[key] = damage["name"]
        path.write_text(tomli_w.dumps(tables))
    elif kind in PLACES:
        with suppress(OSError):  # another damage may have put a file or a link in the place of its folder
            PLACES[kind](random, path)
    elif path.is_file() and path.stat().st_size < 2**24:  # another damage may have put something else there
        with suppress(Exception):  # or spoilt the format
            path.write_bytes(CONTENTS[kind](random, path.read_bytes()))


# The attack

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
        path = samples.folder / "runs" / samples.names[run]
        files = sorted(str(file.relative_to(path)) for file in path.rglob("*"))
        chosen = [random.choice(files) for _ in range(random.choice((1, 1, 1, 2, 4)))]
        drawn = [draw_damage(random, file) for file in ([_INDEX] if random.random() < 0.05 else chosen)]
        commands = [random.choice(COMMANDS.strip().splitlines()).split() for _ in range(3)]
        attempt = {"run": run, "damages": drawn, "commands": [["verify", "runs/{run}"], *commands]}
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
            before, undamaged = _files(run), samples.digest if attempt["run"] == "stopped" else _digest(run)
            for one in attempt["damages"]:
                do_damage(one, run)
            damaged = _changed(before, _files(run))
            forged = any(one["do"] == "checkpoint" for one in attempt["damages"])  # in a valid file: not detected
            for words in attempt["commands"]:
                _give([word.format(run=name) for word in words], run, None if forged else undamaged, damaged)
            for path in run.rglob("*"):
                if not path.is_symlink():
                    path.chmod(0o700)  # so that it can be removed


def _give(words: list[str], run: Path, digest: str | None, damaged: set[str]) -> None:
    """Give one command, and compare the run before and after it; `digest`: of its tables when it is done."""
    before, was_done, tables_changed = _files(run), (run / "DONE").exists(), _digest(run) != digest
    answer = command(*words)
    changed = _changed(before, _files(run))
    if (run / "EXECUTED").exists():
        raise Broken(f"{words} has executed code of the run")
    if words[0] == "resume" and not was_done:
        changed &= {"experiment.toml", "resolved.toml", "versions.json"} - damaged
        if answer.code == 0 and digest not in (None, (run / "DONE").read_text().strip()):
            raise Broken(f"the completed run has another digest than the undisturbed one, {digest}")
    if changed:
        raise Broken(f"{words} has changed {sorted(changed)}")
    if words[0] == "verify" and answer.code == 0 and was_done and digest and tables_changed:
        raise Broken(f"verify finds nothing wrong, although tables have changed: {answer.out}")


def _files(run: Path) -> Files:
    """Type, size and content of everything in a run."""
    return {
        str(path.relative_to(run)): _state(path)
        for path in run.rglob("*")
        if path.name not in ("EXECUTED", "__pycache__")
    }


def _state(path: Path) -> tuple[int, int, str]:
    status = path.lstat()
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    small = stat.S_ISREG(status.st_mode) and size < 2**24
    return stat.S_IFMT(status.st_mode), size, hashlib.sha256(path.read_bytes()).hexdigest() if small else ""


def _changed(before: Files, after: Files) -> set[str]:
    return {path for path in before | after if before.get(path) != after.get(path)}


def _digest(run: Path) -> str | None:
    """The content digest of the tables of a run; None if they cannot be read."""
    files = [file for file in (run / "tables").glob("*.parquet") if file.stem != "timings"]
    try:
        return content_digest(files) if all(file.is_file() for file in files) else None
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
