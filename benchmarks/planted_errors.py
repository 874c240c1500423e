"""Plant known errors in a copy of the sources, one at a time, and list the first tests that detect each.

    python benchmarks/planted_errors.py [WORD …]    only the errors whose name contains one of the words

Golden traces and examples do not count, since they notice any change. The program fails if an error is not detected, or
if its line is no longer in the sources. With an error in them, the kernels of `optimize` run as plain Python, because
compiling them takes longer than their tests.
"""

from script import answer_help

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import NamedTuple

from mutants import PLAIN, is_kernel

ROOT = Path(__file__).parents[1]
FOLDERS = ("vefl_sim", "models", "tests", "experiments", "examples", "docs")
FILES = ("pyproject.toml", "README.md")
NOT_COUNTED = ("tests/protocol/test_golden.py", "tests/test_examples.py")


class PlantedError(NamedTuple):
    name: str
    file: str  # in vefl_sim/
    right: str  # occurs once in the file
    wrong: str
    tests: str  # folders and files that may detect it


PLANTED = [
    PlantedError(
        "deadline one slot late, observed", "schemes/observation.py",
        "grid.ceil(self.snapshot.time_ns) + self.window_slots",
        "grid.ceil(self.snapshot.time_ns) + self.window_slots + 1",
        "tests/protocol/test_server.py tests/schemes tests/protocol",
    ),
    PlantedError(
        "deadline one slot late, ordered", "protocol/server/orders.py",
        "int(observation.deadline_slot[row])", "int(observation.deadline_slot[row]) + 1",
        "tests/protocol/test_server.py tests/schemes tests/protocol tests/simulation/test_audit.py",
    ),
    PlantedError(
        "deadline one slot late, window", "schemes/observation.py",
        "np.maximum(last_slot - constants.grid.ceil(snapshot.time_ns), 0)",
        "np.maximum(last_slot - constants.grid.ceil(snapshot.time_ns), 0) + 1",
        "tests/protocol/test_server.py tests/schemes tests/protocol",
    ),
    PlantedError(
        "κ missing in e_tx, slot", "optimize/rat/burst.py",
        "transmit_j[v] += spent * config.slot_s", "transmit_j[v] += spent", "tests/protocol/test_burst.py",
    ),
    PlantedError(
        "κ missing in e_tx, worst case of an order", "protocol/server/orders.py",
        "compute_j + float(observation.worst_tx_j[row])",
        "compute_j + float(observation.worst_tx_j[row]) / constants.grid.slot_s",
        "tests/protocol/test_server.py tests/schemes tests/protocol tests/simulation/test_audit.py",
    ),
    PlantedError(
        "κ missing in e_tx, VEFL sub-problem", "schemes/observation.py",
        "constants.grid.slot_s * constants.link.power_w", "constants.link.power_w",
        "tests/protocol/test_server.py tests/schemes tests/protocol",
    ),
    PlantedError(
        "LOS and NLOS shadowing swapped, deviation", "radio/shadowing.py",
        "{True: 4.0, False: 6.0}", "{True: 6.0, False: 4.0}", "tests/radio/test_shadowing.py",
    ),
    PlantedError(
        "LOS and NLOS shadowing swapped, correlation", "radio/shadowing.py",
        "{True: 37.0, False: 50.0}", "{True: 50.0, False: 37.0}", "tests/radio/test_shadowing.py",
    ),
    PlantedError(
        "LOS and NLOS shadowing swapped, choice", "radio/shadowing.py",
        "np.where(self.los, self.shadowing_db", "np.where(~self.los, self.shadowing_db",
        "tests/radio/test_shadowing.py",
    ),
    PlantedError(
        "EDF ties by index", "optimize/rat/burst.py",
        "bits_left[v] > bits_left[order[to - 1]]", "v < order[to - 1]",
        "tests/optimize/rat/test_rat.py",
    ),
    PlantedError(
        "p_v not renormalised over the ordered CVs", "schemes/pdpc.py",
        '(rule.weights_over or "ordered", imp', '(rule.weights_over or "coverage", imp', "tests/schemes tests/protocol",
    ),
    PlantedError(
        "p_v not renormalised, any scheme", "schemes/weights.py",
        "amount[rows] / amount[members].sum()", "amount[rows] / amount.sum()", "tests/schemes tests/protocol",
    ),
    PlantedError(
        "p_v not renormalised with aggregation.normalize", "schemes/weights.py",
        "return applied / applied.sum() if normalize and len(applied) else applied", "return applied", "tests/schemes",
    ),
    PlantedError(
        "lost orders unpaid, ledger", "protocol/ledger.py",
        "account.paid = account.charge", "account.paid = account.charge if account.bits_left == 0 else 0.0",
        "tests/protocol",
    ),
    PlantedError(
        "lost orders unpaid, vehicle", "protocol/vehicle.py",
        "self.ledger.settle(work.account)",
        "work.account.base_fee *= lost is None\n        self.ledger.settle(work.account)",
        "tests/protocol",
    ),
    PlantedError(
        "fading block off by one, slots", "radio/fading.py",
        "divmod(slot + done, BLOCK_SLOTS)", "divmod(slot + done + 1, BLOCK_SLOTS)", "tests/radio/test_fading.py",
    ),
    PlantedError(
        "fading block off by one, counter", "radio/fading.py",
        "[:] = 0, 0, block, cv", "[:] = 0, 0, block + 1, cv", "tests/radio/test_fading.py",
    ),
    PlantedError(
        "fading block off by one, burst", "radio/fading.py",
        "gains[done : done + count, column]", "gains[done : done + count, column - 1]", "tests/radio/test_fading.py",
    ),
    PlantedError(
        "stale version, order", "protocol/server/pace.py",
        "version=server.model.version, **ends)", "version=max(0, server.model.version - 1), **ends)",
        "tests/schemes/test_without_rounds.py tests/protocol",
    ),
    PlantedError(
        "stale version, staleness", "protocol/server/pace.py",
        "_received(updates, server.model.version)", "_received(updates, server.model.version + 1)",
        "tests/schemes/test_baselines.py",
    ),
    PlantedError(
        "stale version, training from the newest model", "protocol/server/model.py",
        "[update.start.model for update in updates], [", "[self.parameters for _ in updates], [",
        "tests/schemes/test_without_rounds.py tests/protocol",
    ),
    PlantedError(
        "checkpoint without RNG state, shadowing", "radio/shadowing.py",
        'self._rng.bit_generator.state = state["rng"]', "pass", "tests/simulation/test_resume.py tests/radio",
    ),
    PlantedError(
        "traffic resumed one step late", "protocol/coverage.py",
        "while scene.time_ns < self._after.time_ns", "while scene.time_ns <= self._after.time_ns",
        "tests/simulation/test_resume.py",
    ),
    PlantedError(
        "traffic driven on from a later state than the kept scenes", "mobility/kept.py",
        "rest = deepcopy(self._source)", "rest = self._source",
        "tests/mobility/test_kept.py tests/simulation/test_resume.py",
    ),
    PlantedError(
        "RAT cap ignored, burst", "optimize/rat/burst.py",
        "cap[row] = bits / slot_s / config.nats_hz", "cap[row] = 1e6 * bits / slot_s / config.nats_hz",
        "tests/protocol/test_burst.py tests/simulation/test_slot_check.py",
    ),
    PlantedError(
        "RAT cap ignored, Python", "optimize/rat/problem.py",
        "cap=_above_nothing(self.bits_left", "cap=_above_nothing(1e6 * self.bits_left",
        "tests/optimize/rat/test_rat.py",
    ),
    PlantedError(
        "RAT cap ignored, water level", "optimize/rat/water.py", "if rate > cv.cap:", "if False:",
        "tests/optimize/rat/test_rat.py",
    ),
    PlantedError(
        "RAT cap ignored, policies", "optimize/rat/allocate.py",
        "rate[v] = min(rate[v], problem.cap[v])", "rate[v] = rate[v]",
        "tests/optimize/rat/test_rat.py tests/optimize/rat/test_rat_fixed_power.py",
    ),
]  # fmt: skip


