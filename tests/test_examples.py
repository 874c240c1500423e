"""Every example runs and prints exactly its committed .out file, so that a change of behaviour shows as a diff."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if number else [])
        for number, path in enumerate(EXAMPLES)
    ],
)
def test_example(example: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = example.with_suffix(".out")
    if os.environ.get("VEFL_SIM_UPDATE"):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_shorter_than_40_lines(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40
