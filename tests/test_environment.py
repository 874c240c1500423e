"""The environment in which the program and its tests run: what `make install` installs, and signals of the shell."""

import re
import signal
import subprocess

from tests.command_line import ROOT, finish, start


def test_make_install_upgrades_pip_and_setuptools_first() -> None:
    make = ["make", "--dry-run", "--always-make", "--no-print-directory", "install"]
    recipe = subprocess.run(make, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    installed = re.findall(r"pip install --quiet (.*)", recipe)
    assert installed == [
        "--upgrade --constraint constraints.txt pip setuptools",
        "--constraint constraints.txt --editable .",
    ]
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert int(pinned["pip"].split(".")[0]) >= 26
    assert int(pinned["setuptools"].split(".")[0]) >= 84


def test_tests_in_the_background_of_a_script_can_be_interrupted() -> None:
    """A shell lets commands in the background ignore Ctrl-C, which some tests send to themselves."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert finish(start("-c", code)).stdout.strip() == "True"
