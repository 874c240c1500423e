"""Runs with keys anywhere in their ranges: each ends with tables that `verify` finds right, or with one sentence."""

import math
import re
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

from tests.fuzz import forked
from tests.fuzz.command import Broken, command, require_plain
from vefl_sim.analysis.schema import file_schema
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import from_tables

Json = dict[str, Any]
SMALL: dict[str, Json] = {
    "run": {"name": "extreme", "rounds": 3},
    "roads": {"blocks": 3},
    "traffic": {"mean_in_coverage": 6.0},
    "radio": {"coverage_radius_m": 150.0},
    "vefl": {"round_s": 1.0, "max_local_iterations": 5},
    "data": {"train_samples": 600, "test_samples": 50, "image_px": 16, "min_samples": 5},
    "model": {"factory": "tests.scripted:thousand_weights"},
    "learning": {"kind": "none"},
}
"""Keys of every run that are not drawn: a short run with little data."""
CAPS = {
    **{"run.rounds": 4, "run.seed": 2**63 - 1, "roads.block_m": 1000, "traffic.mean_in_coverage": 60},
    **{"traffic.arrivals_per_s": 10, "vefl.round_s": 4, "data.train_samples": 2000, "data.test_samples": 500},
    **{"data.validation_samples": 500, "data.image_px": 32, "vefl.max_local_iterations": 300, "radio.prbs": 60},
    **{"learning.iterations_per_step": 1000, "learning.threads": 4, "learning.batch_size": 2000},
}
"""Upper ends where the range would take minutes, not seconds: time and data, which only make runs longer."""
LEFT_OUT = {"run.name", "run.duration_s", "mobility.file", "data.dir", "data.kind", "model.factory", "mobility.kind"}
_SLOW_METHODS = ("sca", "sca-perspective", "sca-printed")  # a convex program for each slot or round


class Extreme:
    """Starts runs with keys drawn from the whole ranges that the schema of experiments declares."""

    name = "extreme"
    goal = 1000
    limit_s = 600.0

    def make(self, random: Random, folder: Path) -> None:
        """Write an experiment that is accepted: keys that contradict others are taken back."""
        share = random.choice((0.05, 0.2, 0.5))
        tables = {name: dict(keys) for name, keys in SMALL.items()}
        for key, schema in _keys():
            if key not in LEFT_OUT and random.random() < share:
                table, _, name = key.partition(".")
                tables.setdefault(table, {})[name] = _draw(random, key, schema)
        if random.random() < 0.2:
            tables["learning"]["kind"] = "jax"
        _fit(tables)
        (folder / "extreme.toml").write_text(tomli_w.dumps(_accepted(tables)))

    def check(self, folder: Path) -> None:
        """Run it in a process of its own, and verify what it wrote."""
        out, output = folder / "runs", folder / "output"
        process = forked.start([str(folder / "extreme.toml"), "--out", str(out)], output)
        answer = forked.wait(process, output)
        require_plain(answer)
        if answer.code == 1:
            raise Broken(f"the run failed: {answer.errors[-1000:]}")
        if answer.code == 0:
            [run] = [path for path in out.iterdir() if (path / "DONE").exists()]
            verified = command("verify", str(run))
            if verified.code:
                raise Broken(f"verify finds faults: {verified.out}")


def _keys() -> list[tuple[str, Json]]:
    """The keys of all tables with their schemas."""
    schema = file_schema()
    tables = {name: schema["properties"][name]["$ref"].rsplit("/", 1)[1] for name in Experiment.model_fields}
    return [
        (f"{name}.{key}", value)
        for name, table in tables.items()
        for key, value in schema["$defs"][table]["properties"].items()
    ]


def _draw(random: Random, key: str, schema: Json) -> Any:
    """A value from the range of a key, often at its ends."""
    if "anyOf" in schema:
        schema = random.choice([one for one in schema["anyOf"] if one.get("type") != "null" and "pattern" not in one])
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return random.choice([value for value in values if value not in _SLOW_METHODS] or values)
    if schema["type"] == "boolean":
        return random.random() < 0.5
    if schema["type"] == "array":
        return sorted(_number(random, key, one) for one in schema["prefixItems"])
    return _number(random, key, schema)


def _number(random: Random, key: str, schema: Json) -> float:
    """A number between the ends, uniform on a logarithmic scale where they are far apart."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", 1e9)), CAPS.get(key, math.inf))
    inner = 1e-9 if "exclusiveMinimum" in schema else 0
    whole = schema["type"] == "integer"
    if (end := random.random()) < 0.2:
        number = low + (1 if whole and inner else inner) if end < 0.1 else high
    elif low >= 0 and high > 100 * max(low, 1e-12):
        number = math.exp(random.uniform(math.log(max(low, min(1e-9, high / 1e12), inner)), math.log(high)))
    else:
        number = random.uniform(low, high)
    number = min(max(number, low + inner), high)
    return math.floor(number) if whole and isinstance(number, float) else number


def _fit(tables: dict[str, Json]) -> None:
    """Round what must be a multiple, and order what must be ordered."""
    numerology = tables["radio"].get("numerology", 1)
    slot_s, block_hz = 1e-3 / 2**numerology, 180e3 * 2**numerology
    for table, key in (("vefl", "round_s"), ("mobility", "step_s")):
        if key in tables.get(table, {}):
            slots = max(1, round(tables[table][key] / slot_s))
            tables[table][key] = round(slots * slot_s, 9)
    if "prb_bandwidth_hz" in tables["radio"]:
        tables["radio"]["prb_bandwidth_hz"] = block_hz * max(1, round(tables["radio"]["prb_bandwidth_hz"] / block_hz))
    vefl = tables["vefl"]
    vefl["min_local_iterations"] = min(vefl.get("min_local_iterations", 1), vefl["max_local_iterations"])


def _accepted(tables: dict[str, Json]) -> dict[str, Json]:
    """The tables without the keys that the experiment refuses, one after the other."""
    for _ in range(100):
        try:
            from_tables(tables)
        except ExperimentError as error:
            named = re.findall(r"\b([a-z]+)\.([a-z_]+)\b", str(error))
            refused = [(table, key) for table, key in named if key in tables.get(table, {}) and key != "name"]
            if not refused:
                break
            table, key = refused[0]
            del tables[table][key]
        else:
            break
    return tables


ATTACK = Extreme()
