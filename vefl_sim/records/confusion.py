"""The confusion matrix of the last model, in `confusion.json` of a run directory; no part of the content digest."""

import json
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import RunNotFound
from vefl_sim.core.files import read_json, write_text
from vefl_sim.learning.learner import Evaluation

FILE = "confusion.json"
_MAX_CLASSES = 256  # the matrix of more classes could not be read in one piece, and nobody looks at it
_MAX_COUNT = 2**53  # whole numbers from here on are not exact in every reader of JSON


@dataclass(frozen=True)
class ConfusionMatrix:
    """Number of test samples by true and by predicted class, at the last evaluation of a run."""

    round: int  # of the evaluation
    classes: list[str] | None  # names of the classes; None if the data set has none
    counts: list[list[int]]  # a row for each true class, a column for each predicted one

    @classmethod
    def of(cls, round: int, evaluation: Evaluation, names: tuple[str, ...] | None) -> "ConfusionMatrix | None":
        """The matrix of an evaluation; None if its learner does not count, or if there are more than 256 classes."""
        if evaluation.counts is None or len(evaluation.counts) > _MAX_CLASSES:
            return None
        return cls(round, None if names is None else list(names), evaluation.counts.tolist())

    def write(self, run: Path) -> None:
        """Write the file into a run directory."""
        write_text(run / FILE, json.dumps(asdict(self), separators=(",", ":")) + "\n")


def read_confusion(run: Path) -> ConfusionMatrix | None:
    """The matrix of a run directory, which may come from a stranger; None if it has none."""
    try:
        matrix = ConfusionMatrix(**read_json(run / FILE))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):  # the last one: it is no table, or has other keys
        matrix = None
    if matrix is None or not _is_valid(matrix):
        raise RunNotFound(f"{run / FILE} is damaged: delete it, or run the experiment again with --fresh.")
    return matrix


def _is_valid(matrix: ConfusionMatrix) -> bool:
    """Whether the counts are a square of whole numbers, and the names, if there are any, one for each class."""
    rows, names = matrix.counts, matrix.classes
    if type(matrix.round) is not int or not _is_list_of(list, rows) or not 0 < len(rows) <= _MAX_CLASSES:
        return False
    square = all(len(row) == len(rows) for row in rows)
    counted = all(type(count) is int and 0 <= count < _MAX_COUNT for count in chain.from_iterable(rows))
    return square and counted and (names is None or (_is_list_of(str, names) and len(names) == len(rows)))


def _is_list_of(kind: type, values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
