"""How many samples of each class every CV holds, in numbers and as a picture."""

import math
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.analysis.figures.style import require_matplotlib
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.kinds import rule_mse
from vefl_sim.learning.holdings import adversaries
from vefl_sim.simulation.scenario import data_and_holdings


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


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ENDINGS = (".png", ".pdf", ".svg")
_DARK, _BLUE = "#22303c", "#7aa0cf"
_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}


def picture_path(path: Path) -> Path:
    """The path of the picture, with .png added if it has no ending; raises BadInput if it cannot be written."""
    if not path.suffix and not os.path.isdir(path):
        path = path.with_name(f"{path.name}.png")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder: name a file in it, for example {path / 'data.png'}.")
    if path.suffix.lower() not in _ENDINGS:
        raise BadInput(f"{path} cannot be written: the name of a picture must end with {', '.join(_ENDINGS)}.")
    try:
        with tempfile.TemporaryFile(dir=path.parent), suppress(FileNotFoundError):
            path.stat()  # fails if the name is too long
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
    return path


def draw_data_split(data_split: DataSplit, path: Path) -> Path:
    """Draw the split and write the picture; needs matplotlib."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE):
        figure = (_with_classes if data_split.has_classes else _without_classes)(data_split.counts)
        figure.suptitle(data_split.title, x=0.01, ha="left", fontsize=11)
        try:
            figure.savefig(path, dpi=130)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
        finally:
            plt.close(figure)
    return path


def _with_classes(counts: Any) -> "Figure":
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    figure, axes = plt.subplot_mosaic(
        [["cvs", "."], ["map", "classes"]], figsize=(10, 5.2), layout="constrained",
        width_ratios=(5, 1), height_ratios=(1, 2.4),
    )  # fmt: skip
    mesh = panels(axes["cvs"], axes["map"], counts)
    _classes(axes["classes"], counts)
    axes["classes"].sharey(axes["map"])
    bar = figure.colorbar(mesh, ax=axes["classes"], label="samples", pad=0.08, aspect=30, format="{x:.0f}")
    bar.ax.yaxis.set_minor_formatter(LogFormatter())  # plain numbers at few ticks
    return figure


def _without_classes(counts: Any) -> "Figure":
    """Draw only how many samples each CV has, the largest number first."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 2.8), layout="constrained")
    _cvs(axes, counts[np.argsort(-counts[:, 0], kind="stable")])
    axes.set(xlabel="CV, sorted by its number of samples", xlim=(0, len(counts)))
    return figure


def panels(cvs: "Axes", classes: "Axes", counts: Any, most: int | None = None) -> Any:
    """Draw the samples per CV (upper panel) and per CV and class (lower panel); returns the mesh, for a colour bar.

    `counts`: [CVs, classes]; `most`: the count of the darkest colour, if not the largest count.
    """
    counts = counts[_order(counts)]
    mesh = _map(classes, counts, most)
    _cvs(cvs, counts)
    cvs.sharex(classes)
    cvs.tick_params(labelbottom=False)
    return mesh


def _order(counts: Any) -> Any:
    """Order of the CVs: by their largest class, then by descending share of that class."""
    largest = counts.argmax(axis=1)
    return np.lexsort((-counts.max(axis=1) / counts.sum(axis=1), largest))


def _map(axes: "Axes", counts: Any, most: int | None) -> Any:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    cvs, classes = counts.shape
    present = np.ma.masked_equal(counts.T, 0)
    norm = LogNorm(1, max(2, most or counts.max()))
    mesh = axes.pcolormesh(np.arange(cvs + 1), np.arange(classes + 1) - 0.5, present, norm=norm, cmap="YlGnBu")
    axes.set(xlabel="CV, sorted by its largest class", ylabel="class", xlim=(0, cvs), ylim=(classes - 0.5, -0.5))
    axes.yaxis.set_major_locator(MaxNLocator(12, integer=True))
    return mesh


def _cvs(axes: "Axes", counts: Any) -> None:
    sizes = counts.sum(axis=1)
    axes.bar(np.arange(len(sizes)) + 0.5, sizes, width=1.0, color=_BLUE)
    axes.axhline(np.median(sizes), color=_DARK, lw=1, ls="--")
    axes.set_title(f"median {np.median(sizes):.0f}", loc="right", color=_DARK, fontsize=8)
    axes.set(ylabel="samples per CV")


def _classes(axes: "Axes", counts: Any) -> None:
    axes.barh(np.arange(counts.shape[1]), counts.sum(axis=0), height=0.8, color=_BLUE)
    axes.set(xlabel="samples per class")
    axes.tick_params(labelleft=False)
