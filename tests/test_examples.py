"""Every example runs and prints exactly its committed .out file, so that a change of behaviour shows as a diff."""

import os
import re
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from subprocess import PIPE

import nbformat
import pytest
from nbclient import NotebookClient

from tests.command_line import ENVIRONMENT, ROOT, finish, start

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PACKAGES = {"10_hugging_face_data": "datasets"}
"""Packages that only one example needs, and that are no dependencies."""
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if number else [])
        for number, path in enumerate(EXAMPLES)
    ],
)
def test_example(example: Path, tmp_path: Path) -> None:
    if package := PACKAGES.get(example.stem):
        try:  # not by importing it: folders of the tests may have the same name
            metadata.version(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"needs pip install {package}")
    done = finish(start(example, cwd=tmp_path, stderr=PIPE))
    assert done.returncode == 0, done.stderr
    expected = example.with_suffix(".out")
    if os.environ.get("VEFL_SIM_UPDATE"):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_shorter_than_40_lines(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40


@pytest.mark.slow
def test_the_notebook(tmp_path: Path) -> None:
    """Its text outputs are those that are checked in; names and digests of runs, accuracies and pictures may differ."""
    written = nbformat.read(NOTEBOOK, as_version=4)
    fresh = deepcopy(written)
    environment = ENVIRONMENT | {"IPYTHONDIR": str(tmp_path / "ipython")}
    client = NotebookClient(fresh, timeout=300, record_timing=False, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment)
    fresh.metadata.language_info = {"name": "python"}  # without the version of Python
    if os.environ.get("VEFL_SIM_UPDATE"):
        nbformat.write(fresh, NOTEBOOK)
        written = fresh
    assert shown(fresh) == shown(written)
    assert [*shown(fresh)].count("image") == 1


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """The outputs as text."""
    return [_text(output) for cell in notebook.cells for output in cell.get("outputs", ())]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        assert output.name == "stdout", output.text
        return output.text
    if "image/png" in output.data:
        return "image"
    text = re.sub(r"notebook-[0-9a-f]{8}", "notebook-…", output.data["text/html"])
    return re.sub(r"<td>(0\.\d{4}|[0-9a-f]{16})</td>", "<td>…</td>", text)


def test_the_notebook_names_no_machine() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert notebook.metadata.keys() == {"kernelspec", "language_info"}
    assert not any(cell.metadata for cell in notebook.cells)
    assert "/tmp" not in NOTEBOOK.read_text()
