"""Experiment files: mutated ones, which are dry-run, and extreme ones, which are run.

Exit code 0, and `verify` finds right what was written; or 2, with sentences that name key, option or file.
"""

import json
import math
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import tomli_w

from tests.fuzz import forked
from tests.fuzz.command import Broken, command, require_plain
from tests.fuzz.toml_mutations import TREE_MUTATIONS, Tree, any_key, any_value, text_mutation, toml_text
from vefl_sim.analysis.schema import file_schema
from vefl_sim.cli import dry_run
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import TABLES, Experiment
from vefl_sim.experiment.toml import from_tables

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path for path in ROOT.glob("experiments/**/*.toml") if path.name != "claims.toml")
SMALL: dict[str, Tree] = {
    "run": {"rounds": 3},
    "roads": {"blocks": 3},
    "traffic": {"mean_in_coverage": 6.0},
    "radio": {"coverage_radius_m": 150.0},
    "vefl": {"round_s": 1.0, "max_local_iterations": 5},
    "data": {"train_samples": 600, "test_samples": 50, "image_px": 16, "min_samples": 5},
    "learning": {"kind": "none"},
}
"""Keys that make a run a matter of seconds."""
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
            text = text_mutation(random, text)
        (folder / "experiment.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
        (folder / "arguments.json").write_text(json.dumps(_arguments(random, tables)))

    def check(self, folder: Path) -> None:
        """Dry-run the experiment as the command line asks; the first rounds are simulated only where that is quick."""
        first, *others = json.loads((folder / "arguments.json").read_text())
        file, out = folder / "experiment.toml", folder / "runs"
        words = [*([] if first == "run" else [first]), str(file), *others, "--out", str(out)]
        with patch.object(dry_run, "estimate", _estimate_if_quick):
            answer = command(*words, codes=(0, 2))
        for sentence in answer.sentences:
            if not _NAMES.search(sentence) and str(folder) not in sentence:
                raise Broken(f"a sentence that names neither key nor file: {sentence!r}")
        if out.exists():
            raise Broken(f"a dry run has written {[str(path) for path in out.rglob('*')][:5]}")


def _arguments(random: Random, tables: Tree) -> list[str]:
    """The command and its options; the options of --set and --seeds are mutated, too."""
    name = random.choice(("run", "sweep", "figure")) if "sweep" in tables or "compare" in tables else "run"
    words = [name, *(() if name == "figure" else ("--dry-run",))]
    for _ in range(random.choice((0, 0, 1, 2))):
        key = ".".join(any_key(random)) if random.random() < 0.75 else random.choice(WRONG_KEYS)
        value = toml_text({"v": any_value(random)}).partition("=")[2].strip()
        text = value if random.random() < 0.3 else random.choice(WRONG_VALUES)
        words += ["--set", f"{key}{random.choice(('=', '=', '=', ' = ', ''))}{text}"]
    return words + (["--seeds", random.choice(SEEDS)] if random.random() < 0.15 else [])


_estimate = dry_run.estimate


def _estimate_if_quick(experiment: Experiment) -> Any:
    """The estimate of a run, without figures if it would take too long: attack `extreme` starts such runs."""
    e = experiment
    images = (e.data.train_samples or 0) + (e.data.test_samples or 0) + e.data.validation_samples
    small = images <= 2000 and e.data.image_px <= 32 and e.mean_in_coverage <= 12 and max(e.roads.blocks_xy) <= 8
    simple = e.learning.kind == "none" and e.mobility.kind != "sumo" and e.traffic.arrivals_per_s is None
    short = e.vefl.round_s <= 2 and e.mobility.step_s >= 0.05
    quick = e.vefl.method == "lagrangian" and not e.rat.method.startswith("sca")
    return _estimate(experiment) if small and simple and short and quick else ()


FIXED = {"run": {"name": "extreme", "rounds": 3}, "model": {"factory": "tests.scripted:thousand_weights"}}
CAPS = {
    **{"run.rounds": 4, "run.seed": 2**63 - 1, "roads.block_m": 1000, "traffic.mean_in_coverage": 60},
    **{"traffic.arrivals_per_s": 10, "vefl.round_s": 4, "data.train_samples": 2000, "data.test_samples": 500},
    **{"data.validation_samples": 500, "data.image_px": 32, "vefl.max_local_iterations": 300, "radio.prbs": 60},
    **{"learning.iterations_per_step": 1000, "learning.threads": 4, "learning.batch_size": 2000},
}
"""Upper ends where the range would take minutes, not seconds: time and data, which only make runs longer."""
MULTIPLES = {"vefl.round_s": 1e-3, "mobility.step_s": 1e-3, "radio.prb_bandwidth_hz": 2.88e6}
"""Numbers must be multiples of a slot or of a resource block; multiples of these are, whatever the numerology."""
LEFT_OUT = {
    *("run.name", "run.watch", "run.duration_s", "mobility.file", "mobility.kind"),
    *("data.dir", "data.kind", "model.factory", "agent.features", "agent.policy"),
    *("flower.strategy", "flower.arguments"),
}
_SLOW_METHODS = ("sca", "sca-perspective", "sca-printed")  # a convex program for each slot or round


class Extreme:
    """Starts runs with keys drawn from the whole ranges that the schema of experiments declares."""

    name = "extreme"
    goal = 1000
    limit_s = 600.0

    def make(self, random: Random, folder: Path) -> None:
        """Write an experiment that is accepted: keys that are refused, one after the other, are taken back."""
        share, schema = random.choice((0.05, 0.2, 0.5)), file_schema()
        tables = {name: dict(keys) for name, keys in (SMALL | FIXED).items()}
        for table in TABLES:
            definition = schema["properties"][table]["$ref"].rsplit("/", 1)[1]
            for key, one in schema["$defs"][definition]["properties"].items():
                if f"{table}.{key}" not in LEFT_OUT and random.random() < share:
                    tables.setdefault(table, {})[key] = _draw(random, f"{table}.{key}", one)
        if random.random() < 0.2:
            tables["learning"]["kind"] = "jax"
        refused = [("", "")]
        while refused:
            tables.get(refused[0][0], {}).pop(refused[0][1], None)
            try:
                from_tables(tables)
                refused = []
            except ExperimentError as error:
                named = re.findall(r"\b([a-z]+)\.([a-z_]+)\b", str(error))
                refused = [(table, key) for table, key in named if key in tables.get(table, {}) and key != "name"]
        (folder / "extreme.toml").write_text(tomli_w.dumps(tables))

    def check(self, folder: Path) -> None:
        """Run it in a process of its own, and verify what it wrote."""
        out, output = folder / "runs", folder / "output"
        answer = forked.wait(forked.start([str(folder / "extreme.toml"), "--out", str(out)], output), output)
        require_plain(answer, codes=(0, 2))
        if answer.code == 0:
            [run] = [path for path in out.iterdir() if (path / "DONE").exists()]
            verified = command("verify", str(run))
            if verified.code:
                raise Broken(f"verify finds faults: {verified.out}")


def _draw(random: Random, key: str, schema: Tree) -> Any:
    """A value from the range of a key; numbers often at its ends, or uniform on a logarithmic scale."""
    if "anyOf" in schema:
        schema = random.choice([one for one in schema["anyOf"] if one.get("type") != "null" and "pattern" not in one])
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return random.choice([value for value in values if value not in _SLOW_METHODS] or values)
    if schema["type"] == "boolean":
        return random.random() < 0.5
    if schema["type"] == "array":
        return sorted(_draw(random, key, one) for one in schema["prefixItems"])
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", 1e9)), CAPS.get(key, math.inf))
    whole, multiple = schema["type"] == "integer", MULTIPLES.get(key)
    least = low + (1 if whole else 1e-9) * ("exclusiveMinimum" in schema)
    if (end := random.random()) < 0.2:
        number = least if end < 0.1 else high
    elif low >= 0 and high > 100 * max(low, 1e-12):
        number = math.exp(random.uniform(math.log(max(least, min(1e-9, high / 1e12))), math.log(high)))
    else:
        number = random.uniform(low, high)
    if multiple:
        number = round(max(1, round(number / multiple)) * multiple, 9)
    number = min(max(number, least), high)
    return math.floor(number) if whole and isinstance(number, float) else number


ATTACKS = (Experiments(), Extreme())
