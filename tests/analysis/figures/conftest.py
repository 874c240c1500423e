"""A figure of fake runs, as `figure` draws it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.analysis.figures.invented_runs import pretend, sweep
from vefl_sim.analysis.figures.chart import Chart
from vefl_sim.analysis.figures.drawing import Drawing, draw_figure
from vefl_sim.analysis.figures.layout import groups, layout
from vefl_sim.analysis.figures.request import request_from
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.results.store import Store

Runs = Mapping[tuple[Any, ...], Run]
DrawFigure = Callable[..., Drawing]
Curve = Callable[[Runs, str], pd.DataFrame]


@pytest.fixture
def draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DrawFigure:
    """Draw the figure of a sweep with this text into the folder `to`, from fake runs by values and seed."""

    def drawn(runs: Runs | None, text: str, store: Store | None = None) -> Drawing:
        if runs is not None:
            pretend(monkeypatch, runs)
        return draw_figure(sweep(tmp_path, text), tmp_path, tmp_path / "to", store)

    return drawn


@pytest.fixture
def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Curve:
    """The rows of the curves of a sweep with this text, from fake runs, without drawing them."""

    def rows(runs: Runs, text: str) -> pd.DataFrame:
        pretend(monkeypatch, runs)
        loaded = sweep(tmp_path, text)
        request = request_from(loaded.figure)
        return Chart(request, groups(loaded, request, layout(loaded, request), Path("nowhere"))).rows

    return rows
