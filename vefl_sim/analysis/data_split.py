"""Who holds how many samples of which class, as a table and as a picture."""

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import DataTable
from vefl_sim.simulation.scenario import share_out


@dataclass(frozen=True)
class DataSplit:
    """The training set, counted."""

    dataset: str
    rule: str
    counts: NDArray[np.int64]  # [CVs, classes]
    groups: int  # kept whole; 0 if there are none

    @property
    def title(self) -> str:
        """In a few words."""
        cvs, classes = self.counts.shape
        return f"{self.dataset}: {self.counts.sum()} samples of {classes} classes over {cvs} CVs, {self.rule}"

    def lines(self) -> list[str]:
        """In figures."""
        sizes = self.counts.sum(axis=1)
        lines = [
            self.title,
            f"samples of a CV: at least {sizes.min()}, median {np.median(sizes):.0f}, at most {sizes.max()}",
            f"classes of a CV: at least {self.classes.min()}, median {np.median(self.classes):.0f}, at most "
            f"{self.classes.max()}; the largest {np.median(self.large_classes):.0f} (median) make up 90% of its "
            "samples",
        ]
        return [*lines, f"{self.groups} groups, each with one CV"] if self.groups else lines

    @property
    def classes(self) -> NDArray[np.int64]:
        """How many classes each CV has, [CVs]."""
        return np.count_nonzero(self.counts, axis=1)  # type: ignore[no-any-return]

    @property
    def large_classes(self) -> NDArray[np.int64]:
        """How many of its classes, from the largest down, make up 90 % of the samples of each CV, [CVs]."""
        reached = np.cumsum(-np.sort(-self.counts, axis=1), axis=1)
        return 1 + np.count_nonzero(10 * reached < 9 * reached[:, -1:], axis=1)  # type: ignore[no-any-return]


def data_split(experiment: Experiment) -> DataSplit:
    """Drive the traffic to see which CVs there are, read the data, and deal them out as the run would."""
    dataset, held = share_out(experiment, Streams(experiment.run.seed))
    if not held:
        raise ExperimentError("No CV comes into coverage, so nobody holds anything: make the run longer.")
    counts = [np.bincount(dataset.train_labels[mine], minlength=dataset.classes) for mine in held.values()]
    groups = 0 if dataset.train_groups is None else len(np.unique(dataset.train_groups))
    return DataSplit(dataset.name, _rule(experiment.data), np.array(counts), groups)


def _rule(data: DataTable) -> str:
    if data.partition == "iid":
        return "IID"
    return (
        f"{data.shards_per_cv} shards each" if data.partition == "shards" else f"Dirichlet α = {data.dirichlet_alpha:g}"
    )


if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDINGS = (".png", ".pdf", ".svg")
_DARK, _BLUE = "#22303c", "#7aa0cf"
_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}


def target(path: Path) -> Path:
    """Where the picture goes, with an ending; what is wrong with it is said before anything is read."""
    if not path.suffix and not os.path.isdir(path):
        path = path.with_name(f"{path.name}.png")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder: name a file in it, as {path / 'data.png'}.")
    if path.suffix.lower() not in _ENDINGS:
        raise BadInput(f"{path} cannot be written: pictures end with {', '.join(_ENDINGS)}.")
    try:
        with tempfile.TemporaryFile(dir=path.parent), suppress(FileNotFoundError):
            path.stat()  # which fails if the name is too long
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
    return path


def draw_data_split(data_split: DataSplit, path: Path) -> Path:
    """Write the picture; needs matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise BadInput("The picture needs matplotlib: install vefl_sim[report]; the figures are above.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    with plt.rc_context(_STYLE):
        figure, axes = plt.subplot_mosaic(
            [["cvs", "."], ["map", "classes"]], figsize=(10, 5.2), layout="constrained",
            width_ratios=(5, 1), height_ratios=(1, 2.4),
        )  # fmt: skip
        mesh = panels(axes["cvs"], axes["map"], data_split.counts)
        _classes(axes["classes"], data_split.counts)
        axes["classes"].sharey(axes["map"])
        bar = figure.colorbar(mesh, ax=axes["classes"], label="samples", pad=0.08, aspect=30, format="{x:.0f}")
        bar.ax.yaxis.set_minor_formatter(LogFormatter())  # plain numbers, and not too many
        figure.suptitle(data_split.title, x=0.01, ha="left", fontsize=11)
        try:
            figure.savefig(path, dpi=130)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
        finally:
            plt.close(figure)
    return path


def panels(cvs: "Axes", classes: "Axes", counts: Any, most: int | None = None) -> Any:
    """How much each CV has, above what it has; returns the mesh, for a colour bar.

    `counts`: [CVs, classes]; `most`: what the darkest colour stands for, if not the largest count.
    """
    counts = counts[_order(counts)]
    mesh = _map(classes, counts, most)
    _cvs(cvs, counts)
    cvs.sharex(classes)
    cvs.tick_params(labelbottom=False)
    return mesh


def _order(counts: Any) -> Any:
    """CVs by their largest class, and those with the same from the largest share of it down."""
    largest = counts.argmax(axis=1)
    return np.lexsort((-counts.max(axis=1) / counts.sum(axis=1), largest))


def _map(axes: "Axes", counts: Any, most: int | None) -> Any:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    cvs, classes = counts.shape
    seen = np.ma.masked_equal(counts.T, 0)
    norm = LogNorm(1, max(2, most or counts.max()))
    mesh = axes.pcolormesh(np.arange(cvs + 1), np.arange(classes + 1) - 0.5, seen, norm=norm, cmap="YlGnBu")
    axes.set(xlabel="CV, sorted by its largest class", ylabel="class", xlim=(0, cvs), ylim=(classes - 0.5, -0.5))
    axes.yaxis.set_major_locator(MaxNLocator(12, integer=True))
    return mesh


def _cvs(axes: "Axes", counts: Any) -> None:
    sizes = counts.sum(axis=1)
    axes.bar(np.arange(len(sizes)) + 0.5, sizes, width=1.0, color=_BLUE)
    axes.axhline(np.median(sizes), color=_DARK, lw=1, ls="--")
    axes.set_title(f"median {np.median(sizes):.0f}", loc="right", color=_DARK, fontsize=8)
    axes.set(ylabel="samples of the CV")


def _classes(axes: "Axes", counts: Any) -> None:
    axes.barh(np.arange(counts.shape[1]), counts.sum(axis=0), height=0.8, color=_BLUE)
    axes.set(xlabel="samples of the class")
    axes.tick_params(labelleft=False)
