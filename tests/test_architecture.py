"""Enforces the architecture of docs/design.md: layers of imports, public names, and what `--help` may import."""

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
    assert sorted(vefl_sim.__all__) == [
        "Backlog", "BadInput", "Experiment", "Mobility", "Observation", "Plan", "RatAllocation", "RatPolicy",
        "RatProblem", "Run", "RunFailed", "Scene", "Scheduler", "Scheme", "VeflError", "compare", "from_tables", "load",
        "load_sweep", "load_variants", "resume", "run_sweep", "simulate", "why", "with_settings",
    ]  # fmt: skip
    for name in vefl_sim.__all__:
        assert getattr(vefl_sim, name).__doc__, name


def test_help_imports_no_heavy_library() -> None:
    script = (
        "import sys, vefl_sim.cli.main\n"
        "try: vefl_sim.cli.main.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'pandas', 'pyarrow', 'numpy', 'scipy', 'pydantic', 'simpy', 'flax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_the_presentation_packages_are_the_layers_above_the_simulation() -> None:
    from vefl_sim.records.identity import _PRESENTATION

    (layered,) = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    layers = [set(layer.split(" | ")) for layer in layered]
    above = layers[: next(place for place, layer in enumerate(layers) if "simulation" in layer)]
    assert set().union(*above) == _PRESENTATION
