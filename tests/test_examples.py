"""Every example runs and prints exactly its committed .out file, so that a change of behaviour shows as a diff."""

import os
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.command_line import finish, start

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if number else [])
        for number, path in enumerate(EXAMPLES)
    ],
)
def test_example(example: Path, tmp_path: Path) -> None:
    done = finish(start(example, cwd=tmp_path, stderr=PIPE))
    assert done.returncode == 0, done.stderr
    expected = example.with_suffix(".out")
    if os.environ.get("VEFL_SIM_UPDATE"):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_shorter_than_40_lines(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40
