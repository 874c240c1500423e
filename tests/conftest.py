"""Shared by all tests: machines are noisy, so no example of a property has a deadline.

`make test` tries 25 examples of each property, `make slow` 200. With CI in the environment the examples are the same
each time; everywhere else each test run tries others.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from hypothesis import settings

from vefl_sim import Run, from_tables, simulate
from vefl_sim.learning.datasets import signs as drawing
from vefl_sim.learning.datasets.dataset import Dataset

settings.register_profile("quick", deadline=None, derandomize="CI" in os.environ, max_examples=25)
settings.register_profile("full", settings.get_profile("quick"), max_examples=200)  # pytest --hypothesis-profile=full
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; tests interrupt runs by it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Archives have the time of their making in them, and every worker must give a test the same name."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def without_fsync() -> Iterator[None]:
    """Files need not reach the disk, because no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def signs_drawn_once() -> Iterator[None]:
    """Runs of one process that use the same signs share them; nobody can write to them."""
    drawn: dict[Any, Dataset] = {}
    draw = drawing.signs

    def draw_once(*sizes_and_rng: Any, unseen: bool = False) -> Dataset:
        *sizes, rng = sizes_and_rng
        key = (*sizes, str(rng.bit_generator.state), rng.bit_generator.seed_seq.n_children_spawned, unseen)
        if key not in drawn:
            dataset = draw(*sizes, rng, unseen=unseen)
            for array in (dataset.train_inputs, dataset.train_targets, dataset.test_inputs, dataset.test_targets):
                array.setflags(write=False)
            if len(drawn) == 8:
                drawn.pop(next(iter(drawn)))
            drawn[key] = dataset
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "signs", draw_once)
        yield


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The finished run of tests/protocol/test_golden.py; who changes it takes `golden_copy`."""
    from tests.protocol.test_golden import EXPERIMENT

    return simulate(from_tables(EXPERIMENT), out=tmp_path_factory.mktemp("golden"))


@pytest.fixture
def golden_copy(golden: Run, tmp_path: Path) -> Run:
    """A copy of this run."""
    return Run(copytree(golden.path, tmp_path / "copies" / golden.path.name))
