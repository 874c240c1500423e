"""Figures from Python: what is drawn of a run, a comparison, a sweep and a TOML file."""

from pathlib import Path

import pytest
import tomli_w

import vefl_sim
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim.analysis.draw import draw
from vefl_sim.sweep.comparison import Comparison

pytest.importorskip("matplotlib")
VARIANTS = [{"label": "one", "scheme": {"selected": 1}}, {"label": "two", "scheme": {"selected": 2}}]


def test_everything_that_has_a_figure_can_be_drawn(tmp_path: Path) -> None:
    file, out = tmp_path / "x.toml", tmp_path / "runs"
    tables = EXPERIMENT | {"run": {"name": "drawn", "rounds": 2}, "compare": VARIANTS, "figure": {"kind": "cost"}}
    file.write_text(tomli_w.dumps(tables))
    sweep = vefl_sim.load_sweep(file)
    runs = [vefl_sim.simulate(point.experiment, out=out) for point in sweep.points]
    assert {path.name for path in draw(runs[0])} == {"overview.png", "overview.pdf"}
    assert [path.parent for path in draw(runs[0].path, to=tmp_path / "to")] == [tmp_path / "to"] * 2
    [picture] = draw(Comparison.of(sweep, out), to=tmp_path / "to")
    assert picture.name == "comparison.png"
    for what in (sweep, file, str(file)):
        files = draw(what, out)
        assert {path.suffix for path in files} >= {".png", ".pdf", ".csv"}
        assert all(path.is_file() for path in files)
