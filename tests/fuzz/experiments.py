"""Mutated experiment files and options, read and dry-run: exit code 0, or 2 with sentences that name key or file."""

import json
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tests.fuzz.command import Answer, Broken, command
from tests.fuzz.toml_mutations import TEXT_MUTATIONS, TREE_MUTATIONS, Tree, any_key, any_value, toml_text
from vefl_sim.cli import dry_run
from vefl_sim.experiment.experiment import Experiment

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path for path in ROOT.glob("experiments/**/*.toml") if path.name != "claims.toml")
SMALL: Tree = {
    "run": {"rounds": 2},
    "roads": {"blocks": 3},
    "traffic": {"mean_in_coverage": 6},
    "radio": {"coverage_radius_m": 120.0},
    "vefl": {"round_s": 1.0, "max_local_iterations": 5},
    "data": {"train_samples": 600, "test_samples": 50, "image_px": 16},
    "learning": {"kind": "none"},
}
"""Keys that make the first rounds of an experiment a matter of a second."""
SEEDS = ("1-5", "5-1", "1,1", "", "x", "1-99999999999", "-1", "9" * 30, "9" * 5000, "1-5,", "１")
WRONG_KEYS = (
    *("", "=", "run", "run.", ".x", "a.b.c", "sweep.radio.prbs", "compare.label", "base", "run.x\0", "sweep.seeds"),
    *("a" * 5000, "run.\x1b[1m"),
)
WRONG_VALUES = ("[" * 10, "[" * 1000, "[" * 100_000, "1\nrun.name=2", "1 # x", '"', "nan", "[1,", "a b")
_NAMES = re.compile(
    rf"\b({'|'.join(Experiment.model_fields)}|compare|sweep|figure|seeds|base|label|name)\b|--\w+"
    r"|^There are \d+ more problems"
)


class Experiments:
    """Mutates the experiments that come with the program."""

    name = "experiments"
    goal = 5000
    limit_s = 120.0

    def make(self, random: Random, folder: Path) -> None:
        """Write experiment.toml, base.toml if it has one, and the words of the command line."""
        shipped = random.choice(SHIPPED)
        tables = tomllib.loads(shipped.read_text())
        if "sweep" not in tables and "compare" not in tables:
            tables = {name: tables.get(name, {}) | SMALL.get(name, {}) for name in (*tables, *SMALL)}
            tables["run"].pop("duration_s", None)
        if "base" in tables:
            (folder / "base.toml").write_text((shipped.parent / "base.toml").read_text())
        for _ in range(random.choice((0, 1, 1, 2, 3, 8))):
            random.choice(TREE_MUTATIONS)(random, tables)
        text = toml_text(tables)
        for _ in range(random.choice((0, 0, 0, 1, 2))):
            text = random.choice(TEXT_MUTATIONS)(random, text)
        (folder / "experiment.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
        (folder / "arguments.json").write_text(json.dumps(_arguments(random, tables)))

    def check(self, folder: Path) -> None:
        """Dry-run the experiment as the command line asks; the first rounds are simulated only where that is quick."""
        first, *others = json.loads((folder / "arguments.json").read_text())
        file, out = folder / "experiment.toml", folder / "runs"
        words = [*([] if first == "run" else [first]), str(file), *others, "--out", str(out)]
        with patch.object(dry_run, "estimate", _estimate_if_quick):
            answer = command(*words, codes=(0, 2))
        if answer.code == 2:
            _require_place(answer, file)
        if out.exists():
            raise Broken(f"a dry run has written {[str(path) for path in out.rglob('*')][:5]}")


_estimate = dry_run.estimate


def _estimate_if_quick(experiment: Experiment) -> Any:
    """The estimate of a run, without figures if it would take too long: attack `extreme` starts such runs."""
    e = experiment
    quick = (
        e.learning.kind == "none"
        and e.mobility.kind != "sumo"
        and (e.data.train_samples or 0) + (e.data.test_samples or 0) + e.data.validation_samples <= 2000
        and e.data.image_px <= 32
        and e.traffic.arrivals_per_s is None
        and e.mean_in_coverage <= 12
        and e.vefl.round_s <= 2
        and e.mobility.step_s >= 0.05
        and max(e.roads.blocks_xy) <= 8
        and e.vefl.method == "lagrangian"
        and not e.rat.method.startswith("sca")
    )
    return _estimate(experiment) if quick else ()


def _require_place(answer: Answer, file: Path) -> None:
    """Raise Broken if a sentence names neither a key, nor an option, nor the file."""
    for sentence in answer.sentences:
        if not _NAMES.search(sentence) and str(file.parent) not in sentence:
            raise Broken(f"a sentence that names neither key nor file: {sentence!r}")


def _arguments(random: Random, tables: Tree) -> list[str]:
    """The command and its options; the options of --set and --seeds are mutated, too."""
    several = "sweep" in tables or "compare" in tables
    name = random.choice(("run", "sweep", "figure")) if several else "run"
    words = [name, *(() if name == "figure" else ("--dry-run",))]
    for _ in range(random.choice((0, 0, 1, 2))):
        words += ["--set", _setting(random)]
    if random.random() < 0.15:
        words += ["--seeds", random.choice(SEEDS)]
    return words


def _setting(random: Random) -> str:
    key = ".".join(any_key(random)) if random.random() < 0.75 else random.choice(WRONG_KEYS)
    value = toml_text({"v": any_value(random)}).partition("=")[2].strip()
    text = value if random.random() < 0.3 else random.choice(WRONG_VALUES)
    return f"{key}{random.choice(('=', '=', '=', ' = ', ''))}{text}"


ATTACK = Experiments()
