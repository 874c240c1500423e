"""kill -9 at random moments of a run, which is then continued: its tables have the bytes of an undisturbed run."""

import json
import time
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

from tests.fuzz import forked
from tests.fuzz.command import Broken, require_plain
from tests.resumable import EXPERIMENT, contents, figures, only
from vefl_sim import Run

SCHEMES: tuple[dict[str, Any], ...] = (
    *({"kind": kind} for kind in ("scaffold", "feddyn", "fedadam", "fedyogi", "oort", "krum", "fedasync")),
    *({"kind": "pdpc", "selected": 5}, {"kind": "fdpc"}, {"kind": "fedprox"}, {"kind": "random", "selected": 4}),
    *({"kind": "afa-cd"}, {"kind": "fedbuff"}, {"kind": "fdpc", "constrained": False}),
)
KILLS = 3
"""Kills of one run."""


class Kills:
    """Kills runs of all schemes, with checkpoints after every round or every few rounds."""

    name = "kills"
    goal = 100
    limit_s = 600.0

    def make(self, random: Random, folder: Path) -> None:
        """Write the experiment, and the moments of the kills as shares of the time of an undisturbed run."""
        every, seed = random.choice((1, 1, 2, 3, 5)), random.randrange(1000)
        changed = {
            "run": EXPERIMENT["run"] | {"rounds": 12, "checkpoint_every": every, "seed": seed},
            "scheme": random.choice(SCHEMES),
            "learning": {"kind": "none"} if random.random() < 0.7 else {},
            "vefl": {"round_s": 0.5, "max_local_iterations": 4},
        }
        (folder / "killed.toml").write_text(tomli_w.dumps(EXPERIMENT | changed))
        (folder / "kills.json").write_text(json.dumps([round(random.random(), 3) for _ in range(KILLS)]))

    def check(self, folder: Path) -> int:
        """Kill the run at these moments, continue it each time, and compare it with an undisturbed one."""
        toml, began = folder / "killed.toml", time.monotonic()
        undisturbed = finished(toml, folder / "undisturbed")
        whole_s = time.monotonic() - began
        killed = 0
        for share in json.loads((folder / "kills.json").read_text()):
            process = forked.start([str(toml), "--out", str(folder / "killed"), "--quiet"], folder / "output")
            process.join(share * whole_s)
            killed += process.is_alive()
            process.kill()
            process.join()
        run = finished(toml, folder / "killed")
        if (contents(run), figures(run)) != (contents(undisturbed), figures(undisturbed)):
            differing = [name for name, rows in contents(run).items() if contents(undisturbed).get(name) != rows]
            raise Broken(f"after {killed} kills, {differing} have other bytes; the summary is {figures(run)}")
        return killed


def finished(toml: Path, out: Path) -> Run:
    """The run of a process that nobody kills."""
    output = out.with_suffix(".output")
    process = forked.start([str(toml), "--out", str(out), "--quiet"], output)
    require_plain(forked.wait(process, output), codes=[0])
    return only(out)


ATTACK = Kills()