@contextmanager
def planted(error: PlantedError, copy: Path) -> Iterator[None]:
    """The copy with the error in it; afterwards the files are as before."""
    path, kernel = copy / "vefl_sim" / error.file, copy / "vefl_sim" / "core" / "kernel.py"
    text, decorators = path.read_text(), kernel.read_text()
    if text.count(error.right) != 1:
        sys.exit(f"{error.name}: {error.file} has {text.count(error.right)} times, not once: {error.right}")
    path.write_text(text.replace(error.right, error.wrong))
    kernel.write_text(decorators + PLAIN * is_kernel(f"vefl_sim/{error.file}"))
    try:
        yield
    finally:
        path.write_text(text)
        kernel.write_text(decorators)


def failing(tests: list[str], copy: Path, most: int = 3) -> list[str]:
    """Names of the first of these quick tests that fail in the copy."""
    options = ["-m", "not slow", "-p", "no:cacheprovider", "--tb=no", f"--maxfail={most}"]
    options += ["-W", "ignore::RuntimeWarning"]
    options += [f"--ignore={path}" for path in NOT_COUNTED]
    paths = os.pathsep.join([str(copy), str(copy / "models")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=copy, env=os.environ | {"PYTHONPATH": paths},
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)


def main(words: list[str]) -> int:
    chosen = [error for error in PLANTED if not words or any(word in error.name for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in FOLDERS:
            copytree(ROOT / name, copy / name, ignore=ignore_patterns("__pycache__", "runs"))
        for name in FILES:
            (copy / name).write_bytes((ROOT / name).read_bytes())
        print("| error | planted in | detected by |\n|---|---|---|")
        for error in chosen:
            with planted(error, copy):
                noticed = failing(error.tests.split(), copy, 1 if is_kernel(f"vefl_sim/{error.file}") else 3)
            broken = failing(noticed, copy) if noticed else []
            found = [test for test in noticed if test not in broken]  # others fail without the error, too
            tests = [f"`{test.removeprefix('tests/')}`" for test in dict.fromkeys(t.split("[")[0] for t in found)]
            print(f"| {error.name} | `{error.file}` | {', '.join(tests) or 'NOTHING'} |", flush=True)
            missed += not found
    print(f"{len(chosen) - missed} of {len(chosen)} errors are detected")
    return int(missed > 0)


if __name__ == "__main__":
    answer_help(__doc__)
    sys.exit(main(sys.argv[1:]))
