"""Small runs to damage: one is done, one was stopped at its second checkpoint, and two are the points of a sweep."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.command import command
from tests.resumable import Kill, Killer
from vefl_sim import from_tables, load_sweep, simulate, with_settings

SWEEP = """
[run]
name = "pair"
rounds = 2
[roads]
blocks = 3
[traffic]
mean_in_coverage = 6
[radio]
coverage_radius_m = 120.0
prbs = 4
[vefl]
round_s = 0.5
max_local_iterations = 5
[data]
train_samples = 600
test_samples = 50
image_px = 16
min_samples = 5
[model]
factory = "tests.scripted:thousand_weights"
[learning]
kind = "none"
[sweep]
seeds = [1]
scheme.selected = [2, 3]
[figure]
kind = "cost"
marks = [1]
"""


class SampleRuns(NamedTuple):
    """A folder with sweep.toml and runs/, in which the first four directories are runs."""

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
    pair = [simulate(point.experiment, out=out).path.name for point in points]
    command("sweep", str(file), "--out", str(out), "--quiet", codes=[0])  # writes the index
    tables = points[0].experiment.model_dump(exclude_none=True, exclude_defaults=True)
    traced = with_settings(from_tables(tables), "trace.slots=full", "run.rounds=4", "run.checkpoint_every=1")
    done = simulate(traced, out=folder / "done")
    try:
        simulate(traced, out=folder / "stopped", watcher=Killer(round=4))
    except Kill:
        [stopped] = (folder / "stopped").iterdir()
    done.path.rename(out / "done")
    stopped.rename(out / "stopped")
    for name in ("done", "stopped"):
        (folder / name).rmdir()
    digest = (out / "done" / "DONE").read_text().strip()
    return SampleRuns(folder, {"done": "done", "stopped": "stopped", "first": pair[0], "second": pair[1]}, digest)
