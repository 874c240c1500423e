import sys
from pathlib import Path

import pytest

from vefl_sim import from_tables
from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.plugins import load_part, part_digests


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def digest_of(name: str) -> str:
    for module in [name for name in sys.modules if name.startswith("part_")]:
        del sys.modules[module]
    return part_digests(from_tables({"run": {"name": "x"}, "mac": {"scheduler": f"{name}:mine"}}))[f"{name}:mine"]


def test_the_digest_covers_a_helper_module(folder: Path) -> None:
    (folder / "part_helper.py").write_text("K = -1\n\ndef order(b):\n    return b\n")
    (folder / "part_a.py").write_text("from part_helper import order\n\ndef mine(b, n):\n    return order(b)\n")
    before = digest_of("part_a")
    assert digest_of("part_a") == before
    (folder / "part_helper.py").write_text("K = +10\n\ndef order(b):\n    return b\n")
    assert digest_of("part_a") != before


def test_the_digest_covers_the_function_of_a_partial(folder: Path) -> None:
    source = "from functools import partial\n\ndef _s(b, n, order):\n    return b\n\nmine = partial(_s, order={})\n"
    (folder / "part_b.py").write_text(source.format(1))
    before = digest_of("part_b")
    (folder / "part_b.py").write_text(source.format(-11))
    assert digest_of("part_b") != before


def test_a_missing_import_inside_a_part_is_reported_as_such(folder: Path) -> None:
    (folder / "part_c.py").write_text("import no_such_library\n")
    with pytest.raises(ExperimentError, match=r"importing 'part_c' fails.*no_such_library"):
        load_part("scheme.kind", "part_c:Scheme")


def test_an_object_that_is_not_callable_is_refused() -> None:
    with pytest.raises(ExperimentError, match="not a class or a function"):
        load_part("scheme.kind", "math:pi")
