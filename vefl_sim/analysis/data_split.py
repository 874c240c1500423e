"""How many samples of each class every CV holds, in numbers and as a picture."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

from vefl_sim.analysis.figures.panel import STYLE
from vefl_sim.analysis.files import picture, require_ending, write_file
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import DataTable, Experiment
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import rule_mse
from vefl_sim.learning.holdings import adversaries
from vefl_sim.simulation.scenario import data_and_holdings

_ENDINGS = (".png", ".pdf", ".svg")
_DARK, _BLUE = "#22303c", "#7aa0cf"


@dataclass(frozen=True)
class DataSplit:
    """How the training set is split over the CVs."""

    dataset: str
    rule: str
    counts: NDArray[np.int64]  # [CVs, classes]
    groups: int  # number of sample groups, each held by one CV; 0 if there are none, or if they need not stay whole
    has_classes: bool = True  # False: targets are numbers, and all samples count as one class
    adversaries: tuple[int, ...] = ()  # CVs whose labels a run flips
    rule_note: str = ""  # how good a rule without learning is on the test set, if the data set has one

    @property
    def title(self) -> str:
        """Data set, its size, and the rule of the split, in one line."""
        cvs, classes = self.counts.shape
        of_classes = f" of {classes} classes" if self.has_classes else ""
        return f"{self.dataset}: {self.counts.sum()} samples{of_classes} over {cvs} CVs, {self.rule}"

    def lines(self) -> list[str]:
        """The statistics of the split, as printable lines."""
        sizes = self.counts.sum(axis=1)
        lines = [
            self.title,
            f"samples per CV: minimum {sizes.min()}, median {np.median(sizes):.0f}, maximum {sizes.max()}",
        ]
        if self.has_classes:
            lines.append(
                f"classes per CV: minimum {self.classes.min()}, median {np.median(self.classes):.0f}, maximum "
                f"{self.classes.max()}; the {np.median(self.large_classes):.0f} largest (median) contain 90% of the "
                "samples of a CV"
            )
        if self.groups:
            lines.append(f"{self.groups} groups of samples, each held by one CV")
        if self.adversaries:
            lines.append(
                f"{len(self.adversaries)} of {len(self.counts)} CVs are adversaries, whose labels a run flips (not in "
                f"these counts): {', '.join(map(str, self.adversaries))}"
            )
        return [*lines, self.rule_note] if self.rule_note else lines

    @property
    def classes(self) -> NDArray[np.int64]:
        """Number of classes of which each CV holds samples, [CVs]."""
        return np.count_nonzero(self.counts, axis=1)  # type: ignore[no-any-return]

    @property
    def large_classes(self) -> NDArray[np.int64]:
        """Smallest number of classes that together contain 90 % of the samples of each CV, [CVs]."""
        cumulative = np.cumsum(-np.sort(-self.counts, axis=1), axis=1)
        return 1 + np.count_nonzero(10 * cumulative < 9 * cumulative[:, -1:], axis=1)  # type: ignore[no-any-return]


def data_split(experiment: Experiment) -> DataSplit:
    """Simulate the traffic to find the CVs, read the data, and assign the samples to the CVs as the run would."""
    streams = Streams(experiment.run.seed)
    dataset, samples_by_cv = data_and_holdings(experiment, streams)
    if not samples_by_cv:
        raise ExperimentError("No CV enters coverage, so the data cannot be split: make the run longer.")
    labels = np.zeros(len(dataset.train_targets), np.int64) if dataset.classes is None else dataset.train_targets
    counts = [np.bincount(labels[own], minlength=dataset.classes or 1) for own in samples_by_cv.values()]
    rule = load_part("data.partition", experiment.data.partition)
    ids = None if rule.by_vehicle else dataset.train_groups
    groups = 0 if ids is None else len(np.unique(ids))
    cvs = np.array([*samples_by_cv], np.int64)
    return DataSplit(
        dataset.name,
        rule.title(experiment.data) + (f", shares for {experiment.data.holders}" if experiment.data.holders else ""),
        np.array(counts),
        groups,
        dataset.classes is not None,
        tuple(cvs[adversaries(cvs, experiment.adversary.share, streams)].tolist()),
        _rule_note(experiment.data, dataset),
    )


def _rule_note(data: DataTable, dataset: Dataset) -> str:
    """The error of the rule that a data set declares, which a model should surpass; empty if there is none."""
    if (scored := rule_mse(data, dataset)) is None:
        return ""
    name, mse = scored
    return f"{name} on the {len(dataset.test_targets)} test samples: rmse {math.sqrt(mse):.4f} (mse {mse:.4f})"


def picture_path(path: Path) -> Path:
    """The path of the picture, with .png added if it has no ending; raises BadInput if it cannot be written."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, for example {path / 'data.png'}.")
    path = path if path.suffix else path.with_name(f"{path.name}.png")
    require_ending(path, "picture", _ENDINGS)
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}.")
    return path


def draw_data_split(data_split: DataSplit, path: Path) -> Path:
    """Draw the split and write the picture: samples per CV, and with classes also per CV and class."""
    counts = data_split.counts
    with rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(10, 5.2 if data_split.has_classes else 2.8), layout="constrained")
        figure.suptitle(data_split.title, x=0.01, ha="left", fontsize=11)
        if data_split.has_classes:
            cvs, classes = figure.subplots(2, 1, height_ratios=(1, 2.4))
            mesh = panels(cvs, classes, counts)
            bar = figure.colorbar(mesh, ax=classes, label="samples", format="{x:.0f}", aspect=30)
            bar.ax.yaxis.set_minor_formatter(LogFormatter())  # plain numbers at few ticks
        else:
            axes = figure.subplots()
            _draw_sizes(axes, -np.sort(-counts[:, 0]))
            axes.set(xlabel="CV, sorted by its number of samples", xlim=(0, len(counts)))
        return write_file(path, picture(figure, path.suffix.lower()))


def panels(cvs: Axes, classes: Axes, counts: NDArray[np.int64], most: int | None = None) -> Any:
    """Draw the samples per CV (upper panel) and per CV and class (lower panel); returns the mesh, for a colour bar.

    `counts`: [CVs, classes]; `most`: the count of the darkest colour, if not the largest count. CVs are in the order of
    their largest class, then by descending share of that class.
    """
    counts = counts[np.lexsort((-counts.max(axis=1) / counts.sum(axis=1), counts.argmax(axis=1)))]
    edges = np.arange(len(counts) + 1), np.arange(counts.shape[1] + 1) - 0.5
    norm = LogNorm(1, max(2, most or counts.max()))
    mesh = classes.pcolormesh(*edges, np.ma.masked_equal(counts.T, 0), norm=norm, cmap="YlGnBu")
    classes.set(xlabel="CV, sorted by its largest class", ylabel="class", ylim=edges[1][[-1, 0]])
    classes.locator_params(axis="y", integer=True)
    _draw_sizes(cvs, counts.sum(axis=1))
    cvs.sharex(classes)
    cvs.tick_params(labelbottom=False)
    return mesh


def _draw_sizes(axes: Axes, sizes: NDArray[np.int64]) -> None:
    axes.bar(np.arange(len(sizes)) + 0.5, sizes, width=1.0, color=_BLUE)
    axes.axhline(np.median(sizes), color=_DARK, lw=1, ls="--")
    axes.set_title(f"median {np.median(sizes):.0f}", loc="right", color=_DARK, fontsize=8)
    axes.set(ylabel="samples per CV")
