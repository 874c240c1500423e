"""Every script that README.md or docs/ name runs in a small form, and ends with a sentence when it is stopped."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile, which
from typing import NamedTuple

import pytest

from tests.command_line import ENVIRONMENT, ROOT
from tests.learning.datasets.files import cifar_members, tar_gz, write_mnist

RUSH = "experiments/rush_hour.toml"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "experiments" / "README.md"]
FOLDERS = ("benchmarks", "docs/pictures")
SMALLER = {
    "rounds": "2", "duration_s": "10.0", "train_samples": "600", "test_samples": "50", "image_px": "16",
    "max_local_iterations": "2", "seeds": "[1, 2]", "evaluate_every": "1",
}  # fmt: skip
VARIANTS = r'label = "(PDPC|SCAFFOLD|float32|QSGD, s = 3|[FP]DPC: (paper|jakes))"'


class Small(NamedTuple):
    """The arguments of a small form, and commands that come before it."""

    arguments: str = ""
    before: Sequence[str] = ()


def named() -> set[str]:
    """The scripts that a page names."""
    text = "\n".join(page.read_text() for page in PAGES)
    files = [file for folder in FOLDERS for file in (ROOT / folder).glob("*.py")]
    return {str(f.relative_to(ROOT)) for f in files if re.search(rf"(?<![\w.]){re.escape(f.name)}", text)}


FORMS = dict.fromkeys(sorted(named()), Small("--small")) | {
    "benchmarks/__main__.py": Small("--turns 1 --only planners"),
    "benchmarks/algorithms.py": Small(
        "experiments/quickstart.toml --rounds 1 --slots 1 --minutes 0.001 --set traffic.mean_in_coverage=8"
        " --set radio.prb_bandwidth_hz=36e6"
    ),
    "benchmarks/arriving_share.py": Small(),
    "benchmarks/calibration.py": Small("run.duration_s=10 --seeds 1"),
    "benchmarks/iterations_per_step.py": Small("experiments/quickstart.toml --rounds 1 --n 2 --scheme FDPC"),
    "benchmarks/lost_orders.py": Small("--small --rounds 1"),
    "benchmarks/niid_bench.py": Small("data --rounds 1 --schemes fedavg"),
    "benchmarks/peers.py": Small("--small --turns 1"),
    "benchmarks/radio_realism.py": Small(),
    "benchmarks/rat_gap.py": Small("--small --seconds 1 --problems 1"),
    "benchmarks/scaffold_divergence.py": Small("--seeds 1 --only 'not corrected'"),
    "docs/pictures/baselines.py": Small(
        "--seeds 2",
        before=[f"-m vefl_sim -q experiments/{name}.toml --seeds 1-2" for name in ("baselines", "codecs")],
    ),
    "docs/pictures/fading.py": Small(),
    "docs/pictures/map.py": Small(),
    "docs/pictures/overview.py": Small(before=["-m vefl_sim -q experiments/quickstart.toml --set run.duration_s=50"]),
    "docs/pictures/radio.py": Small(),
    "docs/pictures/replay.py": Small("--small", before=[f"-m vefl_sim -q {RUSH} --set learning.kind=none"]),
    "docs/pictures/report.py": Small(before=[f"-m vefl_sim -q {RUSH} --set learning.kind=none"]),
    "docs/pictures/search.py": Small("data/mnist --small"),
    "docs/pictures/sumo_grid.py": Small("1 --small"),
    "docs/pictures/table1.py": Small("data/mnist --small"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with copies of the scripts, so that what they write stays there, and with small experiments."""
    for folder in (*FOLDERS, "experiments/paper"):
        (tmp_path / folder).mkdir(parents=True)
        for file in (ROOT / folder).glob("*.py"):
            copyfile(file, tmp_path / folder / file.name)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for file in [*(ROOT / "experiments").glob("*.toml"), ROOT / "experiments" / "paper" / "base.toml"]:
        (tmp_path / file.relative_to(ROOT)).write_text(shrunk(file.read_text()))
    (tmp_path / "data").mkdir()
    write_mnist(tmp_path / "data" / "mnist", train=1000, test=60)
    (tmp_path / "data" / "cifar-10-binary.tar.gz").write_bytes(tar_gz(cifar_members(80)))
    return tmp_path


def shrunk(toml: str) -> str:
    """The same experiment with less of everything, and of many variants only a few."""
    for key, value in SMALLER.items():
        toml = re.sub(rf"(?m)^{key} = [^#\n]*", f"{key} = {value} ", toml)
    first, *variants = toml.split("[[compare]]")
    return "[[compare]]".join([first, *(one for one in variants if re.search(VARIANTS, one))])


def test_the_pages_name_scripts() -> None:
    assert len(named()) > 25


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("script", FORMS)
def test_the_small_form_of_every_script_runs(script: str, copy: Path) -> None:
    if script.endswith(("replay.py", "report.py")) and not (which("chromium") and which("chromedriver")):
        pytest.skip("chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
    if script.endswith(("map.py", "sumo_grid.py", "bench_mobility.py")) and not find_spec("sumo"):
        pytest.skip("SUMO is not installed")
    form = FORMS[script]
    for command in form.before:
        made = python(copy, *command.split())
        assert made.returncode == 0, made.stderr
    ended = python(copy, script, *shlex.split(form.arguments))
    assert ended.returncode == 0, ended.stderr
    written = [*(copy / "docs" / "pictures").glob("*.png"), *(copy / "docs" / "pictures").glob("*.webp")]
    assert written or len(ended.stdout) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "number"),
    [("benchmarks/lost_orders.py", signal.SIGINT), ("docs/pictures/search.py data/mnist", signal.SIGTERM)],
)
def test_a_stopped_script_ends_with_a_sentence(script: str, number: signal.Signals, copy: Path) -> None:
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, *script.split()], cwd=copy, env=ENVIRONMENT, **pipes)
    while not catches(process.pid, signal.SIGTERM):  # it still imports what it needs
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "was stopped." in errors.splitlines()[-1]
    assert "Traceback" not in errors


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process handles a signal (Linux)."""
    [mask] = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)
