"""Enforces the architecture of docs/design.md: layers of imports, public names, and what `--help` may import."""

import re
import subprocess
import sys
import tomllib

import pytest

import vefl_sim
from tests.command_line import ROOT, finish, start


def test_imports_go_down_only() -> None:
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_public_names() -> None:
    assert dir(vefl_sim) == [
        "Aggregated", "AsynchronousScheme", "Backlog", "BadInput", "Channel", "Codec", "Dataset", "Experiment",
        "FinishedRun", "Link", "Local", "LocalUpdate", "Mobility", "Observation", "Plan", "RatAllocation", "RatPolicy",
        "RatProblem", "Received", "Run", "RunFailed", "RunWatcher", "Scene", "Scheduler", "Scheme", "Simulation",
        "VeflError", "VeflWarning", "branch", "compare", "draw", "from_tables", "load", "load_sweep", "resume",
        "run_sweep", "simulate", "trees", "why", "with_settings",
    ]  # fmt: skip
    for name in dir(vefl_sim):
        assert getattr(vefl_sim, name).__doc__, name
        assert re.search(rf"\b{name}\b", str(vefl_sim.__doc__)), name


@pytest.mark.parametrize(
    ("module", "call", "heavy"),
    [
        ("vefl_sim.cli.main", "main(['--help'])", "jax, pandas, pyarrow, numpy, scipy, pydantic, simpy, flax"),
        ("vefl_sim.analysis.runs", "run_lines", "pandas, jax, numba, scipy"),
    ],
)
def test_what_is_imported_for_help_and_for_the_list_of_runs(module: str, call: str, heavy: str) -> None:
    script = (
        f"import sys, {module}\n"
        f"try: {module}.{call}\n"
        "except SystemExit: pass\n"
        f"assert not {{*{heavy.split(', ')}}} & {{*sys.modules}}"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_make_install_upgrades_pip_and_setuptools_first() -> None:
    make = ["make", "--dry-run", "--always-make", "--no-print-directory", "install"]
    recipe = subprocess.run(make, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"pip install --quiet (.*)", recipe)[0] == "--upgrade --constraint constraints.txt pip setuptools"
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert int(pinned["pip"].split(".")[0]) >= 26


def test_tests_in_the_background_of_a_script_can_be_interrupted() -> None:
    """A shell lets commands in the background ignore Ctrl-C, which some tests send to themselves."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    assert finish(start("-c", code)).stdout.strip() == "True"


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
