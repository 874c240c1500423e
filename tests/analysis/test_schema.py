"""The JSON schema for editors against the program itself."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vefl_sim.analysis.schema import file_schema

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "experiments").rglob("*.toml") if path.name != "claims.toml")
assert len(FILES) > 20
SCHEMA = Draft202012Validator(file_schema())


def errors(tables: dict[str, Any]) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(tables)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(file_schema())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_shipped_experiment_is_valid(file: Path) -> None:
    assert errors(tomllib.loads(file.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[run]\nseed = 1",
        'run.name = "x"\nradio.prb = 3',
        'run.name = "x"\nradio.prbs = "three"',
        'run.name = "x"\ncompare = [{label = "a", scheme = {kid = "pdpc"}}]',
        'run.name = "x"\nsweep.radio.prbs = 3',
        'run.name = "x"\nsweep.radio.prbs = ["three"]',
        'run.name = "x"\nsweep.zip = [{radio = {prbs = 3}}]',
        'run.name = "x"\nsweep.seeds = ["one"]',
        'run.name = "x"\nfigure.kind = "histogram"',
        'run.name = "x"\nfigure.colour = "red"',
    ],
)
def test_mistakes_are_refused(text: str) -> None:
    assert errors(tomllib.loads(text))
