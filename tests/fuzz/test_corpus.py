"""The corpus: attempts that once broke the program, or that reach far, attacked with again by `make slow`."""

import shutil
from pathlib import Path

import pytest

from tests.fuzz.attack import ATTACKS

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(folder for folder in CORPUS.glob("*/*") if folder.is_dir())


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_the_program_bears_what_once_broke_it(case: Path, tmp_path: Path) -> None:
    shutil.copytree(case, tmp_path / "attempt")
    ATTACKS[case.parent.name].check(tmp_path / "attempt")
