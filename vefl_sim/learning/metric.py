"""The metric of a run: the one number by which its model is judged, how it is called, and where it is recorded.

With classes it is the accuracy. Without, it is the loss of the run by its name, or for "mse" its square root. All that
shows results asks here. A user-defined loss is known by its name only, so that reading a run loads no code of it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

_MAX_NAME = 40  # characters of the name of a user-defined loss
_TAKEN = (
    "accuracy", "ordered", "delivered", "p_suc", "cost", "energy_j", "simulated_s", "wall_s", "variant", "seed", "run",
)  # fmt: skip
"""Names of other figures of a run, which the loss cannot have."""


@dataclass(frozen=True)
class Metric:
    """The metric of a run."""

    name: str  # in tables and lines of text, for example "rmse"
    loss: str  # `learning.loss`, without the module of a user-defined one
    column: Literal["accuracy", "loss"]  # of the rounds table, from which it is computed
    is_root: bool = False  # it is the square root of the column

    @property
    def is_share(self) -> bool:
        """Whether it is a share of the samples, which is shown in percent."""
        return self.column == "accuracy"

    @property
    def loss_note(self) -> str:
        """The name of the loss in brackets, for axes and titles; empty for a run with classes."""
        return "" if self.is_share else f" ({self.loss})"

    def value(self, accuracy: float | None, loss: float | None) -> float | None:
        """The metric of an evaluation with these figures."""
        figure = accuracy if self.column == "accuracy" else loss
        return None if figure is None else self.of_column(figure)

    def of_column(self, figure: float) -> float:
        """The metric, from a value of its column."""
        return math.sqrt(figure) if self.is_root and figure >= 0 else figure

    def of_summary(self, which: Literal["first", "best", "last"], summary: Mapping[str, Any]) -> float | None:
        """The metric after the first or last evaluation, or the best one, from the figures of a run."""
        figure = summary.get(f"{which}_{self.column}")
        return self.of_column(figure) if isinstance(figure, int | float) else None

    @property
    def form(self) -> str:
        """The format of a value: four digits, or four significant ones if it is no share."""
        return ".4f" if self.is_share else "#.4g"

    def text(self, value: float) -> str:
        """A value as it is printed."""
        return format(value, self.form)

    def short_text(self, value: float) -> str:
        """A value for a large figure: 62.7%, or three significant digits."""
        return f"{value:.1%}" if self.is_share else f"{value:#.3g}"


def metric_of(loss: str, *, has_accuracy: bool) -> Metric:
    """The metric of runs with this `learning.loss`; `has_accuracy`: whether an evaluation of one gave an accuracy."""
    if loss == "cross-entropy" or has_accuracy:
        return Metric("accuracy", _short(loss), "accuracy")
    if loss == "mse":
        return Metric("rmse", loss, "loss", is_root=True)
    return Metric(_short(loss), _short(loss), "loss")


def metric_of_summary(loss: str, summary: Mapping[str, Any]) -> Metric:
    """The metric of a run with these figures."""
    return metric_of(loss, has_accuracy=summary.get("last_accuracy") is not None)


def common_metric(metrics: Iterable[Metric]) -> Metric | None:
    """The metric that all runs have; None if they differ, so that they cannot be compared, or if there are none."""
    different = {metric.name: metric for metric in metrics}
    return next(iter(different.values())) if len(different) == 1 else None


def _short(loss: str) -> str:
    """The name of a loss without its module; of a stranger's run, only its readable part."""
    name = "".join(sign for sign in loss.rpartition(":")[2] if sign.isprintable())[:_MAX_NAME]
    return name if name and name not in _TAKEN else "loss"
