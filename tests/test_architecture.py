"""Enforces the architecture of docs/design.md: layers of imports, public names, and what `--help` may import."""

import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import vefl_sim

ROOT = Path(__file__).parents[1]


def test_imports_go_down_only() -> None:
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_public_names() -> None:
    assert dir(vefl_sim) == [
        "Aggregated", "AsynchronousScheme", "Backlog", "BadInput", "Channel", "Codec", "Dataset", "Experiment",
        "FinishedRun", "Link", "Local", "LocalUpdate", "Mobility", "Observation", "Plan", "RatAllocation", "RatPolicy",
        "RatProblem", "Received", "Run", "RunFailed", "RunWatcher", "Scene", "Scheduler", "Scheme", "Simulation",
        "VeflError", "VeflWarning", "compare", "draw", "from_tables", "load", "load_sweep", "resume", "run_sweep",
        "simulate", "trees", "why", "with_settings",
    ]  # fmt: skip
    for name in dir(vefl_sim):
        assert getattr(vefl_sim, name).__doc__, name
        assert re.search(rf"\b{name}\b", str(vefl_sim.__doc__)), name


def test_the_help_of_the_package_is_short() -> None:
    page = pydoc.render_doc(vefl_sim, renderer=pydoc.plaintext)
    assert len(page.splitlines()) < 70
    assert "simulate" in page


def test_help_imports_no_heavy_library() -> None:
    script = (
        "import sys, vefl_sim.cli.main\n"
        "try: vefl_sim.cli.main.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'pandas', 'pyarrow', 'numpy', 'scipy', 'pydantic', 'simpy', 'flax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_listing_runs_imports_no_pandas() -> None:
    script = "import sys, vefl_sim.analysis.runs; assert not {'pandas', 'jax', 'numba', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_presentation_packages_are_the_layers_above_the_simulation() -> None:
    from vefl_sim.records.identity import _PRESENTATION

    (layered,) = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    layers = [set(layer.split(" | ")) for layer in layered]
    above = layers[: next(place for place, layer in enumerate(layers) if "simulation" in layer)]
    assert set().union(*above) == _PRESENTATION | {"gym"}  # which has a scheme, so it can change a result


def test_scripts_of_the_page_have_readable_lines() -> None:
    assets = [*(ROOT / "vefl_sim/analysis/report/assets").iterdir()]
    assert {file.suffix for file in assets} == {".html", ".css", ".js"}
    scripts = [line for file in assets if file.suffix == ".js" for line in file.read_text().splitlines()]
    assert max(map(len, scripts)) <= 120


def test_names_of_test_files_are_unique() -> None:
    """Otherwise pytest cannot collect them together, which a test of one folder does not show."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
